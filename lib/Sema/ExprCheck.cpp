#include "ExprCheck.h"

#include "ppcc/Basic/Diagnostics/Syntax.h"

using namespace ppcc;
using namespace ppcc::sema;

namespace {

/// Evaluation recurses this deep at most, so that no schedule exhausts the
/// stack.
constexpr uint32_t maxDepth = 2000;

/// The place of the parameter that an argument names; reports when there is
/// none.
size_t indexOfArgument(const ast::Identifier &label,
                       ArrayRef<ast::Parameter> params,
                       DiagnosticEngine &diags) {
  auto nameOf = [](const ast::Parameter &param) { return param.name.text; };
  auto *found = findBy(params, label.text, nameOf);
  if (!found)
    diags.report<diag::UnknownLabel>(label.range, label.text,
                                     didYouMean(label.text, params, nameOf));
  return found ? found - params.begin() : params.size();
}

bool isNumber(Type type) { return type == Type::Int || type == Type::Float; }

} // namespace

Type ExprChecker::declaredType(const ast::Identifier &name, Type otherwise) {
  if (name.text.empty())
    return otherwise;
  std::vector<StringRef> known;
  for (Type type : {Type::Int, Type::Bool, Type::Float, Type::Pipe, Type::Part,
                    Type::IntList, Type::PipeList}) {
    known.push_back(typeName(type));
    if (known.back() == name.text)
      return type;
  }
  diags.report<diag::UnknownType>(name.range, name.text,
                                  didYouMean(name.text, known));
  return Type::Error;
}

std::vector<Type> ExprChecker::parameters(ArrayRef<ast::Parameter> params,
                                          With with) {
  std::vector<Type> types;
  for (const ast::Parameter &param : params) {
    types.push_back(declaredType(param.type, Type::Int));
    bool isRanged = with != With::Nothing;
    const ast::Expr *refused = param.lowerBound && !isRanged ? param.lowerBound
                               : with != With::RangeAndDefault
                                   ? param.defaultValue
                                   : nullptr;
    if (refused)
      diags.report<diag::UnexpectedToken>(
          refused->range,
          refused == param.lowerBound ? "range" : "default value",
          "`,` or `)`: only schedules and rules have defaults, and they and "
          "placements ranges");
    else
      checkBounds(param, types.back());
    names.defineLocal(param.name, types.back());
  }
  return types;
}

void ExprChecker::checkBounds(const ast::Parameter &param, Type type) {
  Type element = elementType(type);
  if (param.lowerBound && !isNumber(element) && element != Type::Error)
    diags.report<diag::TypeMismatch>(param.type.range,
                                     "a parameter with a range",
                                     "int, int[] or float", typeName(type));
  else if (param.lowerBound)
    expect(param.lowerBound, param.end ? Type::Int : element, "the range");
  if (param.end)
    expect(param.end, Type::Int, "the range");
  if (param.end && type == Type::Float)
    diags.report<diag::TypeMismatch>(
        param.type.range, "a parameter with two bounds", "int", typeName(type));
  if (param.defaultValue)
    expect(param.defaultValue, type, "the default value");
}

Type ExprChecker::set(const ast::Expr *expr, Type type, ExprInfo::Ref ref,
                      uint32_t index) {
  module.exprs[expr->id] = {type, ref, false, index};
  return type;
}

void ExprChecker::expect(const ast::Expr *expr, Type wanted, StringRef what) {
  Type actual = check(expr);
  if (actual == wanted || actual == Type::Error || wanted == Type::Error)
    return;
  if (actual == Type::Int && wanted == Type::Float)
    return toFloat(expr);
  auto builder = diags.report<diag::TypeMismatch>(
      expr->range, what, typeName(wanted), typeName(actual));
  auto *binary = dyn_cast<ast::BinaryExpr>(expr);
  if (wanted == Type::Int && binary && binary->op == ast::BinaryOp::Div)
    builder.note({}, "`/` of two ints gives an int, rounded down");
}

