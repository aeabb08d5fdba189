// Checks names and expressions.
#include "Checker.h"
#include "ppcc/Support/Suggest.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace ppcc;
using namespace ppcc::sema;
using llvm::ArrayRef;
using llvm::cast;
using llvm::dyn_cast;
using llvm::StringRef;

namespace {

/// Evaluation recurses this deep at most, so that no schedule exhausts the
/// stack.
constexpr uint32_t maxDepth = 2000;

struct BuiltinRow {
  StringRef name;
  Builtin id;
};
constexpr BuiltinRow builtins[] = {
    {"min", Builtin::Min},       {"max", Builtin::Max},
    {"abs", Builtin::Abs},       {"layout", Builtin::Layout},
    {"issued", Builtin::Issued}, {"pending", Builtin::Pending},
    {"padded", Builtin::Padded},
};

const BuiltinRow *findBuiltin(StringRef name) {
  auto *found = llvm::find_if(
      builtins, [&](const BuiltinRow &row) { return row.name == name; });
  return found == std::end(builtins) ? nullptr : found;
}

std::string source(const ast::Expr *expr) {
  std::string text;
  llvm::raw_string_ostream out(text);
  print(expr, out);
  return text;
}

bool isCounter(Builtin id) {
  return id == Builtin::Issued || id == Builtin::Pending ||
         id == Builtin::Padded;
}

} // namespace

// ---- Names ----

Symbol *Checker::lookup(StringRef name) {
  for (Scope &scope : llvm::reverse(scopes))
    if (auto found = scope.find(name); found != scope.end())
      return &found->second;
  return nullptr;
}

void Checker::redefined(const ast::Identifier &name, SourceRange first) {
  diags.report<diag::Redefined>(name.range, name.text)
      .note(first, "first defined here");
}

bool Checker::isBuiltin(StringRef name) {
  return findBuiltin(name) || name == "mb";
}

void Checker::define(const ast::Identifier &name, Symbol symbol) {
  if (isBuiltin(name.text))
    diags.report<diag::ReservedName>(name.range, name.text, "built in");
  else if (module.kinds.find(name.text))
    diags.report<diag::ReservedName>(name.range, name.text, "an action");
  symbol.range = name.range;
  if (auto [found, isNew] = scopes.back().try_emplace(name.text, symbol);
      !isNew)
    redefined(name, found->second.range);
}

uint32_t Checker::defineLocal(const ast::Identifier &name, Type type) {
  define(name,
         {Symbol::Kind::Value, ExprInfo::Ref::Local, numLocals, type, {}});
  return numLocals++;
}

uint32_t Checker::defineGlobal(const ast::Identifier &name, Type type) {
  define(name,
         {Symbol::Kind::Value, ExprInfo::Ref::Global, numGlobals, type, {}});
  return numGlobals++;
}

void Checker::noteDeclarations(ArrayRef<const ast::Item *> items) {
  for (const ast::Item *item : items)
    if (auto *function = dyn_cast<ast::FunctionItem>(item))
      later.try_emplace(function->name.text, function->name.range);
    else if (auto *block = dyn_cast<ast::BlockItem>(item))
      later.try_emplace(block->name.text, block->name.range);
}

std::vector<StringRef> Checker::visible(Symbol::Kind kind) {
  std::vector<StringRef> names;
  for (const Scope &scope : scopes)
    for (const auto &[name, symbol] : scope)
      if (symbol.kind == kind)
        names.push_back(name);
  llvm::sort(
      names); // The order of a hash table must not choose the suggestion.
  return names;
}

bool Checker::reportOrder(const ast::Identifier &name) {
  if (name.text == current.text) {
    diags.report<diag::RecursiveCall>(name.range, name.text)
        .note(current.range, "declared here");
    return true;
  }
  auto found = later.find(name.text);
  if (found == later.end())
    return false;
  diags.report<diag::UsedBeforeDeclared>(name.range, name.text)
      .note(found->second, "declared here");
  return true;
}

// ---- Expressions ----

Type Checker::set(const ast::Expr *expr, Type type, ExprInfo::Ref ref,
                  uint32_t index) {
  module.exprs[expr->id] = {type, ref, index};
  return type;
}

bool Checker::fits(Type actual, Type wanted) {
  return actual == wanted || actual == Type::Error || wanted == Type::Error ||
         (actual == Type::Int && wanted == Type::Float);
}

void Checker::expect(const ast::Expr *expr, Type wanted, StringRef what) {
  Type actual = check(expr);
  if (!fits(actual, wanted))
    diags.report<diag::TypeMismatch>(expr->range, what, typeName(wanted),
                                     typeName(actual));
}

Type Checker::check(const ast::Expr *expr) {
  evalDepth = std::max(evalDepth, ++nowDepth);
  Type result = checkNode(expr);
  --nowDepth;
  return result;
}

