// Computes checked expressions on integers.
#pragma once

#include "ppcc/Sema/Interpreter.h"
#include "ppcc/Sema/Observer.h"

namespace ppcc::sema {

/// A value; its type is known from the expression.
union Value {
  int64_t i; ///< Also a bool, 0 or 1, and a pipe's number.
  double f;
};

/// Tells a counter of the rank that is being laid out: Issued (of a kind),
/// Pending or Padded. Reports what is wrong with the chunk and then gives
/// nothing. Without a chunk it is of all of the rank, or Issued of its only
/// one.
using Counter = function_ref<std::optional<int64_t>(
    Builtin id, KindId kind, const std::optional<ChunkArg> &chunk,
    SourceRange range)>;

/// Evaluates on integers. Errors are reported once a place and then seen in
/// failed(); the value of a failed evaluation means nothing.
class Evaluator : public Interpreter<Evaluator, Value> {
public:
  Evaluator(const Module &module, DiagnosticEngine &diags, uint64_t maxSteps)
      : Interpreter(module, maxSteps), diags(diags) {}

  /// As it is given on the command line; of a list `most` elements.
  std::string text(Type type, Value value, size_t maxElements = SIZE_MAX) const;
  /// Tells the observer, if there is one, of the value of a name.
  void notify(const ast::Identifier &name, Type type, Value value) const {
    if (observer)
      observer->value(name.range, [&] { return text(type, value, 32); });
  }

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

  Counter counter;
  Observer *observer = nullptr;
  uint32_t numRanks = 0;      ///< 0 until it is known.
  std::optional<RankId> rank; ///< Whose body is evaluated.

private:
  friend Interpreter;
  static constexpr uint64_t nodesPerStep = 16;

  static int64_t literal(int64_t value, SourceRange) { return value; }
  static int64_t constant(int64_t value, SourceRange, StringRef) {
    return value;
  }
  static bool isLess(int64_t a, int64_t b, SourceRange) { return a < b; }
  static bool isEqual(int64_t a, int64_t b, SourceRange) { return a == b; }
  Value arithmetic(const ast::Expr *expr, ast::BinaryOp op, int64_t lhs,
                   int64_t rhs);
  Value counterValue(Builtin id, KindId kind,
                     const std::optional<ChunkArg> &chunk, SourceRange range);
  template <class Iteration>
  bool runLoop(const ast::Stmt *, int64_t from, int64_t to,
               const Iteration &iteration) {
    for (int64_t i = from; i < to; ++i)
      if (!iteration(i))
        return false;
    return true;
  }

  bool outOfSteps(SourceRange range);
  template <diag::Id id, class... Args>
  Value invalid(SourceRange range, Args &&...args) {
    refuse<id>(range, std::forward<Args>(args)...);
    return {.i = 0};
  }
  /// Reports at `place`, once for `range`, with the calls that lead there.
  template <diag::Id id, class... Args>
  Value reportWithCalls(SourceRange range, SourceRange place, Args &&...args) {
    if (fail(id, range)) {
      auto builder = diags.report<id>(place, std::forward<Args>(args)...);
      noteCalls(builder);
    }
    return {.i = 0};
  }
  void warnOfRemainder(const ast::Expr *expr, int64_t lhs, int64_t rhs);
  void noteCalls(DiagnosticEngine::Builder &builder) const;

  DiagnosticEngine &diags;
  bool hasFailed = false, isOutOfSteps = false;
  DenseSet<std::pair<unsigned, unsigned>> reported;
};

extern template class Interpreter<Evaluator, Value>;

} // namespace ppcc::sema
