// Binds parameters, and evaluates the head of a schedule up to its pipes.
#include "Instantiate.h"

#include "ppcc/IR/Program.h"

#include "llvm/ADT/MapVector.h"

using namespace ppcc;
using namespace ppcc::sema;

namespace {

/// The names of parameters, `let` and pipes in an expression, and in the
/// functions that it calls.
class GlobalNames {
public:
  GlobalNames(const Module &module, const ast::Expr *expr, bool intoCalls)
      : module(module), intoCalls(intoCalls) {
    collect(expr);
  }
  bool anyOf(const BitVector &slots) const {
    return llvm::any_of(bySlot,
                        [&](const auto &name) { return slots[name.first]; });
  }

  /// One a slot, in the order of the text.
  llvm::MapVector<uint32_t, const ast::NameExpr *> bySlot;

private:
  void collect(const ast::Expr *expr) {
    const ExprInfo &info = module.exprs[expr->id];
    if (auto *name = dyn_cast<ast::NameExpr>(expr);
        name && info.ref == ExprInfo::Ref::Global)
      bySlot.insert({info.index, name});
    forEachChild(expr, [this](const ast::Expr *child) { collect(child); });
    if (intoCalls && info.ref == ExprInfo::Ref::Function &&
        functions.insert(info.index).second)
      collect(module.functions[info.index].item->value);
  }

  const Module &module;
  bool intoCalls;
  DenseSet<uint32_t> functions;
};

struct HeadEvaluator {
  const Declaration &declaration;
  const Schedule *schedule; ///< Null for a model or a cluster.
  const InstantiationContext &context;
  Evaluator &evaluator = context.evaluator;
  DiagnosticEngine &diags = context.diags;
  Head &head = context.head;

  /// `values` are those that are given, null for the default.
  void bind(ArrayRef<const ParamValue *> values) {
    for (size_t i = 0; i != declaration.params.size(); ++i) {
      const ScheduleParam &param = declaration.params[i];
      size_t slot = declaration.firstGlobal + i;
      set(param, slot, valueOf(param, values[i]),
          values[i] ? nullptr : param.decl->defaultValue,
          param.decl->name.range);
      head.params.push_back(
          {nameOf(param), typeName(param.type).str(),
           evaluator.text(param.type, evaluator.globals[slot])});
    }
  }

  /// Whether parameters have values, though perhaps not in their ranges.
  bool isKnown() const { return unknown.none(); }

  /// `before`: the errors that there were.
  void evaluate(size_t before) {
    size_t nextLet = 0, nextUse = 0;
    for (const ast::Stmt *item : declaration.header) {
      evaluator.clearFailed();
      if (auto *l = dyn_cast<ast::LetStmt>(item)) {
        let(*l, declaration.letSlots[nextLet++]);
      } else if (isa<ast::UseScheduleItem>(item)) {
        use(schedule->uses[nextUse++]);
      } else if (auto *r = dyn_cast<ast::RequireItem>(item)) {
        require(*r);
      } else if (diags.errorCount() != before) {
        continue; // A `require` has said it in the words of the schedule.
      } else if (auto *ranks = dyn_cast<ast::RanksItem>(item)) {
        head.numRanks = uint32_t(evaluator.evalInRange(
            ranks->count, "the number of ranks", 1, Program::maxRanks));
        evaluator.numRanks = head.numRanks;
      } else {
        head.hasBackward =
            evaluator.evalBool(cast<ast::BackwardItem>(item)->condition);
      }
    }
  }

  /// With `model.` in front where the schedule has a parameter of that name.
  std::string nameOf(const ScheduleParam &param) const {
    std::string name = param.decl->name.text.str();
    if (schedule || !findBy(head.params, name, &ProgramParam::name))
      return name;
    return static_cast<const Section &>(declaration).word().str() + "." + name;
  }

  /// Gives the parameters of an imported schedule their values.
  void use(const Use &use) {
    const Schedule &other = module.known[use.schedule];
    for (auto [i, param] : llvm::enumerate(other.params)) {
      const ast::Expr *arg = use.args[i];
      const ast::Expr *from = arg ? arg : param.decl->defaultValue;
      set(param, other.firstGlobal + i, valueOf(from, param.type), from,
          arg ? arg->range : param.decl->name.range);
    }
  }

