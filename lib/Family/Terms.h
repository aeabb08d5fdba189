// Evaluates expressions on numbers that depend on n and on the turn of a
// window.
#pragma once

#include "Number.h"

#include "ppcc/Sema/Instance.h"

namespace ppcc::family {

/// A value; its type is known from the expression.
struct Term {
  Affine i;
  double f = 0;
  std::shared_ptr<const std::vector<Affine>> list = nullptr;
};

/// What expressions see, and what they are worth. Ends with a Stop where that
/// is not one value for all n.
class Terms {
public:
  virtual ~Terms() = default;

  sema::Type type(const ast::Expr *expr) const {
    return module.exprs[expr->id].type;
  }
  Term eval(const ast::Expr *expr);
  Affine evalInt(const ast::Expr *expr) { return eval(expr).i; }
  bool evalBool(const ast::Expr *expr) { return eval(expr).i.c != 0; }
  double evalFloat(const ast::Expr *expr);
  Term evalAs(const ast::Expr *expr, sema::Type wanted) {
    return wanted == sema::Type::Float ? Term{{}, evalFloat(expr)} : eval(expr);
  }

  static Term listOf(std::vector<Affine> elements) {
    return {{},
            0,
            std::make_shared<const std::vector<Affine>>(std::move(elements))};
  }
  /// That of `-D`: numbers with commas.
  static Term listOf(StringRef text);
  static ArrayRef<Affine> elementsOf(const Term &list) {
    return list.list ? ArrayRef(*list.list) : ArrayRef<Affine>();
  }

  Numbers numbers;
  std::vector<Term> globals, frame;

protected:
  Terms(const sema::Module &module, const sema::Instance *sample)
      : module(module), sample(sample) {}

  /// The value of a counter, such as `issued(F, c)`.
  virtual Term counter(sema::Builtin id, KindId kind, const ast::Expr *arg,
                       SourceRange place) = 0;
  void step(SourceRange place) {
    if (++steps > 20'000'000)
      stop(Outcome::Kind::Undecided, place, "it takes too many steps");
  }
  uint32_t slotOf(const ast::Stmt *stmt) const {
    return module.stmts[stmt->id].index;
  }

  const sema::Module &module;
  const sema::Instance *sample; ///< Of all n, but for what depends on them.

private:
  static Term truth(bool value) { return {{value, 0, 0}, 0}; }
  Term call(const ast::CallExpr *expr);
  Term builtin(const ast::CallExpr *expr, sema::Builtin id);
  Term ofList(const ast::CallExpr *expr, sema::Builtin id);
  Term binary(const ast::BinaryExpr *expr);
  /// An end of the range of a list, whose length is one for all n.
  int64_t length(const ast::Expr *expr);

  std::vector<std::vector<Term>> spare; ///< Frames that have been left.
  uint64_t steps = 0;
};

} // namespace ppcc::family
