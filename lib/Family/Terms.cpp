#include "Terms.h"

using namespace ppcc;
using namespace ppcc::family;
using namespace ppcc::sema;
using Kind = Outcome::Kind;

double Terms::evalFloat(const ast::Expr *expr) {
  Term value = eval(expr);
  return type(expr) == Type::Int ? static_cast<double>(numbers.constant(
                                       value.i, expr->range, "a float"))
                                 : value.f;
}

Term Terms::eval(const ast::Expr *expr) {
  step(expr->range);
  switch (expr->kind) {
  case ast::ExprKind::Int:
    return {
        Numbers::checked({cast<ast::IntExpr>(expr)->value, 0, 0}, expr->range),
        0};
  case ast::ExprKind::Float:
    return {{}, cast<ast::FloatExpr>(expr)->value};
  case ast::ExprKind::Bool:
    return truth(cast<ast::BoolExpr>(expr)->value);
  case ast::ExprKind::Name: {
    const ExprInfo &info = module.exprs[expr->id];
    if (info.ref == ExprInfo::Ref::Global)
      return globals[info.index];
    if (info.ref == ExprInfo::Ref::Local)
      return frame[info.index];
    return counter(static_cast<Builtin>(info.index), KindId(), nullptr,
                   expr->range);
  }
  case ast::ExprKind::Call:
    return call(cast<ast::CallExpr>(expr));
  case ast::ExprKind::Unary: {
    auto *unary = cast<ast::UnaryExpr>(expr);
    Term operand = eval(unary->operand);
    if (unary->op == ast::UnaryOp::Not)
      return truth(!operand.i.c);
    return {-1 * operand.i, -operand.f};
  }
  case ast::ExprKind::Binary:
    return binary(cast<ast::BinaryExpr>(expr));
  case ast::ExprKind::Conditional: {
    auto *s = cast<ast::ConditionalExpr>(expr);
    return evalAs(evalBool(s->condition) ? s->then : s->otherwise, type(expr));
  }
  case ast::ExprKind::List: {
    std::vector<Affine> elements;
    for (const ast::Expr *element : cast<ast::ListExpr>(expr)->elements)
      elements.push_back(evalInt(element));
    return listOf(std::move(elements));
  }
  case ast::ExprKind::ListFor: {
    auto *each = cast<ast::ListForExpr>(expr);
    uint32_t slot = module.exprs[expr->id].index;
    int64_t from = length(each->from), to = length(each->to);
    std::vector<Affine> elements;
    for (int64_t i = from; i < to; ++i) {
      step(expr->range);
      if (slot >= frame.size())
        frame.resize(slot + 1);
      frame[slot].i = {i, 0, 0};
      elements.push_back(evalInt(each->element));
    }
    return listOf(std::move(elements));
  }
  case ast::ExprKind::Index: {
    auto *s = cast<ast::IndexExpr>(expr);
    Term list = eval(s->list);
    int64_t at =
        numbers.constant(evalInt(s->index), s->index->range, "the index");
    if (at < 0 || size_t(at) >= elementsOf(list).size())
      stop(Kind::Wrong, s->index->range, "the list has no such element");
    return {elementsOf(list)[at]};
  }
  }
  llvm_unreachable("all kinds are above");
}

Term Terms::listOf(StringRef text) {
  std::vector<Affine> elements;
  SmallVector<StringRef> words;
  text.split(words, ',', -1, /*KeepEmpty=*/false);
  for (StringRef word : words)
    word.trim().getAsInteger(10, elements.emplace_back().c);
  return listOf(std::move(elements));
}
int64_t Terms::length(const ast::Expr *expr) {
  return numbers.constant(evalInt(expr), expr->range, "the length of a list");
}

Term Terms::call(const ast::CallExpr *expr) {
  const ExprInfo &info = module.exprs[expr->id];
  if (info.ref == ExprInfo::Ref::Builtin)
    return builtin(expr, static_cast<Builtin>(info.index));
  const Function &function = module.functions[info.index];
  std::vector<Term> inner;
  if (!spare.empty()) {
    inner = std::move(spare.back());
    spare.pop_back();
  }
  for (size_t i = 0; i != expr->args.size(); ++i)
    inner.push_back(evalAs(expr->args[i], function.params[i]));
  std::swap(frame, inner);
  Term result = eval(function.item->value);
  std::swap(frame, inner);
  inner.clear();
  spare.push_back(std::move(inner));
  return result;
}