  /// `from` is null where the value comes from outside.
  void set(const ScheduleParam &param, size_t slot, std::optional<Value> value,
           const ast::Expr *from, SourceRange place) {
    if (!value)
      unknown.set(slot);
    evaluator.globals[slot] = value.value_or(
        isList(param.type) ? evaluator.makeList({}) : Value{.i = 0});
    if (!value)
      return;
    evaluator.notify(param.decl->name, param.type, *value);
    checkRange(param, slot, *value, from, place);
  }

  /// Doubts the value of a parameter that is not in its range, unless the range
  /// follows from one that is not itself.
  void checkRange(const ScheduleParam &param, size_t slot, Value value,
                  const ast::Expr *from, SourceRange place) {
    for (const ast::Expr *expr : {param.decl->lowerBound, param.decl->end})
      if (expr && dependsOn(expr, unknown, outOfRange))
        return;
    if (from && dependsOn(from, outOfRange)) {
      outOfRange.set(slot);
      return;
    }
    evaluator.clearFailed();
    if (!isInRange(*param.decl, param.type, value, place, evaluator, diags))
      outOfRange.set(slot);
  }

  /// Nothing where it has no value, or follows from a parameter that has none.
  std::optional<Value> valueOf(const ast::Expr *expr, Type type) {
    evaluator.clearFailed();
    if (dependsOn(expr, unknown))
      return std::nullopt;
    Value value = evaluator.evalAs(expr, type);
    return evaluator.failed() ? std::nullopt : std::optional(value);
  }

  /// Nothing, and a report, when there is none; no report when the default
  /// follows from a parameter that has none.
  std::optional<Value> valueOf(const ScheduleParam &param,
                               const ParamValue *given) {
    const ast::Parameter &decl = *param.decl;
    if (given) {
      std::optional<Value> value = evaluator.parse(param.type, given->value);
      if (!value)
        diags.report<diag::BadParameterValue>(Location("-D " + given->name),
                                              given->value, decl.name.text,
                                              typeName(param.type));
      return value;
    }
    if (!decl.defaultValue)
      return diags.report<diag::MissingParameter>(decl.name.range,
                                                  decl.name.text);
    return valueOf(decl.defaultValue, param.type);
  }

  void let(const ast::LetStmt &item, uint32_t slot) {
    if (!dependsOn(item.value, unknown, rejected, outOfRange))
      evaluator.globals[slot] = evaluator.eval(item.value);
    else
      unknown.set(slot);
    if (evaluator.failed())
      unknown.set(slot);
    else
      evaluator.notify(item.name, evaluator.type(item.value),
                       evaluator.globals[slot]);
  }

  void require(const ast::RequireItem &item) {
    if (dependsOn(item.condition, unknown, outOfRange) ||
        evaluator.evalBool(item.condition) || evaluator.failed())
      return;
    std::string condition = source(item.condition);
    auto builder = diags.report<diag::RequireFailed>(
        item.condition->range,
        item.message.empty() ? fmt::format("`{}` does not hold", condition)
                             : item.message.str());
    std::vector<std::string> values;
    for (auto [slot, name] :
         GlobalNames(module, item.condition, false).bySlot) {
      rejected.set(slot);
      if (evaluator.type(name) == Type::PipeList)
        continue; // Not made yet.
      values.push_back(fmt::format("{} = {}", name->name, describe(name)));
    }
    if (values.empty())
      builder.note({}, "`{}` is false", condition);
    else
      builder.note({}, "`{}` is false with {}", condition,
                   llvm::join(values, ", "));
  }

  /// Whether an expression follows from some of these globals.
  template <class... Sets>
  bool dependsOn(const ast::Expr *expr, const Sets &...slots) const {
    GlobalNames names(module, expr, true);
    return (names.anyOf(slots) || ...);
  }

  std::string describe(const ast::NameExpr *name) {
    Value value = evaluator.eval(name);
    Type type = evaluator.type(name);
    if (type != Type::Pipe && type != Type::Part)
      return evaluator.text(type, value);
    size_t i = value.i, pipes = schedule->pipes.size();
    return i < pipes ? schedule->pipes[i].name.str()
                     : schedule->parts[i - pipes].name.text.str();
  }

