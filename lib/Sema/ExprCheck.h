// Checks names and types of expressions.
#pragma once

#include "Names.h"

namespace ppcc::sema {

/// Whether the name is that of a function or counter of the language.
bool isBuiltin(llvm::StringRef name);
/// Whether it stands for a value by itself.
bool isCounter(llvm::StringRef name);

/// Fills Module::exprs. The other parts of the check share its names.
class ExprChecker {
public:
  ExprChecker(Module &module, DiagnosticEngine &diags)
      : module(module), diags(diags), names(module.kinds, diags) {}

  /// Gives the type, and reports what is wrong inside.
  Type check(const ast::Expr *expr);
  /// Checks an expression that must be of a type; `what` says what it is.
  void expect(const ast::Expr *expr, Type wanted, llvm::StringRef what);
  /// The arguments of the function or block `name`.
  void arguments(const ast::Identifier &name, llvm::ArrayRef<Type> params,
                 llvm::ArrayRef<const ast::Expr *> args);
  /// Those of a rule or schedule, which may have labels and defaults: by
  /// parameter, null for a default.
  std::vector<const ast::Expr *> labelled(const ast::Identifier &name,
                                          llvm::ArrayRef<ast::Argument> args,
                                          llvm::ArrayRef<ast::Parameter> params,
                                          llvm::ArrayRef<Type> types);
  /// Enters the rank as the first local: under `variable`, or under the first
  /// name in `expr` that nothing declares.
  void rankVariable(ast::Identifier variable, const ast::Expr *expr);
  /// A chunk by number, or by pipe.
  void chunkArgument(const ast::Expr *expr);
  /// A kind that stands among statements.
  std::optional<KindId> computeKind(llvm::StringRef letters) const;
  void wrongCount(const ast::Identifier &name, llvm::StringRef takes,
                  size_t given);
  /// `2 arguments`
  static std::string argumentCount(size_t count);
  /// Counts what the evaluation of a callee adds at this place.
  void deepen(uint32_t depth, SourceRange range);
  /// The type that a declaration names; `otherwise` where it names none.
  Type declaredType(const ast::Identifier &name, Type otherwise);
  /// Enters parameters as locals, with what may stand behind their types.
  enum class With : uint8_t { Nothing, Range, RangeAndDefault };
  std::vector<Type> parameters(llvm::ArrayRef<ast::Parameter> params,
                               With with);
  /// The range and the default of a parameter.
  void checkBounds(const ast::Parameter &param, Type type);

  Module &module;
  DiagnosticEngine &diags;
  Names names;

private:
  Type type(const ast::Expr *expr) const { return module.exprs[expr->id].type; }
  Type set(const ast::Expr *expr, Type type,
           ExprInfo::Ref ref = ExprInfo::Ref::None, uint32_t index = 0);
  /// Notes that the value of an int expression becomes a float.
  void toFloat(const ast::Expr *expr);
  Type checkNode(const ast::Expr *expr);
  Type unary(const ast::UnaryExpr *expr);
  Type binary(const ast::BinaryExpr *expr);
  Type conditional(const ast::ConditionalExpr *expr);
  /// The type that holds both sides, which become that.
  std::optional<Type> join(const ast::Expr *a, const ast::Expr *b);
  Type name(const ast::NameExpr *expr);
  Type list(const ast::ListExpr *expr);
  Type listFor(const ast::ListForExpr *expr);
  Type index(const ast::IndexExpr *expr);
  /// The list of such elements.
  Type listOf(const ast::Expr *element, Type type);
  Type call(const ast::CallExpr *expr);
  Type builtin(const ast::CallExpr *expr, Builtin id);
  Type extremum(const ast::CallExpr *expr, Builtin id);
  /// The one argument of a function of lists; false when it is none.
  bool listArgument(const ast::CallExpr *expr);
  /// The F of `issued(F, c)`.
  void actionArgument(const ast::Expr *expr);
  /// The t of `layout(t, s)`.
  void layerArgument(const ast::Expr *expr);
  ast::Identifier undeclared(const ast::Expr *expr);
  void needRank(const ast::Identifier &name);
};

} // namespace ppcc::sema
