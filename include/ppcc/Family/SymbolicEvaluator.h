// Evaluates expressions, and runs the body of a rank, on numbers that stand for
// many.
#pragma once

#include "ppcc/Model/RankBody.h"

namespace ppcc::family {

/// A value; its type is known from the expression.
template <class Number> struct SymbolicValue {
  Number i{};
  double f = 0;
};

/// What expressions see and are worth. `AbstractDomain` answers questions to
/// its numbers: isNonNegative, isZero, product, quotient, remainder, constant.
/// Where an answer is not one for all that they stand for, it does not come
/// back, as from `refuse`, which learns whether the schedule is wrong.
template <class AbstractDomain>
class SymbolicEvaluator
    : public sema::Interpreter<SymbolicEvaluator<AbstractDomain>,
                               SymbolicValue<typename AbstractDomain::Number>> {
public:
  using Number = typename AbstractDomain::Number;
  using AbstractValue = SymbolicValue<Number>;
  using Base = sema::Interpreter<SymbolicEvaluator, AbstractValue>;
  using Type = sema::Type;
  using Builtin = sema::Builtin;
  using Base::elements, Base::evalAs, Base::evalBool, Base::evalFloat,
      Base::evalInt, Base::globals, Base::makeList, Base::module, Base::slotOf,
      Base::step;

  virtual ~SymbolicEvaluator() = default;

  static bool failed() { return false; }

  AbstractDomain numbers;

protected:
  template <class... Args>
  SymbolicEvaluator(const sema::Module &module, const sema::Instance *sample,
                    Args &&...args)
      : Base(module, AbstractDomain::maxSteps),
        numbers(std::forward<Args>(args)...), sample(sample) {
    if (sample && !sample->program.stageLayers.empty())
      this->layers.emplace(sample->program.stageLayers);
  }

  /// Gives the globals of a head their values, parameters those of `free` or
  /// that are given. Ends where the numbers are not admitted.
  void head(const sema::Schedule &schedule, ArrayRef<sema::ParamValue> given,
            function_ref<const Number *(size_t)> free) {
    globals.resize(schedule.numGlobals);
    this->stack.resize(std::max(schedule.headerLocals, module.numLocals));
    for (auto [i, param] : llvm::enumerate(schedule.params)) {
      AbstractValue &value = globals[schedule.firstGlobal + i];
      auto text = findBy(llvm::reverse(given), param.decl->name.text,
                         &sema::ParamValue::name);
      if (const Number *number = free(i))
        value.i = *number;
      else if (text)
        value = this->parse(param.type, text->value).value_or(AbstractValue());
      else if (param.decl->defaultValue)
        value = evalAs(param.decl->defaultValue, param.type);
      inRange(*param.decl, param.type, value);
    }
    for (auto [i, slot] : llvm::enumerate(schedule.pipeSlots))
      if (!schedule.pipes[i].loop)
        globals[slot].i = int64_t(i);
    int64_t number = schedule.pipes.size();
    for (const sema::PartName &part : schedule.parts)
      globals[part.slot].i = number++;
    auto slot = schedule.letSlots.begin();
    auto used = schedule.uses.begin();
    for (const ast::Stmt *item : schedule.header)
      if (auto *let = dyn_cast<ast::LetStmt>(item))
        globals[*slot++] = this->eval(let->value);
      else if (isa<ast::UseScheduleItem>(item))
        use(*used++);
      else if (auto *require = dyn_cast<ast::RequireItem>(item))
        if (!evalBool(require->condition))
          AbstractDomain::exclude(require->condition->range,
                                  require->message.empty()
                                      ? "`" + sema::source(require->condition) +
                                            "` does not hold"
                                      : require->message.str());
  }

  /// Runs an iteration of a loop, of a number.
  using LoopBody = function_ref<void(const Number &)>;

  /// The value of a counter, such as `issued(F, c)`.
  virtual AbstractValue counterValue(Builtin id, KindId kind,
                                     const std::optional<sema::ChunkArg> &arg,
                                     SourceRange place) = 0;
  virtual void loop(const ast::Stmt *stmt, const Number &iterations,
                    LoopBody runBody) = 0;

  const sema::Instance *sample; ///< Of all that numbers stand for, but for what
                                ///< depends on them.

private:
  friend Base;
  static constexpr uint64_t nodesPerStep = 1;

  static void notify(const ast::Identifier &, Type, const AbstractValue &) {}
  static Number literal(int64_t value, SourceRange range) {
    return AbstractDomain::checked(value, range);
  }
  int64_t constant(const Number &number, SourceRange range,
                   StringRef what) const {
    return numbers.constant(number, range, what);
  }
  bool isLess(const Number &a, const Number &b, SourceRange range) {
    return !numbers.isNonNegative(a - b, range);
  }
  bool isEqual(const Number &a, const Number &b, SourceRange range) {
    return numbers.isZero(a - b, range);
  }
  AbstractValue arithmetic(const ast::Expr *expr, ast::BinaryOp op,
                           const Number &a, const Number &b) {
    using ast::BinaryOp;
    SourceRange at = expr->range;
    return {.i = op == BinaryOp::Add   ? AbstractDomain::checked(a + b, at)
                 : op == BinaryOp::Sub ? AbstractDomain::checked(a - b, at)
                 : op == BinaryOp::Mul ? numbers.product(a, b, at)
                 : op == BinaryOp::Div ? numbers.quotient(a, b, at)
                                       : numbers.remainder(a, b, at)};
  }
  template <class Iteration>
  bool runLoop(const ast::Stmt *stmt, const Number &from, const Number &to,
               const Iteration &iteration) {
    loop(stmt, to - from, [&](const Number &i) { iteration(from + i); });
    return true;
  }

  [[noreturn]] bool outOfSteps(SourceRange range) {
    AbstractDomain::refuse(false, range, "it takes too many steps");
  }
  template <diag::Id id, class... Args>
  [[noreturn]] AbstractValue invalid(SourceRange range, Args &&...) {
    AbstractDomain::refuse(
        id != diag::NoLayout, range,
        id == diag::DivisionByZero ? "it divides by zero"
        : id == diag::NoLayout     ? "it asks for the layout"
        : id == diag::PipesNotMade ? "the pipes are not made yet"
        : id == diag::EmptyList    ? "the list is empty"
        : id == diag::NotInList    ? "the list has no such element"
        : id == diag::OutOfRange   ? "there is no such stage"
                                   : "a float overflows");
  }
  template <diag::Id id, class... Args>
  [[noreturn]] AbstractValue reportWithCalls(SourceRange range, SourceRange,
                                             Args &&...) {
    invalid<id>(range);
  }

  /// Gives the parameters of an imported schedule their values.
  void use(const sema::Use &use) {
    const sema::Schedule &other = module.known[use.schedule];
    for (auto [i, param] : llvm::enumerate(other.params)) {
      AbstractValue &value = globals[other.firstGlobal + i];
      value = evalAs(use.args[i] ? use.args[i] : param.decl->defaultValue,
                     param.type);
      inRange(*param.decl, param.type, value);
    }
  }

  /// The range of a parameter, which numbers may be outside of.
  void inRange(const ast::Parameter &param, Type type,
               const AbstractValue &value) {
    if (sema::isList(type)) // Bounds may make lists.
      for (AbstractValue element : llvm::to_vector(elements(value)))
        inRange(param, Type::Int, element);
    else if (param.lowerBound &&
             !(type == Type::Float
                   ? value.f >= evalFloat(param.lowerBound)
                   : numbers.isNonNegative(value.i - evalInt(param.lowerBound),
                                           param.lowerBound->range) &&
                         (!param.end || numbers.isNonNegative(
                                            evalInt(param.end) - value.i - 1,
                                            param.end->range))))
      AbstractDomain::exclude(param.name.range, "`" + param.name.text.str() +
                                                    "` is not in its range");
  }
};

/// Runs the body of a rank; an `Entry` of its queue may stand for many actions.
template <class Run, class AbstractDomain, class Chunk, class Entry>
class SymbolicBody
    : public SymbolicEvaluator<AbstractDomain>,
      protected sema::RankBody<Run, SymbolicEvaluator<AbstractDomain>, Chunk,
                               std::vector<Entry>> {
protected:
  using Evaluator = SymbolicEvaluator<AbstractDomain>;
  using Body = sema::RankBody<Run, Evaluator, Chunk, std::vector<Entry>>;
  using typename Body::State;
  using Number = typename Evaluator::Number;

  template <class... Args>
  SymbolicBody(const sema::Module &module, const sema::Instance *sample,
               Args &&...args)
      : Evaluator(module, sample, std::forward<Args>(args)...),
        Body(static_cast<Evaluator &>(*this)) {}

  using Body::run;
  bool run(const ast::DeferStmt *stmt) {
    if (!stmt->fill.text.empty() || stmt->cap)
      AbstractDomain::refuse(false, stmt->range, "what is deferred fills gaps");
    return Body::run(stmt);
  }
  bool isOverdue(SourceRange range) {
    return !this->state.queue.empty() &&
           this->numbers.isNonNegative(
               static_cast<Run &>(*this).pendingOf(nullptr, range) -
                   *this->defer.lag - 1,
               range);
  }

  // ---- The effect of a loop ----

  /// All that iterations of a loop change, but for the shape of the queue.
  static std::vector<Number *> numbersOf(State &state) {
    std::vector<Number *> all;
    for (Number &count : state.issued)
      all.push_back(&count);
    for (Entry &entry : state.queue)
      entry.addNumbers(all);
    return all;
  }
  /// By how much an iteration changes each number.
  static State difference(State before, State after, SourceRange range,
                          const char *why) {
    State change = before;
    for (auto [by, from, to] : llvm::zip_equal(
             numbersOf(change), numbersOf(before), numbersOf(after))) {
      *by = *to - *from;
      if (!by->isConstant())
        AbstractDomain::refuse(false, range, why);
    }
    return change;
  }
  /// The state after `iterations` iterations.
  State moved(State state, State change, const Number &iterations) const {
    for (auto [number, by] :
         llvm::zip_equal(numbersOf(state), numbersOf(change)))
      *number = *number + this->numbers.constant(*by, {}, "") * iterations;
    return state;
  }
};

} // namespace ppcc::family