void ExprChecker::toFloat(const ast::Expr *expr) {
  ExprInfo &info = module.exprs[expr->id];
  if (info.type != Type::Int)
    return;
  info.becomesFloat = true;
  auto *binary = dyn_cast<ast::BinaryExpr>(expr);
  bool isExtremum = info.ref == ExprInfo::Ref::Builtin &&
                    info.index <= uint32_t(Builtin::Abs);
  // What is rounded on purpose, `a / b % c`, stays an int.
  if (isa<ast::UnaryExpr, ast::ConditionalExpr>(expr) || isExtremum ||
      (binary && binary->op != ast::BinaryOp::Mod))
    forEachChild(expr, [this](const ast::Expr *child) { toFloat(child); });
}

Type ExprChecker::check(const ast::Expr *expr) {
  Frame &frame = names.frame;
  frame.evalDepth = std::max(frame.evalDepth, ++frame.currentDepth);
  Type result = dispatch(expr, [&](const auto &node) { return of(&node); });
  --frame.currentDepth;
  return result;
}

Type ExprChecker::listOf(const ast::Expr *element, Type type) {
  if (type == Type::Int || type == Type::Pipe)
    return type == Type::Int ? Type::IntList : Type::PipeList;
  if (type != Type::Error)
    diags.report<diag::TypeMismatch>(element->range, "an element of a list",
                                     "an int or a pipe", typeName(type));
  return Type::Error;
}

Type ExprChecker::of(const ast::ListExpr *expr) {
  Type result = Type::IntList;
  for (const ast::Expr *element : expr->elements)
    if (element == expr->elements.front())
      result = listOf(element, check(element));
    else
      expect(element, elementType(result), "an element of the list");
  return set(expr, result);
}

Type ExprChecker::of(const ast::ListForExpr *expr) {
  for (const ast::Expr *end : {expr->from, expr->to})
    expect(end, Type::Int, "the range of `for`");
  SymbolTable::Scope scope(names);
  uint32_t slot =
      names.defineLocal(expr->variable, Type::Int, Symbol::Binder::Loop);
  return set(expr, listOf(expr->element, check(expr->element)),
             ExprInfo::Ref::None, slot);
}

Type ExprChecker::of(const ast::IndexExpr *expr) {
  Type list = check(expr->list);
  if (!isList(list) && list != Type::Error) {
    diags.report<diag::TypeMismatch>(expr->list->range, "what `[ ]` looks into",
                                     "a list", typeName(list));
    list = Type::Error;
  }
  expect(expr->index, Type::Int, "a place in a list");
  return set(expr, elementType(list));
}

std::optional<Type> ExprChecker::join(const ast::Expr *a, const ast::Expr *b) {
  Type first = type(a), second = type(b);
  if (first == Type::Error || second == Type::Error)
    return Type::Error;
  if (first == second)
    return first;
  if (!isNumber(first) || !isNumber(second))
    return std::nullopt;
  toFloat(a);
  toFloat(b);
  return Type::Float;
}

Type ExprChecker::of(const ast::UnaryExpr *expr) {
  Type operand = check(expr->operand);
  bool isNot = expr->op == ast::UnaryOp::Not;
  if (operand == Type::Error ||
      (isNot ? operand == Type::Bool : isNumber(operand)))
    return set(expr, operand);
  diags.report<diag::BadOperands>(expr->range, spelling(expr->op),
                                  typeName(operand));
  return set(expr, isNot ? Type::Bool : Type::Error);
}

Type ExprChecker::of(const ast::BinaryExpr *expr) {
  using ast::BinaryOp;
  Type lhs = check(expr->lhs), rhs = check(expr->rhs);
  std::optional<Type> common = join(expr->lhs, expr->rhs);
  bool isLogic = expr->op == BinaryOp::And || expr->op == BinaryOp::Or;
  bool isEquality = expr->op == BinaryOp::Eq || expr->op == BinaryOp::Ne;
  bool isGood = common && (*common == Type::Error ||
                           (isLogic                     ? *common == Type::Bool
                            : isEquality                ? !isList(*common)
                            : expr->op == BinaryOp::Mod ? *common == Type::Int
                                                        : isNumber(*common)));
  if (!isGood)
    diags.report<diag::BadOperands>(
        expr->opRange, spelling(expr->op),
        lhs == rhs ? typeName(lhs).str()
                   : fmt::format("{} and {}", typeName(lhs), typeName(rhs)));
  return set(expr, isLogic || isComparison(expr->op) ? Type::Bool
                   : isGood                          ? *common
                                                     : Type::Error);
}

