// Evaluates checked expressions, and follows statements, on numbers of a
// domain.
//
// Algorithm: abstract interpretation (Cousot and Cousot 1977). What expressions
// and statements mean stands here, once; what numbers are, and how a question
// to them is answered, is the domain's: integers (Evaluator.h), or numbers that
// stand for many (Family/SymbolicEvaluator.h).
#pragma once

#include "ppcc/Basic/Diagnostics/Instance.h"
#include "ppcc/Sema/Module.h"
#include "ppcc/Support/Decimal.h"

namespace ppcc::sema {

/// The chunk that an argument names: by number, or as the rank's stage in a
/// pipe.
struct ChunkArg {
  SourceRange range;
  bool isPipe;
  int64_t value;
};

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

/// Evaluates expressions over globals and a stack of local frames. A `Value`
/// has a number `i`, also for a bool (0 or 1), a pipe and a list, and a double
/// `f`; its type is known from the expression. `Domain`, which derives from
/// this, gives
/// - nodesPerStep: the expressions that are a step of the evaluation;
/// - literal(integer, range), the number of an integer;
/// - arithmetic(expr, op, a, b), isLess(a, b, range), isEqual(a, b, range);
/// - constant(number, range, what): the number as an integer;
/// - counterValue(id, kind, chunk, range): that of the rank;
/// - runLoop(stmt, from, to, iteration): runs the iterations;
/// - notify(name, type, value): of the value of a name;
/// - failed(): whether an error was reported, so that values mean nothing. A
///   domain may throw instead;
/// - invalid<diag>(range, args...), outOfSteps(range), and
///   reportWithCalls<diag>(range, place, args...), which report.
template <class Domain, class ValueType> class Interpreter {
public:
  using Value = ValueType;
  using Number = decltype(Value::i);
  /// So many elements of lists are a step of the evaluation.
  static constexpr uint64_t elementsPerStep = 16;

  Value eval(const ast::Expr *expr) {
    // A large expression is as much work as many statements.
    if (++nodes % Domain::nodesPerStep == 0 && !step(expr->range))
      return {.i = 0};
    return ast::dispatch(expr, [&](const auto &node) { return of(&node); });
  }
  Number evalInt(const ast::Expr *expr) { return eval(expr).i; }
  bool evalBool(const ast::Expr *expr) { return !(eval(expr).i == 0); }
  /// The value of an int or float expression.
  double evalFloat(const ast::Expr *expr) {
    Value value = eval(expr);
    return type(expr) == Type::Int
               ? double(self().constant(value.i, expr->range, "a float"))
               : value.f;
  }
  /// The value where one of type `wanted` is taken.
  Value evalAs(const ast::Expr *expr, Type wanted) {
    return wanted == Type::Float ? Value{.f = evalFloat(expr)} : eval(expr);
  }
  /// The value of an expression that must lie in low..high, both included; low,
  /// and a report about `what`, when it does not.
  int64_t evalInRange(const ast::Expr *expr, StringRef what, int64_t low,
                      int64_t high) {
    int64_t value = self().constant(evalInt(expr), expr->range, what);
    if (self().failed())
      return low;
    if (value >= low && value <= high)
      return value;
    self().template invalid<diag::OutOfRange>(expr->range, what, value, low,
                                              high);
    return low;
  }
  /// The argument of an action or counter that names a chunk.
  ChunkArg evalChunk(const ast::Expr *expr) {
    bool isStages = type(expr) == Type::Pipe || type(expr) == Type::Part;
    return {expr->range, isStages,
            self().constant(evalInt(expr), expr->range, "the chunk")};
  }

  /// Follows the control flow that all bodies share, `let`, `if`, `for` and
  /// `repeat`, and calls `visit` for each other statement. Ends with false when
  /// `visit` gives it, when an expression has no value, and at the limit of
  /// steps: each statement and each iteration of a loop is one.
  template <class Visit> bool walk(ast::Body body, const Visit &visit) {
    for (const ast::Stmt *stmt : body)
      if (!step(stmt->range) || !follow(stmt, visit))
        return false;
    return true;
  }

  /// Counts a step of the evaluation against the limit. False, and reported,
  /// when the limit is reached.
  bool step(SourceRange range) {
    return ++steps <= maxSteps || self().outOfSteps(range);
  }
  /// The same for work on so many of something, of which a step holds a few.
  bool chargeWork(uint64_t amount, SourceRange range) {
    steps += amount / elementsPerStep;
    return step(range);
  }
  bool hasSteps() const { return steps <= maxSteps; }

  /// While it lives, there are other locals: `size` of them, `args` first.
  class Frame {
  public:
    Frame(Interpreter &of, size_t size, ArrayRef<Value> args = {})
        : Frame(of, of.stack.size(), size) {
      llvm::copy(args, of.stack.begin() + begin);
    }
    /// With what stands on the stack from `begin` on.
    Frame(Interpreter &of, size_t begin, size_t size)
        : of(of), begin(begin), outer(std::exchange(of.base, begin)) {
      of.stack.resize(begin + size);
    }
    ~Frame() {
      of.stack.resize(begin);
      of.base = outer;
    }
    Frame(const Frame &) = delete;

  private:
    Interpreter &of;
    size_t begin, outer;
  };
  Value &local(uint32_t slot) { return stack[base + slot]; }

  /// The value of a text, as on the command line; nothing if it has none.
  std::optional<Value> parse(Type type, StringRef text) {
    int64_t number = 0;
    switch (type) {
    case Type::IntList: {
      SmallVector<Value> values;
      for (StringRef part : llvm::split(text, ','))
        if (text.empty())
          break;
        else if (part.trim().getAsInteger(10, number))
          return std::nullopt;
        else
          values.push_back({.i = number});
      return makeList(values);
    }
    case Type::Int:
      return text.getAsInteger(10, number) ? std::nullopt
                                           : std::optional(Value{.i = number});
    case Type::Float:
      if (auto real = decimal::parseFloat(text))
        return Value{.f = *real};
      return std::nullopt;
    default:
      return text == "true" || text == "false"
                 ? std::optional(Value{.i = text == "true"})
                 : std::nullopt;
    }
  }
  /// A list as a value. It is there until what was made after mark() is given
  /// up.
  Value makeList(ArrayRef<Value> elements) {
    Value list{.i = int64_t(lists.size())};
    lists.push_back({.i = int64_t(elements.size())});
    lists.insert(lists.end(), elements.begin(), elements.end());
    return list;
  }
  ArrayRef<Value> elements(Value list) const {
    auto at = [&](Value of) { return self().constant(of.i, {}, "a list"); };
    return ArrayRef(lists).slice(at(list) + 1, at(lists[at(list)]));
  }
  size_t mark() const { return lists.size(); }
  void release(size_t mark) { lists.resize(mark); }

  Type type(const ast::Expr *expr) const { return module.exprs[expr->id].type; }
  /// The local slot of the variable of a `let`, a `for` or an edge loop.
  uint32_t slotOf(const ast::Stmt *stmt) const {
    return module.stmts[stmt->id].index;
  }

  const Module &module;
  std::vector<Value> globals;
  std::optional<LayerCounts> layers; ///< Of the layout, if there is one.

protected:
  Interpreter(const Module &module, uint64_t maxSteps)
      : module(module), maxSteps(maxSteps), lists{{.i = 0}} {}

  const uint64_t maxSteps;
  std::vector<Value> stack;
  size_t base = 0;
  /// Of each, the number of elements, and they. The first is empty, that of
  /// pipes that a loop has not made yet.
  std::vector<Value> lists;
  std::vector<const ast::CallExpr *> calls; ///< Those that are evaluated.

private:
  Domain &self() { return static_cast<Domain &>(*this); }
  const Domain &self() const { return static_cast<const Domain &>(*this); }

  // ---- Statements ----

  template <class Visit>
  bool follow(const ast::Stmt *stmt, const Visit &visit) {
    using ast::StmtKind;
    switch (stmt->kind) {
    case StmtKind::Let: {
      auto *s = cast<ast::LetStmt>(stmt);
      Value value = eval(s->value);
      local(slotOf(stmt)) = value;
      if (!self().failed())
        self().notify(s->name, type(s->value), value);
      return !self().failed();
    }
    case StmtKind::If:
      for (const ast::Branch &branch : cast<ast::IfStmt>(stmt)->branches) {
        bool chosen = !branch.condition || evalBool(branch.condition);
        if (self().failed())
          return false;
        if (chosen)
          return walk(branch.body, visit);
      }
      return true;
    case StmtKind::For: {
      auto *s = cast<ast::ForStmt>(stmt);
      Number from = evalInt(s->from), to = evalInt(s->to);
      return loop(stmt, from, to, s->body, visit);
    }
    case StmtKind::Repeat: {
      auto *s = cast<ast::RepeatStmt>(stmt);
      return loop(stmt, 0, evalInt(s->count), s->body, visit);
    }
    default:
      return visit(stmt);
    }
  }

  template <class Visit>
  bool loop(const ast::Stmt *stmt, const Number &from, const Number &to,
            ast::Body body, const Visit &visit) {
    auto *counted = dyn_cast<ast::ForStmt>(stmt);
    auto iteration = [&](const Number &i) {
      if (!step(stmt->range))
        return false;
      if (counted) {
        local(slotOf(stmt)) = {.i = i};
        self().notify(counted->variable, Type::Int, {.i = i});
      }
      size_t mark = this->mark();
      if (!walk(body, visit))
        return false;
      release(mark);
      return true;
    };
    return !self().failed() && self().runLoop(stmt, from, to, iteration);
  }

  // ---- Expressions ----

  Value of(const ast::IntExpr *expr) {
    return {.i = self().literal(expr->value, expr->range)};
  }
  Value of(const ast::FloatExpr *expr) { return {.f = expr->value}; }
  Value of(const ast::BoolExpr *expr) { return {.i = expr->value}; }

  Value of(const ast::NameExpr *expr) {
    const ExprInfo &info = module.exprs[expr->id];
    if (info.ref == ExprInfo::Ref::Global)
      return info.type == Type::PipeList && globals[info.index].i == 0
                 ? self().template reportWithCalls<diag::PipesNotMade>(
                       expr->range, expr->range, expr->name)
                 : globals[info.index];
    if (info.ref == ExprInfo::Ref::Local)
      return local(info.index);
    assert(info.ref == ExprInfo::Ref::Builtin && "others are not evaluated");
    return count(static_cast<Builtin>(info.index), KindId(), nullptr,
                 expr->range);
  }

  Value of(const ast::UnaryExpr *expr) {
    Value operand = eval(expr->operand);
    if (expr->op == ast::UnaryOp::Not)
      return {.i = operand.i == 0};
    return type(expr) == Type::Float ? Value{.f = -operand.f}
                                     : negated(expr, operand.i);
  }
  Value negated(const ast::Expr *expr, const Number &value) {
    return self().arithmetic(expr, ast::BinaryOp::Sub, 0, value);
  }

  Value of(const ast::ConditionalExpr *expr) {
    bool holds = evalBool(expr->condition);
    return evalAs(holds ? expr->then : expr->otherwise, type(expr));
  }

  Value of(const ast::ListExpr *expr) {
    SmallVector<Value> values; // Elements may be made of lists themselves.
    for (const ast::Expr *element : expr->elements)
      values.push_back(eval(element));
    return makeList(values);
  }

  Value of(const ast::ListForExpr *expr) {
    SmallVector<Value> values;
    uint32_t slot = module.exprs[expr->id].index;
    auto length = [&](const ast::Expr *end) {
      return self().constant(evalInt(end), end->range, "the length of a list");
    };
    int64_t from = length(expr->from), to = length(expr->to);
    for (int64_t i = from; i < to && !self().failed() && step(expr->range);
         ++i) {
      local(slot) = {.i = i};
      values.push_back(eval(expr->element));
    }
    return makeList(values);
  }

  Value of(const ast::IndexExpr *expr) {
    Value list = eval(expr->list);
    SourceRange range = expr->index->range;
    int64_t at = self().constant(evalInt(expr->index), range, "the index");
    if (self().failed())
      return {.i = 0};
    ArrayRef<Value> values = elements(list);
    return at >= 0 && size_t(at) < values.size()
               ? values[at]
               : self().template reportWithCalls<diag::NotInList>(
                     range, range, at, values.size());
  }

  Value of(const ast::CallExpr *expr) {
    const ExprInfo &info = module.exprs[expr->id];
    if (info.ref == ExprInfo::Ref::Builtin)
      return builtin(expr, static_cast<Builtin>(info.index));
    if (self().failed() || !step(expr->range))
      return {.i = 0};
    const Function &function = module.functions[info.index];
    // The arguments are evaluated in the caller's frame, above which the new
    // one grows.
    size_t begin = stack.size();
    for (size_t i = 0; i != expr->args.size(); ++i)
      stack.push_back(evalAs(expr->args[i], function.params[i]));
    Frame frame(*this, begin, function.numLocals);
    calls.push_back(expr);
    Value result = eval(function.item->value);
    calls.pop_back();
    return result;
  }

  Value builtin(const ast::CallExpr *expr, Builtin id) {
    ArrayRef<const ast::Expr *> args = expr->args;
    if (args.size() == 1 && isList(type(args[0]))) {
      Value list = eval(args[0]);
      if (self().failed())
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
      Number value = evalInt(args[0]);
      return self().isLess(value, 0, expr->range) ? negated(expr, value)
                                                  : Value{.i = value};
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

  /// Of a list, or of the arguments of `min` and `max`.
  Value ofValues(const ast::CallExpr *expr, Builtin id,
                 ArrayRef<Value> values) {
    if (id == Builtin::Len)
      return {.i = int64_t(values.size())};
    if (id == Builtin::Sum) {
      Number sum = 0;
      for (size_t i = 0; i != values.size() && !self().failed(); ++i)
        sum = self().arithmetic(expr, ast::BinaryOp::Add, sum, values[i].i).i;
      return {.i = sum};
    }
    if (values.empty())
      return self().template invalid<diag::EmptyList>(expr->range,
                                                      expr->callee.text);
    Value best = values.front();
    bool isMin = id == Builtin::Min;
    for (const Value &other : values.drop_front())
      if (type(expr) == Type::Float
              ? (isMin ? other.f < best.f : best.f < other.f)
              : self().isLess(other.i, best.i, expr->range) == isMin)
        best = other;
    return best;
  }

  Value layout(const ast::CallExpr *expr) {
    char letter = static_cast<char>(module.exprs[expr->args[0]->id].index);
    if (!layers)
      return self().template invalid<diag::NoLayout>(expr->range, "layout");
    if (expr->args.size() == 1)
      return {.i = layers->total(letter)};
    int64_t stage = evalInRange(expr->args[1], "the stage", 0,
                                int64_t(layers->numStages()) - 1);
    return {.i = !self().failed() && layers->has(letter)
                     ? int64_t(layers->of(letter)[stage])
                     : 0};
  }

  Value count(Builtin id, KindId kind, const ast::Expr *chunk,
              SourceRange range) {
    std::optional<ChunkArg> arg;
    if (chunk)
      arg = evalChunk(chunk);
    return self().failed() ? Value{.i = 0}
                           : self().counterValue(id, kind, arg, range);
  }

  template <class T, class Less, class Equal>
  static Value compared(ast::BinaryOp op, const T &lhs, const T &rhs,
                        Less isLess, Equal isEqual) {
    using ast::BinaryOp;
    return {.i = op == BinaryOp::Eq   ? isEqual(lhs, rhs)
                 : op == BinaryOp::Ne ? !isEqual(lhs, rhs)
                 : op == BinaryOp::Lt ? isLess(lhs, rhs)
                 : op == BinaryOp::Le ? !isLess(rhs, lhs)
                 : op == BinaryOp::Gt ? isLess(rhs, lhs)
                                      : !isLess(lhs, rhs)};
  }

  Value of(const ast::BinaryExpr *expr) {
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
      return isCompare
                 ? compared(expr->op, lhs, rhs, std::less(), std::equal_to())
                 : ofFloats(expr, lhs, rhs);
    }
    Number lhs = evalInt(expr->lhs), rhs = evalInt(expr->rhs);
    if (!isCompare)
      return self().arithmetic(expr, expr->op, lhs, rhs);
    return compared(
        expr->op, lhs, rhs,
        [&](const Number &a, const Number &b) {
          return self().isLess(a, b, expr->range);
        },
        [&](const Number &a, const Number &b) {
          return self().isEqual(a, b, expr->range);
        });
  }

  Value ofFloats(const ast::BinaryExpr *expr, double lhs, double rhs) {
    using ast::BinaryOp;
    if (self().failed())
      return {.f = 0};
    if (expr->op == BinaryOp::Div && rhs == 0)
      return self().template reportWithCalls<diag::DivisionByZero>(
          expr->range, expr->opRange, spelling(expr->op));
    double result = expr->op == BinaryOp::Add   ? lhs + rhs
                    : expr->op == BinaryOp::Sub ? lhs - rhs
                    : expr->op == BinaryOp::Mul ? lhs * rhs
                                                : lhs / rhs;
    return std::isfinite(result)
               ? Value{.f = result}
               : self().template reportWithCalls<diag::Overflow>(
                     expr->range, expr->range, lhs, spelling(expr->op), rhs);
  }

  uint64_t steps = 0, nodes = 0;
};

} // namespace ppcc::sema
