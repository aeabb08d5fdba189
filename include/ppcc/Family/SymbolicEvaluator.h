// Evaluates the expressions, and follows the statements, of a rank on numbers
// that stand for many.
#pragma once

#include "ppcc/Sema/Instance.h"

namespace ppcc::family {

/// A value; its type is known from the expression.
template <class Number> struct SymbolicValue {
  Number i{};
  double f = 0;
  std::shared_ptr<const std::vector<Number>> list = nullptr;
};

/// What expressions see and are worth, and what statements do. `Numbers`
/// answers questions to its numbers: isNonNegative, isZero, product, quotient,
/// remainder, constant. Where an answer is not one for all that they stand for,
/// it does not come back, as from `refuse`, which learns whether the schedule
/// is wrong.
template <class AbstractDomain> class SymbolicEvaluator {
public:
  using Number = typename AbstractDomain::Number;
  using AbstractValue = SymbolicValue<Number>;
  using Type = sema::Type;
  using Builtin = sema::Builtin;
  using ExprInfo = sema::ExprInfo;

  virtual ~SymbolicEvaluator() = default;

  Type type(const ast::Expr *expr) const { return module.exprs[expr->id].type; }
  AbstractValue eval(const ast::Expr *expr) {
    step(expr->range);
    switch (expr->kind) {
    case ast::ExprKind::Int:
      return {
          AbstractDomain::checked(cast<ast::IntExpr>(expr)->value, expr->range),
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
      AbstractValue operand = eval(unary->operand);
      if (unary->op == ast::UnaryOp::Not)
        return truth(operand.i == 0);
      return {-1 * operand.i, -operand.f};
    }
    case ast::ExprKind::Binary:
      return binary(cast<ast::BinaryExpr>(expr));
    case ast::ExprKind::Conditional: {
      auto *s = cast<ast::ConditionalExpr>(expr);
      return evalAs(evalBool(s->condition) ? s->then : s->otherwise,
                    type(expr));
    }
    case ast::ExprKind::List: {
      std::vector<Number> elements;
      for (const ast::Expr *element : cast<ast::ListExpr>(expr)->elements)
        elements.push_back(evalInt(element));
      return listOf(std::move(elements));
    }
    case ast::ExprKind::ListFor: {
      auto *each = cast<ast::ListForExpr>(expr);
      uint32_t slot = module.exprs[expr->id].index;
      int64_t from = length(each->from), to = length(each->to);
      std::vector<Number> elements;
      for (int64_t i = from; i < to; ++i) {
        step(expr->range);
        if (slot >= frame.size())
          frame.resize(slot + 1);
        frame[slot].i = i;
        elements.push_back(evalInt(each->element));
      }
      return listOf(std::move(elements));
    }
    case ast::ExprKind::Index: {
      auto *s = cast<ast::IndexExpr>(expr);
      AbstractValue list = eval(s->list);
      int64_t at =
          numbers.constant(evalInt(s->index), s->index->range, "the index");
      if (at < 0 || size_t(at) >= elementsOf(list).size())
        AbstractDomain::refuse(true, s->index->range,
                               "the list has no such element");
      return {elementsOf(list)[at]};
    }
    }
    llvm_unreachable("all kinds are above");
  }
  Number evalInt(const ast::Expr *expr) { return eval(expr).i; }
  bool evalBool(const ast::Expr *expr) { return !(eval(expr).i == 0); }
  double evalFloat(const ast::Expr *expr) {
    AbstractValue value = eval(expr);
    return type(expr) == Type::Int ? static_cast<double>(numbers.constant(
                                         value.i, expr->range, "a float"))
                                   : value.f;
  }
  AbstractValue evalAs(const ast::Expr *expr, Type wanted) {
    return wanted == Type::Float ? AbstractValue{{}, evalFloat(expr)}
                                 : eval(expr);
  }

  static AbstractValue listOf(std::vector<Number> elements) {
    return {{},
            0,
            std::make_shared<const std::vector<Number>>(std::move(elements))};
  }
  static ArrayRef<Number> elementsOf(const AbstractValue &list) {
    return list.list ? ArrayRef(*list.list) : ArrayRef<Number>();
  }

  uint32_t slotOf(const ast::Stmt *stmt) const {
    return module.stmts[stmt->id].index;
  }

  const sema::Module &module;
  AbstractDomain numbers;
  std::vector<AbstractValue> globals, frame;

protected:
  template <class... Args>
  SymbolicEvaluator(const sema::Module &module, const sema::Instance *sample,
                    Args &&...args)
      : module(module), numbers(std::forward<Args>(args)...), sample(sample) {
    for (KindId whole : module.kinds.ids())
      for (KindId part : module.kinds.ids())
        if (auto rest = module.kinds.without(whole, part);
            rest && (module.kinds[part].needs & module.kinds[*rest].defines)) {
          deferredBy.try_emplace(rest->value, part);
          deferred.insert(part.value);
        }
  }

  /// Gives the globals of a head their values, parameters those of `free` or
  /// that are given. Ends where the numbers are not admitted.
  void head(const sema::Schedule &schedule, ArrayRef<sema::ParamValue> given,
            function_ref<const Number *(size_t)> free) {
    globals.resize(schedule.numGlobals);
    for (auto [i, param] : llvm::enumerate(schedule.params)) {
      AbstractValue &value = globals[schedule.firstGlobal + i];
      auto text = findBy(llvm::reverse(given), param.decl->name.text,
                         &sema::ParamValue::name);
      if (const Number *number = free(i))
        value.i = *number;
      else if (text)
        value = parsed(text->value, param.type);
      else if (param.decl->defaultValue)
        value = evalAs(param.decl->defaultValue, param.type);
      inRange(*param.decl, param.type, value);
    }
    int64_t number = 0;
    for (uint32_t slot : schedule.pipeSlots)
      globals[slot].i = number++;
    number = schedule.pipes.size();
    for (const sema::PartName &part : schedule.parts)
      globals[part.slot].i = number++;
    auto slot = schedule.letSlots.begin();
    auto used = schedule.uses.begin();
    for (const ast::Stmt *item : schedule.header)
      if (auto *let = dyn_cast<ast::LetStmt>(item))
        globals[*slot++] = eval(let->value);
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
  virtual AbstractValue counter(Builtin id, KindId kind, const ast::Expr *arg,
                                SourceRange place) = 0;
  virtual void loop(const ast::Stmt *stmt, const Number &iterations,
                    LoopBody runBody) = 0;
  virtual void whileLoop(const ast::WhileStmt *stmt) = 0;
  virtual void drain(const ast::DrainStmt *stmt) = 0;
  virtual void action(const ast::ActionStmt *stmt) = 0;
  /// Does what is deferred for longer than the lag.
  virtual void issueOverdue(const ast::Stmt *stmt) = 0;

  void step(SourceRange place) {
    if (++steps > AbstractDomain::maxSteps)
      AbstractDomain::refuse(false, place, "it takes too many steps");
  }

  void body(ast::Body statements) {
    for (const ast::Stmt *stmt : statements) {
      step(stmt->range);
      statement(stmt);
    }
  }

  void statement(const ast::Stmt *stmt) {
    using ast::StmtKind;
    switch (stmt->kind) {
    case StmtKind::Let: {
      AbstractValue value = eval(cast<ast::LetStmt>(stmt)->value);
      frame[slotOf(stmt)] = value;
      return;
    }
    case StmtKind::If:
      for (const ast::Branch &branch : cast<ast::IfStmt>(stmt)->branches)
        if (!branch.condition || evalBool(branch.condition))
          return body(branch.body);
      return;
    case StmtKind::For: {
      auto *s = cast<ast::ForStmt>(stmt);
      Number from = evalInt(s->from), to = evalInt(s->to);
      return loop(stmt, to - from, [&](const Number &iteration) {
        frame[slotOf(stmt)].i = from + iteration;
        body(s->body);
      });
    }
    case StmtKind::Repeat: {
      auto *s = cast<ast::RepeatStmt>(stmt);
      return loop(stmt, evalInt(s->count),
                  [&](const Number &) { body(s->body); });
    }
    case StmtKind::While:
      return whileLoop(cast<ast::WhileStmt>(stmt));
    case StmtKind::Phase:
      return body(cast<ast::PhaseStmt>(stmt)->body);
    case StmtKind::Overlap:
      inGroup = true;
      groupRows = 0;
      body(cast<ast::OverlapStmt>(stmt)->body);
      inGroup = false;
      return issueOverdue(stmt);
    case StmtKind::Defer: {
      auto *s = cast<ast::DeferStmt>(stmt);
      if (!s->fill.text.empty() || s->cap)
        AbstractDomain::refuse(false, stmt->range,
                               "what is deferred fills gaps");
      Defer outer = defer;
      Defer inner{true, KindId(slotOf(stmt)), {}};
      if (s->lag)
        inner.lag = evalInt(s->lag);
      defer = inner;
      body(s->body);
      defer = outer;
      return;
    }
    case StmtKind::Drain:
      return drain(cast<ast::DrainStmt>(stmt));
    case StmtKind::Action:
      return module.stmts[stmt->id].isBlock
                 ? call(cast<ast::ActionStmt>(stmt))
                 : action(cast<ast::ActionStmt>(stmt));
    default:
      AbstractDomain::refuse(false, stmt->range,
                             "a statement of an unknown kind");
    }
  }

  void call(const ast::ActionStmt *stmt) {
    const sema::Block &block = module.blocks[module.stmts[stmt->id].index];
    std::vector<AbstractValue> inner(block.numLocals);
    for (size_t i = 0; i != stmt->args.size(); ++i)
      inner[i] = evalAs(stmt->args[i].value, block.params[i]);
    std::swap(frame, inner);
    body(block.item->body);
    std::swap(frame, inner);
  }
  struct Defer {
    bool active = false;
    KindId kind;
    std::optional<Number> lag;
  };

  const sema::Instance *sample; ///< Of all that numbers stand for, but for what
                                ///< depends on them.
  DenseMap<uint32_t, KindId> deferredBy; ///< By kind: what it leaves behind.
  DenseSet<uint32_t> deferred;           ///< Kinds that are left behind.
  Defer defer;
  bool inGroup = false;
  uint32_t groupRows = 0;

private:
  /// A value of `-D`; a list is numbers with commas.
  static AbstractValue parsed(StringRef text, Type type) {
    AbstractValue value;
    if (type == Type::Float)
      text.getAsDouble(value.f);
    else if (!sema::isList(type))
      value.i = type == Type::Bool ? text == "true" : integer(text);
    else {
      SmallVector<StringRef> words;
      text.split(words, ',', -1, /*KeepEmpty=*/false);
      std::vector<Number> elements;
      for (StringRef word : words)
        elements.push_back(integer(word.trim()));
      return listOf(std::move(elements));
    }
    return value;
  }
  static int64_t integer(StringRef text) {
    int64_t value = 0;
    text.getAsInteger(10, value);
    return value;
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
    if (sema::isList(type))
      for (const Number &element : elementsOf(value))
        inRange(param, Type::Int, {element});
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

  static AbstractValue truth(bool value) { return {value}; }
  /// An end of the range of a list, whose length is always the same.
  int64_t length(const ast::Expr *expr) {
    return numbers.constant(evalInt(expr), expr->range, "the length of a list");
  }

  AbstractValue call(const ast::CallExpr *expr) {
    const ExprInfo &info = module.exprs[expr->id];
    if (info.ref == ExprInfo::Ref::Builtin)
      return builtin(expr, static_cast<Builtin>(info.index));
    const sema::Function &function = module.functions[info.index];
    std::vector<AbstractValue> inner;
    if (!spare.empty()) {
      inner = std::move(spare.back());
      spare.pop_back();
    }
    for (size_t i = 0; i != expr->args.size(); ++i)
      inner.push_back(evalAs(expr->args[i], function.params[i]));
    std::swap(frame, inner);
    AbstractValue result = eval(function.item->value);
    std::swap(frame, inner);
    inner.clear();
    spare.push_back(std::move(inner));
    return result;
  }

  AbstractValue builtin(const ast::CallExpr *expr, Builtin id) {
    ArrayRef<const ast::Expr *> args = expr->args;
    bool isFloat = type(expr) == Type::Float;
    switch (id) {
    case Builtin::Min:
    case Builtin::Max: {
      if (sema::isList(type(args[0])))
        return ofList(expr, id);
      AbstractValue best = evalAs(args[0], type(expr));
      for (const ast::Expr *arg : args.drop_front()) {
        AbstractValue other = evalAs(arg, type(expr));
        bool isLess =
            isFloat ? other.f < best.f
                    : !numbers.isNonNegative(other.i - best.i, expr->range);
        if (isLess == (id == Builtin::Min))
          best = other;
      }
      return best;
    }
    case Builtin::Abs: {
      AbstractValue value = evalAs(args[0], type(expr));
      if (isFloat)
        return {{}, std::fabs(value.f)};
      return numbers.isNonNegative(value.i, expr->range)
                 ? value
                 : AbstractValue{-1 * value.i, 0};
    }
    case Builtin::Layout: {
      if (!sample || sample->program.stageLayers.empty())
        AbstractDomain::refuse(false, expr->range, "it asks for the layout");
      sema::LayerCounts layers(sample->program.stageLayers);
      char letter = static_cast<char>(module.exprs[args[0]->id].index);
      if (args.size() == 1)
        return {layers.total(letter)};
      int64_t stage =
          numbers.constant(evalInt(args[1]), expr->range, "the stage");
      if (stage < 0 || size_t(stage) >= layers.numStages())
        AbstractDomain::refuse(true, expr->range, "there is no such stage");
      return {layers.has(letter) ? layers.of(letter)[stage] : 0, 0};
    }
    case Builtin::Len:
    case Builtin::Sum:
      return ofList(expr, id);
    case Builtin::Issued:
      return counter(id, KindId(module.exprs[args[0]->id].index),
                     args.size() > 1 ? args[1] : nullptr, expr->range);
    case Builtin::Pending:
    case Builtin::Padded:
      return counter(id, KindId(), args.empty() ? nullptr : args[0],
                     expr->range);
    default:
      AbstractDomain::refuse(false, expr->range,
                             "a function of an unknown kind");
    }
  }

  AbstractValue ofList(const ast::CallExpr *expr, Builtin id) {
    AbstractValue list = eval(expr->args[0]);
    ArrayRef<Number> elements = elementsOf(list);
    if (id == Builtin::Len)
      return {elements.size()};
    Number sum;
    if (id == Builtin::Sum) {
      for (const Number &element : elements)
        sum = AbstractDomain::checked(sum + element, expr->range);
      return {sum};
    }
    if (elements.empty())
      AbstractDomain::refuse(true, expr->range, "the list is empty");
    Number best = elements.front();
    for (const Number &element : elements)
      if (bool isLess = !numbers.isNonNegative(element - best, expr->range);
          isLess == (id == Builtin::Min))
        best = element;
    return {best};
  }

  AbstractValue binary(const ast::BinaryExpr *expr) {
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
          AbstractDomain::refuse(true, at, "it divides by zero");
        return {{}, a / b};
      default:
        AbstractDomain::refuse(false, at, "an operator of an unknown kind");
      }
    }
    Number a = evalInt(expr->lhs), b = evalInt(expr->rhs);
    switch (op) {
    case BinaryOp::Eq:
      return truth(numbers.isZero(a - b, at));
    case BinaryOp::Ne:
      return truth(!numbers.isZero(a - b, at));
    case BinaryOp::Lt:
      return truth(!numbers.isNonNegative(a - b, at));
    case BinaryOp::Le:
      return truth(numbers.isNonNegative(b - a, at));
    case BinaryOp::Gt:
      return truth(!numbers.isNonNegative(b - a, at));
    case BinaryOp::Ge:
      return truth(numbers.isNonNegative(a - b, at));
    case BinaryOp::Add:
      return {AbstractDomain::checked(a + b, at), 0};
    case BinaryOp::Sub:
      return {AbstractDomain::checked(a - b, at), 0};
    case BinaryOp::Mul:
      return {numbers.product(a, b, at), 0};
    case BinaryOp::Div:
      return {numbers.quotient(a, b, at), 0};
    case BinaryOp::Mod:
      return {numbers.remainder(a, b, at), 0};
    default:
      AbstractDomain::refuse(false, at, "an operator of an unknown kind");
    }
  }

  std::vector<std::vector<AbstractValue>>
      spare; ///< Frames that have been left.
  uint64_t steps = 0;
};

} // namespace ppcc::family
