#include "ppcc/Sema/Evaluator.h"

#include "ppcc/Basic/Diagnostics/Instance.h"
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

double Evaluator::evalFloat(const ast::Expr *expr) {
  Value value = eval(expr);
  return type(expr) == Type::Int ? double(value.i) : value.f;
}

int64_t Evaluator::evalInRange(const ast::Expr *expr, StringRef what,
                               int64_t low, int64_t high) {
  int64_t value = evalInt(expr);
  if (failed())
    return low;
  if (value >= low && value <= high)
    return value;
  refuse<diag::OutOfRange>(expr->range, what, value, low, high);
  return low;
}

ChunkArg Evaluator::evalChunk(const ast::Expr *expr) {
  bool isStages = type(expr) == Type::Pipe || type(expr) == Type::Part;
  return {expr->range, isStages, eval(expr).i};
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

template <diag::Id id, class... Args>
Value Evaluator::reportWithCalls(SourceRange range, SourceRange place,
                                 Args &&...args) {
  if (fail(id, range)) {
    auto builder = diags.report<id>(place, std::forward<Args>(args)...);
    noteCalls(builder);
  }
  return {.i = 0};
}

Value Evaluator::eval(const ast::Expr *expr) {
  // A large expression is as much work as many statements.
  if (++nodes % nodesPerStep == 0 && !step(expr->range))
    return {.i = 0};
  return dispatch(expr, [&](const auto &node) { return of(&node); });
}

Value Evaluator::of(const ast::UnaryExpr *expr) {
  Value operand = eval(expr->operand);
  if (expr->op == ast::UnaryOp::Not)
    return {.i = !operand.i};
  if (type(expr) == Type::Float)
    return {.f = -operand.f};
  return negated(expr, operand.i);
}

Value Evaluator::negated(const ast::Expr *expr, int64_t value) {
  auto negated = checkedSub(0, value);
  return negated ? Value{.i = *negated}
                 : reportWithCalls<diag::Overflow>(expr->range, expr->range, 0,
                                                   "-", value);
}

Value Evaluator::of(const ast::ConditionalExpr *expr) {
  bool holds = evalBool(expr->condition);
  return evalAs(holds ? expr->then : expr->otherwise, type(expr));
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

Value Evaluator::makeList(ArrayRef<Value> elements) {
  Value list{.i = int64_t(lists.size())};
  lists.push_back({.i = int64_t(elements.size())});
  lists.insert(lists.end(), elements.begin(), elements.end());
  return list;
}

Value Evaluator::of(const ast::ListExpr *expr) {
  SmallVector<Value> values; // Elements may be made of lists themselves.
  for (const ast::Expr *element : expr->elements)
    values.push_back(eval(element));
  return makeList(values);
}

Value Evaluator::of(const ast::ListForExpr *expr) {
  SmallVector<Value> values;
  uint32_t slot = module.exprs[expr->id].index;
  int64_t from = evalInt(expr->from), to = evalInt(expr->to);
  for (int64_t i = from; i < to && !failed() && step(expr->range); ++i) {
    local(slot) = {.i = i};
    values.push_back(eval(expr->element));
  }
  return makeList(values);
}

Value Evaluator::of(const ast::IndexExpr *expr) {
  Value list = eval(expr->list);
  int64_t at = evalInt(expr->index);
  if (failed())
    return {.i = 0};
  ArrayRef<Value> values = elements(list);
  if (at >= 0 && size_t(at) < values.size())
    return values[at];
  return reportWithCalls<diag::NotInList>(
      expr->index->range, expr->index->range, at, values.size());
}

Value Evaluator::ofValues(const ast::CallExpr *expr, Builtin id,
                          ArrayRef<Value> values) {
  if (id == Builtin::Len)
    return {.i = int64_t(values.size())};
  if (id == Builtin::Sum) {
    int64_t sum = 0;
    for (Value value : values) {
      auto next = checkedAdd(sum, value.i);
      if (!next)
        return reportWithCalls<diag::Overflow>(expr->range, expr->range, sum,
                                               "+", value.i);
      sum = *next;
    }
    return {.i = sum};
  }
  if (values.empty()) {
    refuse<diag::EmptyList>(expr->range, expr->callee.text);
    return {.i = 0};
  }
  bool isFloat = type(expr) == Type::Float;
  auto less = [&](Value a, Value b) { return isFloat ? a.f < b.f : a.i < b.i; };
  return id == Builtin::Min ? *llvm::min_element(values, less)
                            : *llvm::max_element(values, less);
}

Value Evaluator::of(const ast::NameExpr *expr) {
  const ExprInfo &info = module.exprs[expr->id];
  if (info.ref == ExprInfo::Ref::Global)
    return globals[info.index];
  if (info.ref == ExprInfo::Ref::Local)
    return stack[base + info.index];
  assert(info.ref == ExprInfo::Ref::Builtin && "others are not evaluated");
  if (Builtin id = static_cast<Builtin>(info.index); id != Builtin::Ranks)
    return count(id, KindId(), nullptr, expr->range);
  if (numRanks == 0)
    refuse<diag::RanksUnknown>(expr->range);
  return {.i = numRanks};
}

Value Evaluator::of(const ast::CallExpr *expr) {
  const ExprInfo &info = module.exprs[expr->id];
  if (info.ref == ExprInfo::Ref::Builtin)
    return builtin(expr, static_cast<Builtin>(info.index));
  if (failed() || !step(expr->range))
    return {.i = 0};
  const Function &function = module.functions[info.index];
  // The arguments are evaluated in the caller's frame, above which the new one
  // grows.
  size_t frame = stack.size();
  for (size_t i = 0; i != expr->args.size(); ++i)
    stack.push_back(evalAs(expr->args[i], function.params[i]));
  stack.resize(frame + function.numLocals);
  size_t previous = std::exchange(base, frame);
  calls.push_back(expr);
  Value result = eval(function.item->value);
  calls.pop_back();
  stack.resize(frame);
  base = previous;
  return result;
}

Value Evaluator::builtin(const ast::CallExpr *expr, Builtin id) {
  ArrayRef<const ast::Expr *> args = expr->args;
  if (args.size() == 1 && isList(type(args[0]))) {
    Value list = eval(args[0]);
    if (failed())
      return {.i = 0};
    ArrayRef<Value> values = elements(list);
    // To look through a long list is as much work as a large expression.
    return id == Builtin::Len || chargeWork(values.size(), expr->range)
               ? ofValues(expr, id, values)
               : Value{.i = 0};
  }
  switch (id) {
  case Builtin::Len:
  case Builtin::Sum:
  case Builtin::Ranks:
    break;
  case Builtin::Min:
  case Builtin::Max: {
    SmallVector<Value> values;
    for (const ast::Expr *arg : args)
      values.push_back(evalAs(arg, type(expr)));
    return ofValues(expr, id, values);
  }
  case Builtin::Abs: {
    if (type(expr) == Type::Float)
      return {.f = std::fabs(evalFloat(args[0]))};
    int64_t value = evalInt(args[0]);
    return value >= 0 ? Value{.i = value} : negated(expr, value);
  }
  case Builtin::Layout:
    return layout(expr);
  case Builtin::Issued:
    return count(id, KindId(module.exprs[args[0]->id].index),
                 args.size() > 1 ? args[1] : nullptr, expr->range);
  case Builtin::Pending:
  case Builtin::Padded:
    return count(id, KindId(), args.empty() ? nullptr : args[0], expr->range);
  }
  llvm_unreachable("all builtins are handled");
}

Value Evaluator::layout(const ast::CallExpr *expr) {
  char letter = static_cast<char>(module.exprs[expr->args[0]->id].index);
  if (!layers) {
    refuse<diag::NoLayout>(expr->range, "layout");
    return {.i = 0};
  }
  if (expr->args.size() == 1)
    return {.i = layers->total(letter)};
  int64_t stage = evalInRange(expr->args[1], "the stage", 0,
                              int64_t(layers->numStages()) - 1);
  return {.i =
              !failed() && layers->has(letter) ? layers->of(letter)[stage] : 0};
}

Value Evaluator::count(Builtin id, KindId kind, const ast::Expr *chunk,
                       SourceRange range) {
  assert(counter && "counters are checked to be on a rank");
  std::optional<ChunkArg> arg;
  if (chunk)
    arg = evalChunk(chunk);
  if (failed())
    return {.i = 0};
  std::optional<int64_t> value = counter(id, kind, arg, range);
  hasFailed |= !value;
  return {.i = value.value_or(0)};
}

void Evaluator::warnOfRemainder(const ast::BinaryExpr *expr, int64_t lhs,
                                int64_t rhs) {
  if (!reported.insert({diag::RemainderLost, expr->range.begin.raw}).second)
    return;
  std::string better = source(expr);
  if (isa<ast::IntExpr>(expr->lhs))
    better.insert(better.find(' '), ".0");
  else
    better.insert(0, "1.0 * ");
  auto builder = diags.report<diag::RemainderLost>(expr->range, lhs, rhs,
                                                   *floorDiv(lhs, rhs));
  builder.note({}, "write `{}`", better);
  noteCalls(builder);
}

template <class T> static bool compares(ast::BinaryOp op, T lhs, T rhs) {
  using ast::BinaryOp;
  return op == BinaryOp::Eq   ? lhs == rhs
         : op == BinaryOp::Ne ? lhs != rhs
         : op == BinaryOp::Lt ? lhs < rhs
         : op == BinaryOp::Le ? lhs <= rhs
         : op == BinaryOp::Gt ? lhs > rhs
                              : lhs >= rhs;
}

Value Evaluator::of(const ast::BinaryExpr *expr) {
  using ast::BinaryOp;
  if (expr->op == BinaryOp::And)
    return {.i = evalBool(expr->lhs) && evalBool(expr->rhs)};
  if (expr->op == BinaryOp::Or)
    return {.i = evalBool(expr->lhs) || evalBool(expr->rhs)};
  bool isCompare = isComparison(expr->op);
  if (isCompare
          ? type(expr->lhs) == Type::Float || type(expr->rhs) == Type::Float
          : type(expr) == Type::Float) {
    double lhs = evalFloat(expr->lhs), rhs = evalFloat(expr->rhs);
    return isCompare ? Value{.i = compares(expr->op, lhs, rhs)}
                     : floatBinary(expr, lhs, rhs);
  }
  int64_t lhs = evalInt(expr->lhs), rhs = evalInt(expr->rhs);
  return isCompare ? Value{.i = compares(expr->op, lhs, rhs)}
                   : intBinary(expr, lhs, rhs);
}

Value Evaluator::floatBinary(const ast::BinaryExpr *expr, double lhs,
                             double rhs) {
  using ast::BinaryOp;
  if (failed())
    return {.f = 0};
  if (expr->op == BinaryOp::Div && rhs == 0)
    return reportWithCalls<diag::DivisionByZero>(expr->range, expr->opRange,
                                                 spelling(expr->op));
  double result = expr->op == BinaryOp::Add   ? lhs + rhs
                  : expr->op == BinaryOp::Sub ? lhs - rhs
                  : expr->op == BinaryOp::Mul ? lhs * rhs
                                              : lhs / rhs;
  return std::isfinite(result)
             ? Value{.f = result}
             : reportWithCalls<diag::Overflow>(expr->range, expr->range, lhs,
                                               spelling(expr->op), rhs);
}

Value Evaluator::intBinary(const ast::BinaryExpr *expr, int64_t lhs,
                           int64_t rhs) {
  using ast::BinaryOp;
  if (failed())
    return {.i = 0};
  bool isDivision = expr->op == BinaryOp::Div || expr->op == BinaryOp::Mod;
  if (isDivision && rhs == 0)
    return reportWithCalls<diag::DivisionByZero>(expr->range, expr->opRange,
                                                 spelling(expr->op));
  std::optional<int64_t> result =
      expr->op == BinaryOp::Add   ? checkedAdd(lhs, rhs)
      : expr->op == BinaryOp::Sub ? checkedSub(lhs, rhs)
      : expr->op == BinaryOp::Mul ? checkedMul(lhs, rhs)
      : expr->op == BinaryOp::Div ? floorDiv(lhs, rhs)
                                  : floorMod(lhs, rhs);
  if (!result)
    return reportWithCalls<diag::Overflow>(expr->range, expr->range, lhs,
                                           spelling(expr->op), rhs);
  if (expr->op == BinaryOp::Div && module.exprs[expr->id].becomesFloat &&
      floorMod(lhs, rhs) != 0)
    warnOfRemainder(expr, lhs, rhs);
  return {.i = *result};
}
