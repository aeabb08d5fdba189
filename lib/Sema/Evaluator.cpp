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

size_t Evaluator::pushFrame(size_t size) {
  size_t previous = base;
  base = stack.size();
  stack.resize(base + size);
  return previous;
}

void Evaluator::popFrame(size_t previousBase) {
  stack.resize(base);
  base = previousBase;
}

bool Evaluator::outOfSteps(SourceRange range) {
  if (steps == maxSteps + 1)
    diags.report<diag::TooManySteps>(range, maxSteps);
  hasFailed = true;
  return false;
}

void Evaluator::noteCalls(DiagnosticEngine::Builder &builder) const {
  constexpr size_t shown = 4;
  for (const ast::CallExpr *call :
       llvm::reverse(ArrayRef(calls).take_back(shown)))
    builder.note(call->range, "in the call of `{}` here", call->callee.text);
}

Value Evaluator::eval(const ast::Expr *expr) {
  // A large expression is as much work as many statements.
  if (++nodes % nodesOfStep == 0 && !step(expr->range))
    return {.i = 0};
  return dispatch(expr, [&](const auto &node) { return of(&node); });
}

Value Evaluator::of(const ast::UnaryExpr *expr) {
  Value operand = eval(expr->operand);
  if (expr->op == ast::UnaryOp::Not)
    return {.i = !operand.i};
  if (type(expr) == Type::Float)
    return {.f = -operand.f};
  auto negated = checkedSub(0, operand.i);
  return negated ? Value{.i = *negated}
                 : overflow<int64_t>(expr, "-", 0, operand.i);
}

Value Evaluator::of(const ast::ConditionalExpr *expr) {
  bool holds = evalBool(expr->condition);
  return evalAs(holds ? expr->then : expr->otherwise, type(expr));
}

