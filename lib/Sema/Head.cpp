// Binds parameters, and evaluates the head of a schedule up to its pipes.
#include "Instantiate.h"

#include "ppcc/IR/Program.h"
#include "ppcc/Support/Suggest.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace ppcc;
using namespace ppcc::sema;
using llvm::ArrayRef;
using llvm::cast;
using llvm::dyn_cast;
using llvm::StringRef;

namespace {

std::string text(Type type, Value value) {
  switch (type) {
  case Type::Bool:
    return value.i ? "true" : "false";
  case Type::Float:
    return fmt::format("{}", value.f);
  default:
    return fmt::format("{}", value.i);
  }
}

std::optional<Value> parseValue(Type type, StringRef text) {
  Value value{.i = 0};
  switch (type) {
  case Type::Int:
    return text.getAsInteger(10, value.i) ? std::nullopt : std::optional(value);
  case Type::Float:
    return text.getAsDouble(value.f) || !std::isfinite(value.f)
               ? std::nullopt
               : std::optional(value);
  default:
    value.i = text == "true";
    return text == "true" || text == "false" ? std::optional(value)
                                             : std::nullopt;
  }
}

/// The names of parameters, `let` and pipes in an expression, and in the
/// functions that it calls.
class GlobalNames {
public:
  GlobalNames(const Module &module, const ast::Expr *expr, bool intoCalls)
      : module(module), intoCalls(intoCalls) {
    collect(expr);
  }
  bool anyOf(const llvm::BitVector &slots) const {
    return llvm::any_of(names, [&](const ast::NameExpr *name) {
      return slots.test(slotOf(name));
    });
  }
  uint32_t slotOf(const ast::NameExpr *name) const {
    return module.exprs[name->id].index;
  }

  /// One a slot, in the order of the text.
  llvm::SmallVector<const ast::NameExpr *> names;

private:
  void collect(const ast::Expr *expr) {
    if (auto *name = dyn_cast<ast::NameExpr>(expr))
      if (module.exprs[name->id].ref == ExprInfo::Ref::Global &&
          llvm::none_of(names, [&](const ast::NameExpr *known) {
            return slotOf(known) == slotOf(name);
          }))
        names.push_back(name);
    forEachChild(expr, [this](const ast::Expr *child) { collect(child); });
    const ExprInfo &info = module.exprs[expr->id];
    if (intoCalls && info.ref == ExprInfo::Ref::Function &&
        functions.insert(info.index).second)
      collect(module.functions[info.index].item->value);
  }

  const Module &module;
  bool intoCalls;
  llvm::DenseSet<uint32_t> functions;
};

class HeadEvaluator {
public:
  HeadEvaluator(const Schedule &schedule, Evaluator &evaluator, Head &program,
                DiagnosticEngine &diags)
      : schedule(schedule), module(evaluator.checkedModule()),
        evaluator(evaluator), program(program), diags(diags),
        unknown(schedule.numGlobals), doubted(schedule.numGlobals) {}

  void bind(ArrayRef<ParamValue> values) {
    std::vector<StringRef> names;
    for (const ScheduleParam &param : schedule.params)
      names.push_back(param.decl->name.text);
    std::vector<const ParamValue *> given(names.size());
    for (const ParamValue &value : values) {
      auto found = llvm::find(names, value.name);
      if (found == names.end())
        diags.report<diag::UnknownParameter>(Place("-D " + value.name),
                                             program.name, value.name,
                                             didYouMean(value.name, names));
      else if (const ParamValue *&place = given[found - names.begin()])
        diags.report<diag::ParameterGivenTwice>(Place("-D " + value.name),
                                                value.name);
      else
        place = &value;
    }
    for (size_t i = 0; i != names.size(); ++i) {
      const ScheduleParam &param = schedule.params[i];
      std::optional<Value> value = valueOf(param, given[i]);
      if (!value)
        unknown.set(i);
      evaluator.globals[i] = value.value_or(Value{.i = 0});
      program.params.push_back({names[i].str(), typeName(param.type).str(),
                                text(param.type, evaluator.globals[i])});
    }
  }

