// Checks names and types of expressions.
#pragma once

#include "SymbolTable.h"

namespace ppcc::sema {

/// Fills Module::exprs. The other parts of the check share its names.
class ExprChecker {
public:
  ExprChecker(Module &module, DiagnosticEngine &diags)
      : module(module), diags(diags), names(module.kinds, diags) {}

  /// Gives the type, and reports what is wrong inside.
  Type check(const ast::Expr *expr);
  /// Checks an expression that must be of a type; `what` says what it is.
  void expect(const ast::Expr *expr, Type wanted, StringRef what);
  /// The arguments of the function, block or placement `name`.
  template <class Item>
  void arguments(const ast::Identifier &name, const Callable<Item> &callee,
                 ArrayRef<const ast::Expr *> args) {
    if (args.size() != callee.params.size())
      wrongCount(name, callee.item->params, args.size());
    arguments(name, callee.params, args);
  }
  /// Those of a rule or schedule, which may have labels and defaults: by
  /// parameter, null for a default.
  std::vector<const ast::Expr *> labelled(const ast::Identifier &name,
                                          ArrayRef<ast::Argument> args,
                                          ArrayRef<ast::Parameter> params,
                                          ArrayRef<Type> types);
  /// Enters the rank as the first local, with or without a name.
  void rankVariable(const ast::Identifier &variable);
  /// Reports names in `expr` that nothing declares where one should stand for
  /// the rank; `form` is what to write with `{}` for it, in place of `range`.
  /// False then.
  bool requireRankName(const ast::Expr *expr, SourceRange range,
                       StringRef form);
  /// A chunk by number, or by pipe.
  void chunkArgument(const ast::Expr *expr);
  /// Checks numbers; those that are not there are null.
  void expectInts(std::initializer_list<const ast::Expr *> numbers,
                  StringRef what) {
    for (const ast::Expr *number : numbers)
      if (number)
        expect(number, Type::Int, what);
  }
  /// A kind that stands among statements.
  std::optional<KindId> computeKind(StringRef mnemonic) const;
  /// What a word of a space stands for; null, and a report with a hint or what
  /// is meant, when that is nothing.
  template <diag::Id unknown, class Args>
  Symbol *called(NameSpace space, const ast::Identifier &name, const Args &args,
                 StringRef hint = "", StringRef meant = "") {
    bool isReported;
    if (Symbol *symbol = names.find(space, name, isReported))
      return symbol;
    for (const auto &arg : args)
      check(valueOf(arg));
    if (isReported)
      return nullptr;
    auto builder = diags.report<unknown>(
        name.range, name.text,
        didYouMean(name.text, [&] { return names.visible(space); }));
    builder.undeclared(name.text, declaredBy[unsigned(space)]);
    if (!hint.empty())
      builder.note({}, "{}", hint);
    if (!meant.empty())
      builder.didYouMean({}, name.range, meant.str());
    return nullptr;
  }
  DiagnosticEngine::Builder wrongCount(const ast::Identifier &name,
                                       StringRef takes, size_t given);
  /// The same, with the form that a call has.
  void wrongCount(const ast::Identifier &name, ArrayRef<ast::Parameter> params,
                  size_t given);
  void arguments(const ast::Identifier &name, ArrayRef<Type> params,
                 ArrayRef<const ast::Expr *> args);
  /// `2 arguments`
  static std::string argumentCount(size_t count);
  /// Counts what the evaluation of a callee adds at this place.
  void addCallDepth(uint32_t depth, SourceRange range);
  /// The type that a declaration names; `otherwise` where it names none.
  Type declaredType(const ast::Identifier &name, Type otherwise);
  /// Enters parameters as locals, with what may stand after their types.
  enum class With : uint8_t { Nothing, Range, RangeAndDefault };
  std::vector<Type> parameters(ArrayRef<ast::Parameter> params, With with);
  /// The range and the default of a parameter.
  void checkBounds(const ast::Parameter &param, Type type);

  Module &module;
  DiagnosticEngine &diags;
  SymbolTable names;

private:
  static const ast::Expr *valueOf(const ast::Expr *arg) { return arg; }
  static const ast::Expr *valueOf(const ast::Argument &arg) {
    return arg.value;
  }
  Type type(const ast::Expr *expr) const { return module.exprs[expr->id].type; }
  Type set(const ast::Expr *expr, Type type,
           ExprInfo::Ref ref = ExprInfo::Ref::None, uint32_t index = 0);
  /// Notes that the value of an int expression becomes a float.
  void toFloat(const ast::Expr *expr);
  Type of(const ast::IntExpr *expr) { return set(expr, Type::Int); }
  Type of(const ast::FloatExpr *expr) { return set(expr, Type::Float); }
  Type of(const ast::BoolExpr *expr) { return set(expr, Type::Bool); }
  Type of(const ast::UnaryExpr *expr);
  Type of(const ast::BinaryExpr *expr);
  Type of(const ast::ConditionalExpr *expr);
  /// The type that holds both sides, which become that.
  std::optional<Type> join(const ast::Expr *a, const ast::Expr *b);
  Type of(const ast::NameExpr *expr);
  Type of(const ast::ListExpr *expr);
  Type of(const ast::ListForExpr *expr);
  Type of(const ast::IndexExpr *expr);
  /// The list of such elements.
  Type listOf(const ast::Expr *element, Type type);
  Type of(const ast::CallExpr *expr);
  Type builtin(const ast::CallExpr *expr, Builtin id);
  /// What a function of a list gives, and one of numbers.
  Type ofList(const ast::Expr *arg, Builtin id);
  Type ofNumbers(ArrayRef<const ast::Expr *> args);
  /// The F of `issued(F, c)`.
  void actionArgument(const ast::Expr *expr);
  /// The t of `layout(t, s)`.
  void layerArgument(const ast::Expr *expr);
  /// The names that nothing declares, but those of loops.
  void addUndeclared(const ast::Expr *expr, std::vector<StringRef> &names);
  void unknown(const ast::NameExpr *expr);
  void needRank(const ast::Identifier &name);
};

/// Enters what has parameters into a table of the module and the names, when
/// `inside` has checked the rest of it.
template <class T, class Item, class Inside>
void declare(NameSpace space, const Item *item, ExprChecker::With with,
             std::vector<T> &table, ExprChecker &exprs, Inside inside) {
  T checked;
  checked.item = item;
  {
    bool onRank = space == NameSpace::Statement;
    SymbolTable::FrameScope frame(exprs.names, {space, item->name, onRank});
    checked.params = exprs.parameters(item->params, with);
    inside(checked);
    checked.numLocals = exprs.names.frame.numLocals;
    checked.depth = frame.depth();
  }
  Symbol symbol;
  symbol.index = uint32_t(table.size());
  table.push_back(std::move(checked));
  exprs.names.define(space, item->name, symbol);
}

} // namespace ppcc::sema