std::string Evaluator::text(Type type, Value value) const {
  switch (type) {
  case Type::IntList: {
    std::string list;
    for (Value element : elements(value))
      list += fmt::format("{}{}", list.empty() ? "" : ",", element.i);
    return list;
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
  if (fail(diag::NotInList, expr->index->range)) {
    auto builder =
        diags.report<diag::NotInList>(expr->index->range, at, values.size());
    noteCalls(builder);
  }
  return {.i = 0};
}

Value Evaluator::ofList(const ast::CallExpr *expr, Builtin id) {
  Value list = eval(expr->args[0]);
  if (failed())
    return {.i = 0};
  ArrayRef<Value> values = elements(list);
  auto size = int64_t(values.size());
  if (id == Builtin::Len)
    return {.i = size};
  if (id == Builtin::Sum) {
    int64_t sum = 0;
    for (Value value : values) {
      auto next = checkedAdd(sum, value.i);
      if (!next)
        return overflow(expr, "+", sum, value.i);
      sum = *next;
    }
    return {.i = sum};
  }
  auto less = [](Value a, Value b) { return a.i < b.i; };
  if (size != 0)
    return id == Builtin::Min ? *llvm::min_element(values, less)
                              : *llvm::max_element(values, less);
  refuse<diag::EmptyList>(expr->range, expr->callee.text);
  return {.i = 0};
}

Value Evaluator::of(const ast::NameExpr *expr) {
  const ExprInfo &info = module.exprs[expr->id];
  switch (info.ref) {
  case ExprInfo::Ref::Global:
    return globals[info.index];
  case ExprInfo::Ref::Local:
    return stack[base + info.index];
  case ExprInfo::Ref::Builtin:
    if (static_cast<Builtin>(info.index) == Builtin::Ranks) {
      if (numRanks == 0)
        refuse<diag::RanksUnknown>(expr->range);
      return {.i = numRanks};
    }
    return counter(static_cast<Builtin>(info.index), KindId(), nullptr,
                   expr->range);
  case ExprInfo::Ref::Kind:
  case ExprInfo::Ref::Letter:
  case ExprInfo::Ref::Function:
  case ExprInfo::Ref::None:
    break;
  }
  llvm_unreachable("checked names that are evaluated have values");
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
  popFrame(previous);
  return result;
}

Value Evaluator::builtin(const ast::CallExpr *expr, Builtin id) {
  ArrayRef<const ast::Expr *> args = expr->args;
  if (args.size() == 1 && isList(type(args[0])))
    return ofList(expr, id);
  switch (id) {
  case Builtin::Len:
  case Builtin::Sum:
  case Builtin::Ranks:
    break;
  case Builtin::Min:
  case Builtin::Max: {
    bool isMin = id == Builtin::Min;
    if (type(expr) == Type::Float) {
      double best = evalFloat(args[0]);
      for (const ast::Expr *arg : args.drop_front())
        best = isMin ? std::min(best, evalFloat(arg))
                     : std::max(best, evalFloat(arg));
      return {.f = best};
    }
    int64_t best = evalInt(args[0]);
    for (const ast::Expr *arg : args.drop_front())
      best =
          isMin ? std::min(best, evalInt(arg)) : std::max(best, evalInt(arg));
    return {.i = best};
  }
  case Builtin::Abs: {
    if (type(expr) == Type::Float)
      return {.f = std::fabs(evalFloat(args[0]))};
    int64_t value = evalInt(args[0]);
    auto negated = checkedSub(0, value);
    return value >= 0 ? Value{.i = value}
           : negated  ? Value{.i = *negated}
                      : overflow<int64_t>(expr, "-", 0, value);
  }
  case Builtin::Layout:
    return layout(expr);
  case Builtin::Issued:
    return counter(id, KindId(module.exprs[args[0]->id].index),
                   args.size() > 1 ? args[1] : nullptr, expr->range);
  case Builtin::Pending:
  case Builtin::Padded:
    return counter(id, KindId(), args.empty() ? nullptr : args[0], expr->range);
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

Value Evaluator::counter(Builtin id, KindId kind, const ast::Expr *chunk,
                         SourceRange range) {
  assert(counters && "counters are checked to be on a rank");
  std::optional<ChunkArg> arg;
  if (chunk)
    arg = evalChunk(chunk);
  if (failed())
    return {.i = 0};
  const ChunkArg *which = arg ? &*arg : nullptr;
  std::optional<int64_t> value =
      id == Builtin::Issued    ? counters->issued(kind, which, range)
      : id == Builtin::Pending ? counters->pending(which, range)
                               : counters->padded(which, range);
  hasFailed |= !value;
  return {.i = value.value_or(0)};
}

template <class T>
Value Evaluator::overflow(const ast::Expr *expr, StringRef op, T lhs, T rhs) {
  if (fail(diag::Overflow, expr->range)) {
    auto builder = diags.report<diag::Overflow>(expr->range, lhs, op, rhs);
    noteCalls(builder);
  }
  return {.i = 0};
}

Value Evaluator::byZero(const ast::BinaryExpr *expr) {
  if (fail(diag::DivisionByZero, expr->range)) {
    auto builder =
        diags.report<diag::DivisionByZero>(expr->opRange, spelling(expr->op));
    noteCalls(builder);
  }
  return {.i = 0};
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

Value Evaluator::of(const ast::BinaryExpr *expr) {
  using ast::BinaryOp;
  if (expr->op == BinaryOp::And)
    return {.i = evalBool(expr->lhs) && evalBool(expr->rhs)};
  if (expr->op == BinaryOp::Or)
    return {.i = evalBool(expr->lhs) || evalBool(expr->rhs)};
  if (expr->op >= BinaryOp::Eq && expr->op <= BinaryOp::Ge)
    return {.i = compare(expr)};
  return type(expr) == Type::Float ? floatBinary(expr) : intBinary(expr);
}

Value Evaluator::floatBinary(const ast::BinaryExpr *expr) {
  using ast::BinaryOp;
  double lhs = evalFloat(expr->lhs), rhs = evalFloat(expr->rhs);
  if (failed())
    return {.f = 0};
  if (expr->op == BinaryOp::Div && rhs == 0)
    return byZero(expr);
  double result = expr->op == BinaryOp::Add   ? lhs + rhs
                  : expr->op == BinaryOp::Sub ? lhs - rhs
                  : expr->op == BinaryOp::Mul ? lhs * rhs
                                              : lhs / rhs;
  return std::isfinite(result) ? Value{.f = result}
                               : overflow(expr, spelling(expr->op), lhs, rhs);
}

Value Evaluator::intBinary(const ast::BinaryExpr *expr) {
  using ast::BinaryOp;
  int64_t lhs = evalInt(expr->lhs), rhs = evalInt(expr->rhs);
  if (failed())
    return {.i = 0};
  bool isDivision = expr->op == BinaryOp::Div || expr->op == BinaryOp::Mod;
  if (isDivision && rhs == 0)
    return byZero(expr);
  std::optional<int64_t> result =
      expr->op == BinaryOp::Add   ? checkedAdd(lhs, rhs)
      : expr->op == BinaryOp::Sub ? checkedSub(lhs, rhs)
      : expr->op == BinaryOp::Mul ? checkedMul(lhs, rhs)
      : expr->op == BinaryOp::Div ? floorDiv(lhs, rhs)
                                  : floorMod(lhs, rhs);
  if (!result)
    return overflow(expr, spelling(expr->op), lhs, rhs);
  if (expr->op == BinaryOp::Div && module.exprs[expr->id].becomesFloat &&
      floorMod(lhs, rhs) != 0)
    warnOfRemainder(expr, lhs, rhs);
  return {.i = *result};
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

bool Evaluator::compare(const ast::BinaryExpr *expr) {
  if (type(expr->lhs) == Type::Float || type(expr->rhs) == Type::Float) {
    double lhs = evalFloat(expr->lhs), rhs = evalFloat(expr->rhs);
    return compares(expr->op, lhs, rhs);
  }
  int64_t lhs = evalInt(expr->lhs), rhs = evalInt(expr->rhs);
  return compares(expr->op, lhs, rhs);
}
