// Computes checked expressions.
#pragma once

#include "ppcc/Sema/Module.h"
#include "ppcc/Sema/Observer.h"

namespace ppcc::sema {

/// A value; its type is known from the expression.
union Value {
  int64_t i; ///< Also a bool, 0 or 1, and a pipe's number.
  double f;
};

/// The chunk that an argument names: by number, or as the rank's stage in a
/// pipe.
struct ChunkArg {
  SourceRange range;
  bool isPipe;
  int64_t value;
};

/// Tells a counter of the rank that is being laid out: Issued (of a kind),
/// Pending or Padded. Reports what is wrong with the chunk and then gives
/// nothing. Without a chunk it is of all of the rank, or Issued of its only
/// one.
using Counter = function_ref<std::optional<int64_t>(
    Builtin id, KindId kind, const std::optional<ChunkArg> &chunk,
    SourceRange range)>;

/// How many layers of each letter the stages have.
class LayerCounts {
public:
  /// Of a layout: the letters of each stage. O(layers + stages * letters).
  explicit LayerCounts(ArrayRef<std::string> layout);

  size_t numStages() const { return stages; }
  bool has(char letter) const { return !of(letter).empty(); }
  /// By stage; empty when no stage has one.
  ArrayRef<uint32_t> of(char letter) const {
    return counts[static_cast<unsigned char>(letter) & 0x7F];
  }
  int64_t total(char letter) const {
    return totals[static_cast<unsigned char>(letter) & 0x7F];
  }

private:
  size_t stages;
  std::array<std::vector<uint32_t>, 128> counts;
  std::array<int64_t, 128> totals{};
};

/// Evaluates expressions over globals and a stack of local frames. Errors are
/// reported once a place and then seen in failed(); the value of a failed
/// evaluation means nothing.
class Evaluator {
public:
  Evaluator(const Module &module, DiagnosticEngine &diags, uint64_t maxSteps)
      : module(module), diags(diags), maxSteps(maxSteps) {}

  Value eval(const ast::Expr *expr);
  int64_t evalInt(const ast::Expr *expr) { return eval(expr).i; }
  bool evalBool(const ast::Expr *expr) { return eval(expr).i != 0; }
  /// The value of an int or float expression.
  double evalFloat(const ast::Expr *expr);
  /// The value where one of type `wanted` is taken.
  Value evalAs(const ast::Expr *expr, Type wanted) {
    return wanted == Type::Float ? Value{.f = evalFloat(expr)} : eval(expr);
  }
  /// The value of an expression that must lie in low..high, both included; low,
  /// and a report about `what`, when it does not.
  int64_t evalInRange(const ast::Expr *expr, StringRef what, int64_t low,
                      int64_t high);
  /// The argument of an action or counter that names a chunk.
  ChunkArg evalChunk(const ast::Expr *expr);

  /// Counts a step of the evaluation against the limit. False, and reported,
  /// when the limit is reached.
  bool step(SourceRange range) {
    return ++steps <= maxSteps || outOfSteps(range);
  }
  /// The same for work on so many of something, of which a step holds a few.
  bool chargeWork(uint64_t amount, SourceRange range) {
    steps += amount / nodesPerStep;
    return step(range);
  }
  bool hasSteps() const { return steps <= maxSteps; }

  /// While it lives, there are other locals: `size` of them, `args` first.
  class Frame {
  public:
    Frame(Evaluator &evaluator, size_t size, ArrayRef<Value> args = {})
        : evaluator(evaluator),
          outer(std::exchange(evaluator.base, evaluator.stack.size())) {
      evaluator.stack.resize(evaluator.base + size);
      llvm::copy(args, evaluator.stack.begin() + evaluator.base);
    }
    ~Frame() {
      evaluator.stack.resize(evaluator.base);
      evaluator.base = outer;
    }
    Frame(const Frame &) = delete;

  private:
    Evaluator &evaluator;
    size_t outer;
  };
  Value &local(uint32_t slot) { return stack[base + slot]; }