  void evaluate() {
    size_t before = diags.errorCount(), nextLet = 0;
    for (const ast::Stmt *item : schedule.header) {
      evaluator.clearFailed();
      if (auto *l = dyn_cast<ast::LetStmt>(item)) {
        let(*l, schedule.letSlots[nextLet++]);
      } else if (auto *r = dyn_cast<ast::RequireItem>(item)) {
        require(*r);
      } else if (diags.errorCount() != before) {
        continue; // A `require` has said it in the words of the schedule.
      } else if (auto *ranks = dyn_cast<ast::RanksItem>(item)) {
        program.numRanks = static_cast<uint32_t>(evaluator.evalInRange(
            ranks->count, "the number of ranks", 1, Program::maxRanks));
      } else {
        program.hasBackward =
            evaluator.evalBool(cast<ast::BackwardItem>(item)->condition);
      }
    }
  }

private:
  /// Nothing, and a report, when there is none; no report when the default
  /// follows from a parameter that has none.
  std::optional<Value> valueOf(const ScheduleParam &param,
                               const ParamValue *given) {
    const ast::Parameter &decl = *param.decl;
    if (given) {
      std::optional<Value> value = parseValue(param.type, given->value);
      if (!value)
        diags.report<diag::BadParameterValue>(Place("-D " + given->name),
                                              given->value, decl.name.text,
                                              typeName(param.type));
      return value;
    }
    if (!decl.defaultValue) {
      diags.report<diag::MissingParameter>(decl.name.range, decl.name.text);
      return std::nullopt;
    }
    if (GlobalNames(module, decl.defaultValue, true).anyOf(unknown))
      return std::nullopt;
    evaluator.clearFailed();
    Value value = evaluator.evalAs(decl.defaultValue, param.type);
    return evaluator.failed() ? std::nullopt : std::optional(value);
  }

  void let(const ast::LetStmt &item, uint32_t slot) {
    GlobalNames names(module, item.value, true);
    if (!names.anyOf(unknown) && !names.anyOf(doubted))
      evaluator.globals[slot] = evaluator.eval(item.value);
    else
      unknown.set(slot);
    if (evaluator.failed())
      unknown.set(slot);
  }

  void require(const ast::RequireItem &item) {
    if (GlobalNames(module, item.condition, true).anyOf(unknown) ||
        evaluator.evalBool(item.condition) || evaluator.failed())
      return;
    std::string condition = source(item.condition);
    auto builder = diags.report<diag::RequireFailed>(
        item.condition->range,
        item.message.empty() ? fmt::format("`{}` does not hold", condition)
                             : item.message.str());
    GlobalNames names(module, item.condition, false);
    std::string values;
    for (const ast::NameExpr *name : names.names) {
      doubted.set(names.slotOf(name));
      values += fmt::format("{}{} = {}", values.empty() ? "" : ", ", name->name,
                            describe(name));
    }
    if (values.empty())
      builder.note({}, "`{}` is false", condition);
    else
      builder.note({}, "`{}` is false with {}", condition, values);
  }

  std::string describe(const ast::NameExpr *name) {
    Value value = evaluator.eval(name);
    Type type = evaluator.type(name);
    if (type != Type::Pipe)
      return text(type, value);
    size_t i = value.i, pipes = schedule.pipes.size();
    return i < pipes ? schedule.pipes[i].name.str()
                     : schedule.modules[i - pipes].item->name.text.str();
  }

  const Schedule &schedule;
  const Module &module;
  Evaluator &evaluator;
  Head &program;
  DiagnosticEngine &diags;
  /// Globals without a value, and those that a `require` refuses: what follows
  /// from them would be said twice.
  llvm::BitVector unknown, doubted;
};

} // namespace

void sema::evaluateHead(const Schedule &schedule, ArrayRef<ParamValue> values,
                        Evaluator &evaluator, Head &program,
                        DiagnosticEngine &diags) {
  size_t before = diags.errorCount();
  HeadEvaluator head(schedule, evaluator, program, diags);
  head.bind(values);
  if (diags.errorCount() == before)
    head.evaluate();
}
