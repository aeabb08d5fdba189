// Evaluates the expressions, and follows the statements, of a rank on numbers
// that stand for many.
#pragma once

#include "ppcc/Sema/Instance.h"

namespace ppcc::family {

/// A value; its type is known from the expression.
template <class Number> struct TermOf {
  Number i{};
  double f = 0;
  std::shared_ptr<const std::vector<Number>> list = nullptr;
};

/// What expressions see and are worth, and what statements do. `Numbers`
/// answers questions to its numbers: isNatural, isZero, product, quotient,
/// remainder, constant. Where an answer is not one for all that they stand for,
/// it does not come back, as from `refuse`, which is told whether the schedule
/// is wrong.
template <class Numbers> class TermsOf {
public:
  using Number = typename Numbers::Number;
  using Term = TermOf<Number>;
  using Type = sema::Type;
  using Builtin = sema::Builtin;
  using ExprInfo = sema::ExprInfo;

  virtual ~TermsOf() = default;

  Type type(const ast::Expr *expr) const { return module.exprs[expr->id].type; }
  Term eval(const ast::Expr *expr) {
    step(expr->range);
    switch (expr->kind) {
    case ast::ExprKind::Int:
      return {Numbers::checked(cast<ast::IntExpr>(expr)->value, expr->range),
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
      Term list = eval(s->list);
      int64_t at =
          numbers.constant(evalInt(s->index), s->index->range, "the index");
      if (at < 0 || size_t(at) >= elementsOf(list).size())
        Numbers::refuse(true, s->index->range, "the list has no such element");
      return {elementsOf(list)[at]};
    }
    }
    llvm_unreachable("all kinds are above");
  }
  Number evalInt(const ast::Expr *expr) { return eval(expr).i; }
  bool evalBool(const ast::Expr *expr) { return !(eval(expr).i == 0); }
  double evalFloat(const ast::Expr *expr) {
    Term value = eval(expr);
    return type(expr) == Type::Int ? static_cast<double>(numbers.constant(
                                         value.i, expr->range, "a float"))
                                   : value.f;
  }
  Term evalAs(const ast::Expr *expr, Type wanted) {
    return wanted == Type::Float ? Term{{}, evalFloat(expr)} : eval(expr);
  }

  static Term listOf(std::vector<Number> elements) {
    return {{},
            0,
            std::make_shared<const std::vector<Number>>(std::move(elements))};
  }
  static ArrayRef<Number> elementsOf(const Term &list) {
    return list.list ? ArrayRef(*list.list) : ArrayRef<Number>();
  }

  uint32_t slotOf(const ast::Stmt *stmt) const {
    return module.stmts[stmt->id].index;
  }

  const sema::Module &module;
  Numbers numbers;
  std::vector<Term> globals, frame;

protected:
  template <class... Args>
  TermsOf(const sema::Module &module, const sema::Instance *sample,
          Args &&...args)
      : module(module), numbers(std::forward<Args>(args)...), sample(sample) {
    for (KindId whole : module.kinds.ids())
      for (KindId part : module.kinds.ids())
        if (auto rest = module.kinds.without(whole, part);
            rest && (module.kinds[part].needs & module.kinds[*rest].defines)) {
          leaves.try_emplace(rest->value, part);
          deferred.insert(part.value);
        }
  }

  /// Gives the globals of a head their values, parameters those of `free` or
  /// that are given. Ends where the numbers are not admitted.
  void head(const sema::Schedule &schedule, ArrayRef<sema::ParamValue> given,
            function_ref<const Number *(size_t)> free) {
    globals.resize(schedule.numGlobals);
    for (auto [i, param] : llvm::enumerate(schedule.params)) {
      Term &value = globals[schedule.firstGlobal + i];
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
          Numbers::exclude(require->condition->range,
                           require->message.empty()
                               ? "`" + sema::source(require->condition) +
                                     "` does not hold"
                               : require->message.str());
  }

  /// Runs a turn of a loop, of a number.
  using Turn = function_ref<void(const Number &)>;

  /// The value of a counter, such as `issued(F, c)`.
  virtual Term counter(Builtin id, KindId kind, const ast::Expr *arg,
                       SourceRange place) = 0;
  virtual void loop(const ast::Stmt *stmt, const Number &turns, Turn turn) = 0;
  virtual void whileLoop(const ast::WhileStmt *stmt) = 0;
  virtual void drain(const ast::DrainStmt *stmt) = 0;
  virtual void action(const ast::ActionStmt *stmt) = 0;
  /// Does what is deferred for longer than the lag.
  virtual void takeLate(const ast::Stmt *stmt) = 0;

  void step(SourceRange place) {
    if (++steps > Numbers::mostSteps)
      Numbers::refuse(false, place, "it takes too many steps");
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
      Term value = eval(cast<ast::LetStmt>(stmt)->value);
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
      return loop(stmt, to - from, [&](const Number &turn) {
        frame[slotOf(stmt)].i = from + turn;
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
      return takeLate(stmt);
    case StmtKind::Defer: {
      auto *s = cast<ast::DeferStmt>(stmt);
      if (!s->fill.text.empty() || s->cap)
        Numbers::refuse(false, stmt->range, "what is deferred fills gaps");
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
      Numbers::refuse(false, stmt->range, "a statement of an unknown kind");
    }
  }

  void call(const ast::ActionStmt *stmt) {
    const sema::Block &block = module.blocks[module.stmts[stmt->id].index];
    std::vector<Term> inner(block.numLocals);
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
  DenseMap<uint32_t, KindId> leaves; ///< By kind: what it leaves behind.
  DenseSet<uint32_t> deferred;       ///< Kinds that are left behind.
  Defer defer;
  bool inGroup = false;
  uint32_t groupRows = 0;

private:
  /// A value of `-D`; a list is numbers with commas.
  static Term parsed(StringRef text, Type type) {
    Term value;
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
      Term &value = globals[other.firstGlobal + i];
      value = evalAs(use.args[i] ? use.args[i] : param.decl->defaultValue,
                     param.type);
      inRange(*param.decl, param.type, value);
    }
  }

  /// The range of a parameter, which numbers may be outside of.
  void inRange(const ast::Parameter &param, Type type, const Term &value) {
    if (sema::isList(type))
      for (const Number &element : elementsOf(value))
        inRange(param, Type::Int, {element});
    else if (param.least &&
             !(type == Type::Float
                   ? value.f >= evalFloat(param.least)
                   : numbers.isNatural(value.i - evalInt(param.least),
                                       param.least->range) &&
                         (!param.end ||
                          numbers.isNatural(evalInt(param.end) - value.i - 1,
                                            param.end->range))))
      Numbers::exclude(param.name.range,
                       "`" + param.name.text.str() + "` is not in its range");
  }

  static Term truth(bool value) { return {value}; }
  /// An end of the range of a list, whose length is always the same.
  int64_t length(const ast::Expr *expr) {
    return numbers.constant(evalInt(expr), expr->range, "the length of a list");
  }

  Term call(const ast::CallExpr *expr) {
    const ExprInfo &info = module.exprs[expr->id];
    if (info.ref == ExprInfo::Ref::Builtin)
      return builtin(expr, static_cast<Builtin>(info.index));
    const sema::Function &function = module.functions[info.index];
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

  Term builtin(const ast::CallExpr *expr, Builtin id) {
    ArrayRef<const ast::Expr *> args = expr->args;
    bool isFloat = type(expr) == Type::Float;
    switch (id) {
    case Builtin::Min:
    case Builtin::Max: {
      if (sema::isList(type(args[0])))
        return ofList(expr, id);
      Term best = evalAs(args[0], type(expr));
      for (const ast::Expr *arg : args.drop_front()) {
        Term other = evalAs(arg, type(expr));
        bool isLess = isFloat
                          ? other.f < best.f
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
        Numbers::refuse(false, expr->range, "it asks for the layout");
      sema::LayerCounts layers(sample->program.stageLayers);
      char letter = static_cast<char>(module.exprs[args[0]->id].index);
      if (args.size() == 1)
        return {layers.total(letter)};
      int64_t stage =
          numbers.constant(evalInt(args[1]), expr->range, "the stage");
      if (stage < 0 || size_t(stage) >= layers.numStages())
        Numbers::refuse(true, expr->range, "there is no such stage");
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
      Numbers::refuse(false, expr->range, "a function of an unknown kind");
    }
  }

  Term ofList(const ast::CallExpr *expr, Builtin id) {
    Term list = eval(expr->args[0]);
    ArrayRef<Number> elements = elementsOf(list);
    if (id == Builtin::Len)
      return {elements.size()};
    Number sum;
    if (id == Builtin::Sum) {
      for (const Number &element : elements)
        sum = Numbers::checked(sum + element, expr->range);
      return {sum};
    }
    if (elements.empty())
      Numbers::refuse(true, expr->range, "the list is empty");
    Number best = elements.front();
    for (const Number &element : elements)
      if (bool isLess = !numbers.isNatural(element - best, expr->range);
          isLess == (id == Builtin::Min))
        best = element;
    return {best};
  }

  Term binary(const ast::BinaryExpr *expr) {
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
          Numbers::refuse(true, at, "it divides by zero");
        return {{}, a / b};
      default:
        Numbers::refuse(false, at, "an operator of an unknown kind");
      }
    }
    Number a = evalInt(expr->lhs), b = evalInt(expr->rhs);
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
      Numbers::refuse(false, at, "an operator of an unknown kind");
    }
  }

  std::vector<std::vector<Term>> spare; ///< Frames that have been left.
  uint64_t steps = 0;
};

} // namespace ppcc::family