  /// A list as a value. It is there until what was made after mark() is given
  /// up.
  Value makeList(ArrayRef<Value> elements);
  ArrayRef<Value> elements(Value list) const {
    return ArrayRef(lists).slice(list.i + 1, lists[list.i].i);
  }
  /// As it is given on the command line; of a list `most` elements.
  std::string text(Type type, Value value, size_t maxElements = SIZE_MAX) const;
  /// Tells the observer, if there is one, of the value of a name.
  void notify(const ast::Identifier &name, Type type, Value value) const {
    if (observer)
      observer->value(name.range, [&] { return text(type, value, 32); });
  }
  size_t mark() const { return lists.size(); }
  void release(size_t mark) { lists.resize(mark); }

  /// True when this diagnostic has not been reported at this place yet. Sets
  /// failed().
  bool fail(diag::Id id, SourceRange range) {
    hasFailed = true;
    return reported.insert({unsigned(id), range.begin.raw}).second;
  }
  /// Reports, once a place, and sets failed().
  template <diag::Id id, class... Args>
  void refuse(SourceRange range, Args &&...args) {
    if (fail(id, range))
      diags.report<id>(range, std::forward<Args>(args)...);
  }
  bool failed() const { return hasFailed; }
  void clearFailed() { hasFailed = false; }

  Type type(const ast::Expr *expr) const { return module.exprs[expr->id].type; }
  /// The local slot of the variable of a `let`, a `for` or an edge loop.
  uint32_t slotOf(uint32_t statement) const {
    return module.stmts[statement].index;
  }

  const Module &checkedModule() const { return module; }

  std::vector<Value> globals;
  Counter counter;
  Observer *observer = nullptr;
  std::optional<LayerCounts> layers; ///< Of the layout, if there is one.
  uint32_t numRanks = 0;             ///< 0 until it is known.
  std::optional<RankId> rank;        ///< Whose body is evaluated.

private:
  static constexpr uint64_t nodesPerStep = 16;

  bool outOfSteps(SourceRange range);
  Value of(const ast::IntExpr *expr) { return {.i = expr->value}; }
  Value of(const ast::FloatExpr *expr) { return {.f = expr->value}; }
  Value of(const ast::BoolExpr *expr) { return {.i = expr->value}; }
  Value of(const ast::NameExpr *expr);
  Value of(const ast::CallExpr *expr);
  Value of(const ast::UnaryExpr *expr);
  Value of(const ast::BinaryExpr *expr);
  Value of(const ast::ConditionalExpr *expr);
  Value of(const ast::ListExpr *expr);
  Value of(const ast::ListForExpr *expr);
  Value of(const ast::IndexExpr *expr);
  Value builtin(const ast::CallExpr *expr, Builtin id);
  Value ofValues(const ast::CallExpr *expr, Builtin id, ArrayRef<Value> values);
  Value layout(const ast::CallExpr *expr);
  Value count(Builtin id, KindId kind, const ast::Expr *chunk,
              SourceRange range);
  Value floatBinary(const ast::BinaryExpr *expr, double lhs, double rhs);
  Value intBinary(const ast::BinaryExpr *expr, int64_t lhs, int64_t rhs);
  Value negated(const ast::Expr *expr, int64_t value);
  /// Reports at `place`, once for `range`, with the calls that lead there.
  template <diag::Id id, class... Args>
  Value reportWithCalls(SourceRange range, SourceRange place, Args &&...args);
  void warnOfRemainder(const ast::BinaryExpr *expr, int64_t lhs, int64_t rhs);
  void noteCalls(DiagnosticEngine::Builder &builder) const;

  const Module &module;
  DiagnosticEngine &diags;
  const uint64_t maxSteps;
  uint64_t steps = 0, nodes = 0;
  bool hasFailed = false, isOutOfSteps = false;
  std::vector<Value> stack;
  std::vector<Value> lists; ///< Of each, the number of elements, and they.
  size_t base = 0;
  std::vector<const ast::CallExpr *> calls;
  DenseSet<std::pair<unsigned, unsigned>> reported;
};

} // namespace ppcc::sema