Type ExprChecker::of(const ast::ConditionalExpr *expr) {
  expect(expr->condition, Type::Bool, "the condition of `?:`");
  Type then = check(expr->then), otherwise = check(expr->otherwise);
  std::optional<Type> common = join(expr->then, expr->otherwise);
  if (!common)
    diags.report<diag::TypeMismatch>(expr->otherwise->range,
                                     "the other side of `?:`", typeName(then),
                                     typeName(otherwise));
  return set(expr, common.value_or(Type::Error));
}

Type ExprChecker::of(const ast::NameExpr *expr) {
  ast::Identifier word{expr->name, expr->range};
  bool isReported;
  if (Symbol *symbol = names.find(NameSpace::Value, word, isReported))
    return set(expr, symbol->type, symbol->ref, symbol->index);
  std::optional<Builtin> builtin = findBuiltin(expr->name);
  // `padded` and `pending` stand for all of the rank.
  if (builtin && *builtin >= Builtin::Pending) {
    if (*builtin != Builtin::Ranks)
      needRank(word);
    return set(expr, Type::Int, ExprInfo::Ref::Builtin, uint32_t(*builtin));
  }
  if (builtin || names.find(NameSpace::Function, expr->name))
    diags.report<diag::WrongArgumentCount>(expr->range, expr->name, "arguments",
                                           "none are");
  else
    unknown(expr);
  return Type::Error;
}

void ExprChecker::unknown(const ast::NameExpr *expr) {
  auto report = diags.report<diag::UnknownName>(
      expr->range, expr->name,
      didYouMean(expr->name, [&] { return names.visible(NameSpace::Value); }));
  if (computeKind(expr->name))
    report.note({}, "`{0}` is an action, which `issued({0})` counts",
                expr->name);
}

void ExprChecker::needRank(const ast::Identifier &name) {
  if (!names.frame.onRank)
    diags.report<diag::OnlyOnRank>(name.range, name.text);
}

DiagnosticEngine::Builder ExprChecker::wrongCount(const ast::Identifier &name,
                                                  StringRef takes,
                                                  size_t given) {
  return diags.report<diag::WrongArgumentCount>(
      name.range, name.text, takes,
      fmt::format("{} {}", given, given == 1 ? "is" : "are"));
}

Type ExprChecker::of(const ast::CallExpr *expr) {
  if (auto id = findBuiltin(expr->callee.text))
    return builtin(expr, *id);
  Symbol *symbol = called<diag::UnknownFunction>(NameSpace::Function,
                                                 expr->callee, expr->args);
  if (!symbol)
    return Type::Error;
  uint32_t index = symbol->index;
  const Function &function = module.functions[index];
  arguments(expr->callee, function, expr->args);
  addCallDepth(function.depth, expr->callee.range);
  return set(expr, function.result, ExprInfo::Ref::Function, index);
}

std::string ExprChecker::argumentCount(size_t count) {
  return count == 0
             ? "no argument"
             : fmt::format("{} argument{}", count, count == 1 ? "" : "s");
}

void ExprChecker::wrongCount(const ast::Identifier &name,
                             ArrayRef<ast::Parameter> params, size_t given) {
  std::vector<StringRef> names;
  for (const ast::Parameter &param : params)
    names.push_back(param.name.text);
  wrongCount(name, argumentCount(params.size()), given)
      .note({}, "write `{}{}`", name.text,
            names.empty() ? "" : "(" + llvm::join(names, ", ") + ")");
}