Type Checker::checkNode(const ast::Expr *expr) {
  using ast::ExprKind;
  switch (expr->kind) {
  case ExprKind::Int:
    return set(expr, Type::Int);
  case ExprKind::Float:
    return set(expr, Type::Float);
  case ExprKind::Bool:
    return set(expr, Type::Bool);
  case ExprKind::Name:
    return name(cast<ast::NameExpr>(expr));
  case ExprKind::Call:
    return call(cast<ast::CallExpr>(expr));
  case ExprKind::Unary: {
    auto *unary = cast<ast::UnaryExpr>(expr);
    Type operand = check(unary->operand);
    bool isNot = unary->op == ast::UnaryOp::Not;
    if (operand != Type::Error &&
        (isNot ? operand != Type::Bool : !isNumber(operand))) {
      diags.report<diag::BadOperands>(unary->range, spelling(unary->op),
                                      typeName(operand));
      return set(expr, isNot ? Type::Bool : Type::Error);
    }
    return set(expr, operand);
  }
  case ExprKind::Binary:
    return binary(cast<ast::BinaryExpr>(expr));
  case ExprKind::Conditional: {
    auto *conditional = cast<ast::ConditionalExpr>(expr);
    expect(conditional->condition, Type::Bool, "the condition of `?:`");
    Type then = check(conditional->then),
         otherwise = check(conditional->otherwise);
    std::optional<Type> common = join(then, otherwise);
    if (!common)
      diags.report<diag::TypeMismatch>(conditional->otherwise->range,
                                       "the other side of `?:`", typeName(then),
                                       typeName(otherwise));
    return set(expr, common.value_or(Type::Error));
  }
  }
  llvm_unreachable("all kinds are handled");
}

std::optional<Type> Checker::join(Type a, Type b) {
  if (a == Type::Error || b == Type::Error)
    return Type::Error;
  if (a == b)
    return a;
  if (isNumber(a) && isNumber(b))
    return Type::Float;
  return std::nullopt;
}

Type Checker::binary(const ast::BinaryExpr *expr) {
  using ast::BinaryOp;
  Type lhs = check(expr->lhs), rhs = check(expr->rhs);
  std::optional<Type> common = join(lhs, rhs);
  bool isCompare = expr->op >= BinaryOp::Eq && expr->op <= BinaryOp::Ge;
  bool isLogic = expr->op == BinaryOp::And || expr->op == BinaryOp::Or;
  bool isEquality = expr->op == BinaryOp::Eq || expr->op == BinaryOp::Ne;
  Type result =
      isCompare || isLogic ? Type::Bool : common.value_or(Type::Error);
  if (common == Type::Error)
    return set(expr, result);
  bool ok = common &&
            (isLogic ? *common == Type::Bool : isEquality || isNumber(*common));
  if (ok && expr->op == BinaryOp::Mod)
    ok = *common == Type::Int;
  if (!ok) {
    std::string types =
        lhs == rhs ? typeName(lhs).str()
                   : fmt::format("{} and {}", typeName(lhs), typeName(rhs));
    diags.report<diag::BadOperands>(expr->opRange, spelling(expr->op), types);
    return set(expr, isCompare || isLogic ? Type::Bool : Type::Error);
  }
  return set(expr, result);
}

Type Checker::name(const ast::NameExpr *expr) {
  if (Symbol *symbol = lookup(expr->name)) {
    if (symbol->kind == Symbol::Kind::Value)
      return set(expr, symbol->type, symbol->ref, symbol->index);
    diags.report<diag::WrongArgumentCount>(expr->range, expr->name, "arguments",
                                           "none are");
    return Type::Error;
  }
  if (const BuiltinRow *row = findBuiltin(expr->name)) {
    // `padded` and `pending` stand for all of the rank.
    if (row->id < Builtin::Pending) {
      diags.report<diag::WrongArgumentCount>(expr->range, expr->name,
                                             "arguments", "none are");
      return Type::Error;
    }
    needRank(expr->name, expr->range);
    return set(expr, Type::Int, ExprInfo::Ref::Builtin,
               static_cast<uint32_t>(row->id));
  }
  if (!reportOrder({expr->name, expr->range}))
    diags.report<diag::UnknownName>(
        expr->range, expr->name,
        didYouMean(expr->name, visible(Symbol::Kind::Value)));
  return Type::Error;
}

void Checker::needRank(StringRef name, SourceRange range) {
  if (!onRank)
    diags.report<diag::OnlyOnRank>(range, name);
}

void Checker::wrongCount(const ast::Identifier &name, std::string takes,
                         size_t given) {
  diags.report<diag::WrongArgumentCount>(
      name.range, name.text, takes,
      fmt::format("{} {}", given, given == 1 ? "is" : "are"));
}

