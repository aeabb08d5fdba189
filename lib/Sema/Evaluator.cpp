#include "ppcc/Sema/Evaluator.h"

#include "ppcc/Support/CheckedInt.h"

using namespace ppcc;
using namespace ppcc::sema;

LayerCounts::LayerCounts(ArrayRef<std::string> layout) : stages(layout.size()) {
  for (size_t stage = 0; stage != stages; ++stage)
    for (char letter : layout[stage]) {
      size_t index = static_cast<unsigned char>(letter) & 0x7F;
      counts[index].resize(stages);
      ++counts[index][stage];
      ++totals[index];
    }
}

bool Evaluator::outOfSteps(SourceRange range) {
  if (!std::exchange(isOutOfSteps, true))
    diags.report<diag::TooManySteps>(range, maxSteps);
  hasFailed = true;
  return false;
}

void Evaluator::noteCalls(DiagnosticEngine::Builder &builder) const {
  constexpr size_t shown = 4;
  for (const ast::CallExpr *call :
       llvm::reverse(ArrayRef(calls).take_back(shown)))
    builder.note(call->range, "in the call of `{}` here", call->callee.text);
  if (rank)
    builder.note({}, "in the body of rank {}", rank->value);
}

std::string Evaluator::text(Type type, Value value, size_t maxElements) const {
  switch (type) {
  case Type::IntList: {
    auto number = [](Value element) { return element.i; };
    ArrayRef<Value> all = elements(value),
                    shown = all.take_front(std::min(maxElements, all.size()));
    return fmt::format("{}{}", fmt::join(llvm::map_range(shown, number), ","),
                       shown.size() == all.size() ? "" : ", ...");
  }
  case Type::Bool:
    return value.i ? "true" : "false";
  case Type::Float:
    return fmt::format("{}", value.f);
  default:
    return fmt::format("{}", value.i);
  }
}

Value Evaluator::counterValue(Builtin id, KindId kind,
                              const std::optional<ChunkArg> &chunk,
                              SourceRange range) {
  if (id == Builtin::Ranks)
    return numRanks == 0 ? invalid<diag::RanksUnknown>(range)
                         : Value{.i = numRanks};
  assert(counter && "counters are checked to be on a rank");
  std::optional<int64_t> value = counter(id, kind, chunk, range);
  hasFailed |= !value;
  return {.i = value.value_or(0)};
}

void Evaluator::warnOfRemainder(const ast::Expr *expr, int64_t lhs,
                                int64_t rhs) {
  if (!reported.insert({diag::RemainderLost, expr->range.begin.raw}).second)
    return;
  std::string better = source(expr);
  if (isa<ast::IntExpr>(cast<ast::BinaryExpr>(expr)->lhs))
    better.insert(better.find(' '), ".0");
  else
    better.insert(0, "1.0 * ");
  auto builder = diags.report<diag::RemainderLost>(expr->range, lhs, rhs,
                                                   *floorDiv(lhs, rhs));
  builder.note({}, "write `{}`", better);
  noteCalls(builder);
}

Value Evaluator::arithmetic(const ast::Expr *expr, ast::BinaryOp op,
                            int64_t lhs, int64_t rhs) {
  using ast::BinaryOp;
  if (failed())
    return {.i = 0};
  bool isDivision = op == BinaryOp::Div || op == BinaryOp::Mod;
  if (isDivision && rhs == 0)
    return reportWithCalls<diag::DivisionByZero>(
        expr->range, cast<ast::BinaryExpr>(expr)->opRange, spelling(op));
  std::optional<int64_t> result = op == BinaryOp::Add   ? checkedAdd(lhs, rhs)
                                  : op == BinaryOp::Sub ? checkedSub(lhs, rhs)
                                  : op == BinaryOp::Mul ? checkedMul(lhs, rhs)
                                  : op == BinaryOp::Div ? floorDiv(lhs, rhs)
                                                        : floorMod(lhs, rhs);
  if (!result)
    return reportWithCalls<diag::Overflow>(expr->range, expr->range, lhs,
                                           spelling(op), rhs);
  if (op == BinaryOp::Div && module.exprs[expr->id].becomesFloat &&
      floorMod(lhs, rhs) != 0)
    warnOfRemainder(expr, lhs, rhs);
  return {.i = *result};
}

template class sema::Interpreter<Evaluator, Value>;