void ExprChecker::arguments(const ast::Identifier &name, ArrayRef<Type> params,
                            ArrayRef<const ast::Expr *> args) {
  for (size_t i = 0; i != args.size(); ++i)
    expect(args[i], i < params.size() ? params[i] : Type::Error,
           "this argument");
}

std::vector<const ast::Expr *>
ExprChecker::labelled(const ast::Identifier &name, ArrayRef<ast::Argument> args,
                      ArrayRef<ast::Parameter> params, ArrayRef<Type> types) {
  std::vector<const ast::Expr *> result(params.size());
  size_t next = 0;
  const ast::Identifier *label = nullptr; ///< The last before an argument.
  bool isComplete = true;
  for (const ast::Argument &arg : args) {
    bool isNamed = !arg.label.text.empty();
    if (!isNamed && label) {
      check(arg.value);
      diags.report<diag::PositionalAfterLabel>(arg.value->range, label->text);
      isComplete = false;
      continue;
    }
    if (isNamed)
      label = &arg.label;
    size_t place = isNamed ? indexOfArgument(arg.label, params, diags) : next++;
    bool isKnown = place < result.size();
    expect(arg.value, isKnown ? types[place] : Type::Error, "this argument");
    if (!isKnown) {
      isComplete &= !isNamed;
      continue;
    }
    if (isNamed && names.observer)
      names.observer->use(arg.label.range, params[place].name.range);
    if (result[place])
      diags.report<diag::DuplicateItem>(
          arg.value->range,
          fmt::format("value for `{}`", params[place].name.text));
    result[place] = arg.value;
  }
  bool isMissing = false;
  for (auto [i, arg] : llvm::enumerate(result))
    isMissing |= !arg && !params[i].defaultValue;
  if (next > params.size() || (isMissing && isComplete))
    wrongCount(name, params, args.size());
  return result;
}

void ExprChecker::addCallDepth(uint32_t depth, SourceRange range) {
  Frame &frame = names.frame;
  frame.evalDepth = std::max(frame.evalDepth, frame.currentDepth + depth);
  if (frame.evalDepth > maxDepth) {
    diags.report<diag::CallsTooDeep>(range, maxDepth);
    frame.evalDepth = 0;
  }
}

Type ExprChecker::builtin(const ast::CallExpr *expr, Builtin id) {
  ArrayRef<const ast::Expr *> args = expr->args;
  auto takes = [&](size_t minArgs, size_t maxArgs, StringRef what) {
    bool isGood = args.size() >= minArgs && args.size() <= maxArgs;
    if (!isGood)
      wrongCount(expr->callee, what, args.size());
    return isGood;
  };
  Type result = Type::Int;
  switch (id) {
  case Builtin::Min:
  case Builtin::Max:
    if (args.size() == 1 && isList(check(args[0])))
      result = ofList(args[0], id);
    else
      result = takes(2, SIZE_MAX, "2 arguments or more, or a list")
                   ? ofNumbers(args)
                   : Type::Error;
    break;
  case Builtin::Abs:
    result = takes(1, 1, "1 argument") ? ofNumbers(args) : Type::Error;
    break;
  case Builtin::Len:
  case Builtin::Sum:
    result = takes(1, 1, "1 argument") ? ofList(args[0], id) : Type::Error;
    break;
  case Builtin::Ranks: // A keyword, which nothing calls.
    break;
  case Builtin::Layout:
    takes(1, 2, "a layer and perhaps a stage");
    for (const ast::Expr *arg : args)
      arg == args.front() ? layerArgument(arg)
                          : expect(arg, Type::Int, "a stage");
    break;
  case Builtin::Issued:
    needRank(expr->callee);
    if (takes(1, 2, "an action and perhaps a chunk"))
      for (const ast::Expr *arg : args)
        arg == args.front() ? actionArgument(arg) : chunkArgument(arg);
    break;
  case Builtin::Pending:
  case Builtin::Padded:
    needRank(expr->callee);
    if (takes(0, 1, "a chunk or a pipe"))
      for (const ast::Expr *chunk : args)
        chunkArgument(chunk);
  }
  return set(expr, result, ExprInfo::Ref::Builtin, uint32_t(id));
}

