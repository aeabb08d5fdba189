// Checks what stands in the heads of schedules, models and clusters alike.
#include "Checks.h"
#include "ppcc/Basic/Diagnostics/Syntax.h"

using namespace ppcc;
using namespace ppcc::sema;

void sema::checkParameters(ArrayRef<ast::Parameter> params,
                           Declaration &declaration, ExprChecker &exprs) {
  for (const ast::Parameter &param : params) {
    Type declared = exprs.declaredType(param.type, Type::Error);
    if (param.type.text.empty())
      exprs.diags.report<diag::ExpectedToken>(
          param.name.range,
          "a type after the name of a parameter, such as `: int`");
    else if (elementType(declared) == Type::Pipe || declared == Type::Part)
      exprs.diags.report<diag::TypeMismatch>(param.type.range, "a parameter",
                                             "int, bool, float or int[]",
                                             typeName(declared));
    exprs.checkBounds(param, declared);
    declaration.params.push_back({&param, declared});
    exprs.names.defineGlobal(param.name, declared);
  }
}

bool sema::checkHeadItem(const ast::Stmt *item, Declaration &declaration,
                         ExprChecker &exprs) {
  if (auto *let = dyn_cast<ast::LetStmt>(item)) {
    Type type = exprs.check(let->value);
    declaration.header.push_back(let);
    declaration.letSlots.push_back(
        exprs.names.defineGlobal(let->name, type, Symbol::Binder::Let,
                                 {let->range.begin, let->value->range.end}));
  } else if (auto *require = dyn_cast<ast::RequireItem>(item)) {
    exprs.expect(require->condition, Type::Bool, "the condition of `require`");
    declaration.header.push_back(item);
  } else if (auto *function = dyn_cast<ast::FunctionItem>(item)) {
    checkFunction(function, exprs);
  } else if (auto *block = dyn_cast<ast::BlockItem>(item)) {
    checkBlock(block, exprs);
  } else {
    return false;
  }
  return true;
}