Term Terms::builtin(const ast::CallExpr *expr, Builtin id) {
  ArrayRef<const ast::Expr *> args = expr->args;
  bool isFloat = type(expr) == Type::Float;
  switch (id) {
  case Builtin::Min:
  case Builtin::Max: {
    if (isList(type(args[0])))
      return ofList(expr, id);
    Term best = evalAs(args[0], type(expr));
    for (const ast::Expr *arg : args.drop_front()) {
      Term other = evalAs(arg, type(expr));
      bool isLess = isFloat ? other.f < best.f
                            : !numbers.isNatural(other.i - best.i, expr->range);
      if (isLess == (id == Builtin::Min))
        best = other;
    }
    return best;
  }
  case Builtin::Abs: {
    Term value = evalAs(args[0], type(expr));
    if (isFloat)
      return {{}, std::fabs(value.f)};
    return numbers.isNatural(value.i, expr->range) ? value
                                                   : Term{-1 * value.i, 0};
  }
  case Builtin::Layout: {
    if (!sample || sample->program.stageLayers.empty())
      stop(Kind::Undecided, expr->range, "it asks for the layout");
    LayerCounts layers(sample->program.stageLayers);
    char letter = static_cast<char>(module.exprs[args[0]->id].index);
    if (args.size() == 1)
      return {{layers.total(letter), 0, 0}, 0};
    int64_t stage =
        numbers.constant(evalInt(args[1]), expr->range, "the stage");
    if (stage < 0 || size_t(stage) >= layers.numStages())
      stop(Kind::Wrong, expr->range, "there is no such stage");
    return {{layers.has(letter) ? layers.of(letter)[stage] : 0, 0, 0}, 0};
  }
  case Builtin::Len:
  case Builtin::Sum:
    return ofList(expr, id);
  case Builtin::Issued:
    return counter(id, KindId(module.exprs[args[0]->id].index),
                   args.size() > 1 ? args[1] : nullptr, expr->range);
  case Builtin::Pending:
  case Builtin::Padded:
    return counter(id, KindId(), args.empty() ? nullptr : args[0], expr->range);
  default:
    stop(Kind::Undecided, expr->range, "a function of an unknown kind");
  }
}

Term Terms::ofList(const ast::CallExpr *expr, Builtin id) {
  Term list = eval(expr->args[0]);
  ArrayRef<Affine> elements = elementsOf(list);
  if (id == Builtin::Len)
    return {{int64_t(elements.size()), 0, 0}};
  Affine sum;
  if (id == Builtin::Sum) {
    for (Affine element : elements)
      sum = Numbers::checked(sum + element, expr->range);
    return {sum};
  }
  if (elements.empty())
    stop(Kind::Wrong, expr->range, "the list is empty");
  Affine best = elements.front();
  for (Affine element : elements)
    if (bool isLess = !numbers.isNatural(element - best, expr->range);
        isLess == (id == Builtin::Min))
      best = element;
  return {best};
}

Term Terms::binary(const ast::BinaryExpr *expr) {
  using ast::BinaryOp;
  BinaryOp op = expr->op;
  SourceRange at = expr->range;
  if (op == BinaryOp::And)
    return truth(evalBool(expr->lhs) && evalBool(expr->rhs));
  if (op == BinaryOp::Or)
    return truth(evalBool(expr->lhs) || evalBool(expr->rhs));
  bool compares = op >= BinaryOp::Eq && op <= BinaryOp::Ge;
  if (compares
          ? type(expr->lhs) == Type::Float || type(expr->rhs) == Type::Float
          : type(expr) == Type::Float) {
    double a = evalFloat(expr->lhs), b = evalFloat(expr->rhs);
    switch (op) {
    case BinaryOp::Eq:
      return truth(a == b);
    case BinaryOp::Ne:
      return truth(a != b);
    case BinaryOp::Lt:
      return truth(a < b);
    case BinaryOp::Le:
      return truth(a <= b);
    case BinaryOp::Gt:
      return truth(a > b);
    case BinaryOp::Ge:
      return truth(a >= b);
    case BinaryOp::Add:
      return {{}, a + b};
    case BinaryOp::Sub:
      return {{}, a - b};
    case BinaryOp::Mul:
      return {{}, a * b};
    case BinaryOp::Div:
      if (b == 0)
        stop(Kind::Wrong, at, "it divides by zero");
      return {{}, a / b};
    default:
      stop(Kind::Undecided, at, "an operator of an unknown kind");
    }
  }
  Affine a = evalInt(expr->lhs), b = evalInt(expr->rhs);
  switch (op) {
  case BinaryOp::Eq:
    return truth(numbers.isZero(a - b, at));
  case BinaryOp::Ne:
    return truth(!numbers.isZero(a - b, at));
  case BinaryOp::Lt:
    return truth(!numbers.isNatural(a - b, at));
  case BinaryOp::Le:
    return truth(numbers.isNatural(b - a, at));
  case BinaryOp::Gt:
    return truth(!numbers.isNatural(b - a, at));
  case BinaryOp::Ge:
    return truth(numbers.isNatural(a - b, at));
  case BinaryOp::Add:
    return {Numbers::checked(a + b, at), 0};
  case BinaryOp::Sub:
    return {Numbers::checked(a - b, at), 0};
  case BinaryOp::Mul:
    return {numbers.product(a, b, at), 0};
  case BinaryOp::Div:
    return {numbers.quotient(a, b, at), 0};
  case BinaryOp::Mod:
    return {numbers.remainder(a, b, at), 0};
  default:
    stop(Kind::Undecided, at, "an operator of an unknown kind");
  }
}