Type ExprChecker::ofList(const ast::Expr *arg, Builtin id) {
  Type list = check(arg);
  bool takesAny = id == Builtin::Len;
  if (takesAny ? isList(list) : list == Type::IntList)
    return Type::Int;
  if (list != Type::Error)
    diags.report<diag::TypeMismatch>(arg->range, "this argument",
                                     takesAny ? "a list" : "int[]",
                                     typeName(list));
  return Type::Error;
}

Type ExprChecker::ofNumbers(ArrayRef<const ast::Expr *> args) {
  Type result = Type::Int;
  for (const ast::Expr *arg : args) {
    Type type = check(arg);
    if (type != Type::Error && !isNumber(type)) {
      diags.report<diag::TypeMismatch>(arg->range, "this argument", "a number",
                                       typeName(type));
      type = Type::Error;
    }
    if (type != Type::Int && result != Type::Error)
      result = type;
  }
  if (result == Type::Float)
    for (const ast::Expr *arg : args)
      toFloat(arg);
  return result;
}

void ExprChecker::actionArgument(const ast::Expr *expr) {
  auto *name = dyn_cast<ast::NameExpr>(expr);
  if (auto kind = name ? computeKind(name->name) : std::nullopt) {
    names.recordUse(NameSpace::Statement, {name->name, name->range});
    set(expr, Type::Int, ExprInfo::Ref::Kind, kind->value);
  } else
    diags.report<diag::UnknownAction>(expr->range, source(expr), "");
}

void ExprChecker::layerArgument(const ast::Expr *expr) {
  auto *name = dyn_cast<ast::NameExpr>(expr);
  if (name && name->name.size() == 1 && llvm::isAlpha(name->name[0]))
    set(expr, Type::Int, ExprInfo::Ref::Letter, name->name[0]);
  else
    diags.report<diag::TypeMismatch>(expr->range, "the layer of `layout`",
                                     "a letter",
                                     fmt::format("`{}`", source(expr)));
}

void ExprChecker::chunkArgument(const ast::Expr *expr) {
  Type actual = check(expr);
  if (actual != Type::Int && actual != Type::Pipe && actual != Type::Part &&
      actual != Type::Error)
    diags.report<diag::TypeMismatch>(
        expr->range, "a chunk", "an int, a pipe or a part", typeName(actual));
}

std::optional<KindId> ExprChecker::computeKind(StringRef mnemonic) const {
  std::optional<KindId> kind = module.kinds.find(mnemonic);
  return kind && module.kinds[*kind].isCompute() ? kind : std::nullopt;
}

void ExprChecker::rankVariable(const ast::Identifier &variable) {
  if (variable.text.empty())
    ++names.frame.numLocals; // Slot 0 is the rank, with or without a name.
  else
    names.defineLocal(variable, Type::Int, Symbol::Binder::Each);
}

bool ExprChecker::requireRankName(const ast::Expr *expr, SourceRange range,
                                  StringRef form) {
  std::vector<StringRef> unknown;
  addUndeclared(expr, unknown);
  if (unknown.empty())
    return true;
  StringRef rank =
      llvm::is_contained(unknown, "r") ? StringRef("r") : unknown.front();
  diags.report<diag::MissingRankName>(expr->range)
      .didYouMean(range, range,
                  fmt::format(fmt::runtime(form.str()), source(expr), rank));
  return false;
}

void ExprChecker::addUndeclared(const ast::Expr *expr,
                                std::vector<StringRef> &unknown) {
  if (auto *name = dyn_cast<ast::NameExpr>(expr))
    if (!isCounter(name->name) && !names.find(NameSpace::Value, name->name))
      unknown.push_back(name->name);
  if (!isa<ast::ListForExpr>(expr))
    forEachChild(
        expr, [&](const ast::Expr *child) { addUndeclared(child, unknown); });
}