Type Checker::call(const ast::CallExpr *expr) {
  if (const BuiltinRow *row = findBuiltin(expr->callee.text))
    return builtin(expr, row->id);
  Symbol *symbol = lookup(expr->callee.text);
  if (!symbol || symbol->kind != Symbol::Kind::Function) {
    for (const ast::Expr *arg : expr->args)
      check(arg);
    if (!reportOrder(expr->callee)) {
      std::vector<StringRef> names = visible(Symbol::Kind::Function);
      for (const BuiltinRow &row : builtins)
        names.push_back(row.name);
      diags.report<diag::UnknownFunction>(expr->callee.range, expr->callee.text,
                                          didYouMean(expr->callee.text, names));
    }
    return Type::Error;
  }
  uint32_t index = symbol->index;
  const Function &function = module.functions[index];
  arguments(expr->callee, function.params, expr->args);
  deepen(function.depth, expr->callee.range);
  return set(expr, function.result, ExprInfo::Ref::Function, index);
}

std::string Checker::argumentCount(size_t count) {
  return fmt::format("{} argument{}", count, count == 1 ? "" : "s");
}

void Checker::arguments(const ast::Identifier &name, ArrayRef<Type> params,
                        ArrayRef<const ast::Expr *> args) {
  if (args.size() != params.size())
    wrongCount(name, argumentCount(params.size()), args.size());
  for (size_t i = 0; i != args.size(); ++i)
    expect(args[i], i < params.size() ? params[i] : Type::Error,
           "this argument");
}

void Checker::deepen(uint32_t depth, SourceRange range) {
  evalDepth = std::max(evalDepth, nowDepth + depth);
  if (evalDepth > maxDepth) {
    diags.report<diag::CallsTooDeep>(range, maxDepth);
    evalDepth = 0;
  }
}

Type Checker::builtin(const ast::CallExpr *expr, Builtin id) {
  ArrayRef<const ast::Expr *> args = expr->args;
  Type result = Type::Int;
  if (isCounter(id)) {
    needRank(expr->callee.text, expr->callee.range);
    size_t chunk = id == Builtin::Issued ? 1 : 0;
    if (args.size() < chunk || args.size() > chunk + 1) {
      wrongCount(expr->callee,
                 chunk ? "an action and perhaps a chunk" : "a chunk or a pipe",
                 args.size());
      return set(expr, result);
    }
    if (chunk)
      actionArgument(args[0]);
    if (args.size() > chunk)
      chunkArgument(args[chunk]);
  } else if (id == Builtin::Layout) {
    if (args.empty() || args.size() > 2)
      wrongCount(expr->callee, "a layer and perhaps a stage", args.size());
    if (!args.empty())
      layerArgument(args[0]);
    for (const ast::Expr *stage : args.drop_front(args.empty() ? 0 : 1))
      expect(stage, Type::Int, "a stage");
  } else if (id == Builtin::Abs ? args.size() != 1 : args.size() < 2) {
    wrongCount(expr->callee,
               id == Builtin::Abs ? "1 argument" : "2 arguments or more",
               args.size());
    return set(expr, Type::Error);
  } else {
    for (const ast::Expr *arg : args) {
      Type argType = check(arg);
      if (argType != Type::Error && !isNumber(argType))
        diags.report<diag::TypeMismatch>(arg->range, "this argument",
                                         "a number", typeName(argType));
      result = join(result, argType).value_or(Type::Error);
    }
  }
  return set(expr, result, ExprInfo::Ref::Builtin, static_cast<uint32_t>(id));
}

void Checker::actionArgument(const ast::Expr *expr) {
  auto *name = dyn_cast<ast::NameExpr>(expr);
  std::optional<KindId> kind = name ? computeKind(name->name) : std::nullopt;
  if (!kind)
    diags.report<diag::UnknownAction>(expr->range, source(expr), "");
  else
    set(expr, Type::Int, ExprInfo::Ref::None, kind->value);
}

void Checker::layerArgument(const ast::Expr *expr) {
  auto *name = dyn_cast<ast::NameExpr>(expr);
  if (!name || name->name.size() != 1 || !llvm::isAlpha(name->name[0]))
    diags.report<diag::TypeMismatch>(expr->range, "the layer of `layout`",
                                     "a letter", "`" + source(expr) + "`");
  else
    set(expr, Type::Int, ExprInfo::Ref::None, name->name[0]);
}

void Checker::chunkArgument(const ast::Expr *expr) {
  Type actual = check(expr);
  if (actual != Type::Int && actual != Type::Pipe && actual != Type::Error)
    diags.report<diag::TypeMismatch>(expr->range, "a chunk", "an int or a pipe",
                                     typeName(actual));
}

std::optional<KindId> Checker::computeKind(StringRef letters) const {
  std::optional<KindId> kind = module.kinds.find(letters);
  return kind && module.kinds[*kind].isCompute() ? kind : std::nullopt;
}