  const Module &module = evaluator.module;
  /// Globals without a value, and those that a `require` refuses: what follows
  /// from them would be said twice.
  BitVector unknown = BitVector(declaration.numGlobals), rejected = unknown;
  BitVector outOfRange = unknown; ///< Parameters that are not in their range.
};

} // namespace

/// The parameters that `-D NAME=VALUE` may mean: `model.NAME` are those of the
/// model alone.
static std::vector<std::pair<size_t, size_t>>
candidates(StringRef name, ArrayRef<Owner> owners) {
  std::vector<std::pair<size_t, size_t>> found;
  for (auto [i, owner] : llvm::enumerate(owners))
    for (auto [j, param] : llvm::enumerate(owner.declaration->params))
      if (param.decl->name.text == name ||
          name == (owner.word + "." + param.decl->name.text).str())
        found.push_back({i, j});
  return found;
}

std::vector<GivenValues> sema::assignValues(ArrayRef<ParamValue> values,
                                            ArrayRef<Owner> owners,
                                            DiagnosticEngine &diags) {
  std::vector<GivenValues> given;
  std::vector<StringRef> names;
  for (const Owner &owner : owners) {
    given.emplace_back(owner.declaration->params.size());
    for (const ScheduleParam &param : owner.declaration->params)
      names.push_back(param.decl->name.text);
  }
  for (const ParamValue &value : values) {
    Location place("-D " + value.name);
    auto found = candidates(value.name, owners);
    if (found.empty()) {
      std::string meant = didYouMean(value.name, names);
      auto builder = diags.report<diag::UnknownParameter>(
          place, owners.front().declaration->name, value.name, meant);
      if (meant.empty() && !names.empty())
        builder.note({}, "the parameters are {}", listed(names));
    } else if (found.size() > 1) {
      StringRef other = owners[found[1].first].word;
      diags
          .report<diag::AmbiguousParameter>(place, owners[found[0].first].word,
                                            other, value.name)
          .note({}, "write `-D {}.{}={}`", other, value.name, value.value);
    } else if (const ParamValue *&at = given[found[0].first][found[0].second]) {
      diags.report<diag::ParameterGivenTwice>(place, value.name);
    } else {
      at = &value;
    }
  }
  return given;
}

bool sema::hasParameter(StringRef name, ArrayRef<Owner> owners) {
  return !candidates(name, owners).empty();
}

bool sema::isInRange(const ast::Parameter &param, Type type, Value value,
                     const Location &place, Evaluator &evaluator,
                     DiagnosticEngine &diags) {
  if (!param.lowerBound)
    return true;
  Type element = elementType(type);
  Value lowerBound = evaluator.evalAs(param.lowerBound, element), end{.i = 0};
  if (param.end)
    end = evaluator.eval(param.end);
  if (evaluator.failed())
    return false;
  SmallVector<Value> values{value};
  if (isList(type))
    values.assign(evaluator.elements(value).begin(),
                  evaluator.elements(value).end());
  auto lies = [&](Value one) {
    return element == Type::Float
               ? one.f >= lowerBound.f
               : one.i >= lowerBound.i && (!param.end || one.i < end.i);
  };
  auto wrong = llvm::find_if_not(values, lies);
  if (wrong == values.end())
    return true;
  std::string wanted =
      param.end ? fmt::format("be in {} .. {}", lowerBound.i, end.i)
                : "be at least " + evaluator.text(element, lowerBound);
  auto builder = diags.report<diag::ParameterRange>(
      place, param.name.text, evaluator.text(type, value), wanted);
  SourceRange range{param.lowerBound->range.begin,
                    (param.end ? param.end : param.lowerBound)->range.end};
  if (place.range.begin != param.name.range.begin)
    builder.note(range, "its range is here");
  if (param.end)
    builder.note({}, "a range excludes its end");
  return false;
}

void sema::evaluateHead(const Declaration &declaration,
                        const Schedule *schedule, const GivenValues &values,
                        const InstantiationContext &context) {
  size_t before = context.diags.errorCount();
  HeadEvaluator evaluator{declaration, schedule, context};
  evaluator.bind(values);
  if (context.diags.errorCount() == before || evaluator.isKnown())
    evaluator.evaluate(before);
}
