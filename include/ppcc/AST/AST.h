// The tree of a source file: syntax as written, names unresolved. Nodes never
// change once they are made; AST.def lists them.
#pragma once

#include "ppcc/Basic/Source.h"
#include "ppcc/Support/LLVM.h"

#include "llvm/Support/Allocator.h"

namespace ppcc::ast {

/// A name where it stands.
struct Identifier {
  StringRef text;
  SourceRange range;
};

enum class UnaryOp : uint8_t { Negate, Not };
enum class BinaryOp : uint8_t {
  Add,
  Sub,
  Mul,
  Div,
  Mod,
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
  And,
  Or
};
inline bool isComparison(BinaryOp op) {
  return op >= BinaryOp::Eq && op <= BinaryOp::Ge;
}

/// `+`, `and`, ...
StringRef spelling(BinaryOp op);
StringRef spelling(UnaryOp op);

enum class ExprKind : uint8_t {
#define EXPR(Name) Name,
#include "ppcc/AST/AST.def"
};

enum class StmtKind : uint8_t {
#define EXPR(Name)
#define NODE(Name, Suffix, Label) Name,
#include "ppcc/AST/AST.def"
};

/// An expression. `id` is dense over one Context, so that later phases keep
/// what they know in tables.
struct Expr {
  ExprKind kind;
  uint32_t id;
  SourceRange range;
};
using Exprs = ArrayRef<const Expr *>;

/// A statement or a declaration. `id` is dense over one Context.
struct Stmt {
  StmtKind kind;
  uint32_t id;
  SourceRange range; ///< Its first word or, for actions and places, the whole.
};
using Body = ArrayRef<const Stmt *>;

#define EXPR(Name)                                                             \
  struct Name##Expr : Expr {                                                   \
    static constexpr ExprKind ofKind = ExprKind::Name;                         \
    static bool classof(const Expr *e) { return e->kind == ofKind; }
#define NODE(Name, Suffix, Label)                                              \
  struct Name##Suffix : Stmt {                                                 \
    static constexpr StmtKind ofKind = StmtKind::Name;                         \
    static bool classof(const Stmt *s) { return s->kind == ofKind; }
#define RECORD(Name, Label) struct Name {
#define FIELD(Type, Name, ...) Type Name;
#define END                                                                    \
  }                                                                            \
  ;
#include "ppcc/AST/AST.def"

// forEachField(node, visit) calls `visit` with each field and the text that
// --emit=ast prints before it.
#define NODE(Name, Suffix, Label)                                              \
  template <class Visit>                                                       \
  void forEachField(const Name##Suffix &node, Visit &&visit) {
#define RECORD(Name, Label)                                                    \
  template <class Visit> void forEachField(const Name &node, Visit &&visit) {
#define FIELD(Type, Name, ...) visit(node.Name, StringRef(__VA_ARGS__));
#define END }
#include "ppcc/AST/AST.def"

/// Calls `visit` with the node as what it is, and gives what that gives.
template <class Visit> auto dispatch(const Expr *expr, Visit &&visit) {
  switch (expr->kind) {
#define EXPR(Name)                                                             \
  case ExprKind::Name:                                                         \
    return visit(*cast<Name##Expr>(expr));
#include "ppcc/AST/AST.def"
  }
  llvm_unreachable("all kinds are above");
}
template <class Visit> auto dispatch(const Stmt *stmt, Visit &&visit) {
  switch (stmt->kind) {
#define EXPR(Name)
#define NODE(Name, Suffix, Label)                                              \
  case StmtKind::Name:                                                         \
    return visit(*cast<Name##Suffix>(stmt));
#include "ppcc/AST/AST.def"
  }
  llvm_unreachable("all kinds are above");
}

/// Calls `visit` with each expression that stands in another, but not in a
/// third between them.
template <class Visit> void forEachChild(const Expr *expr, Visit visit) {
  auto field = [&](const auto &value, StringRef) {
    using Type = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<Type, const Expr *>)
      visit(value);
    else if constexpr (std::is_same_v<Type, Exprs>)
      for (const Expr *child : value)
        visit(child);
  };
  dispatch(expr, [&](const auto &node) { forEachField(node, field); });
}

/// Calls `visit` with each body of a statement.
template <class Visit> void forEachBody(const Stmt *stmt, Visit visit) {
  auto field = [&](const auto &value, StringRef) {
    using Type = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<Type, Body>)
      visit(value);
    else if constexpr (std::is_same_v<Type, ArrayRef<Branch>>)
      for (const Branch &branch : value)
        visit(branch.body);
  };
  dispatch(stmt, [&](const auto &node) { forEachField(node, field); });
}

/// Owns the nodes of all files of a compilation and gives them their ids.
class Context {
public:
  /// Gives a node its id.
  template <class T> const T *keep(T node) {
    static_assert(std::is_trivially_destructible_v<T>);
    node.id = std::is_base_of_v<Expr, T> ? exprs++ : stmts++;
    return new (arena.Allocate<T>()) T(node);
  }
  template <class T, class... Fields>
  const T *make(SourceRange range, const Fields &...fields) {
    return keep(T{{T::ofKind, 0, range}, fields...});
  }
  template <class T> ArrayRef<T> copy(ArrayRef<T> values) {
    return values.copy(arena);
  }
  StringRef copy(StringRef text) { return text.copy(arena); }

  uint32_t numExprs() const { return exprs; }
  uint32_t numStmts() const { return stmts; }

private:
  llvm::BumpPtrAllocator arena;
  uint32_t exprs = 0, stmts = 0;
};

/// Writes the tree of a file, a node a line, children indented.
void print(const File &file, raw_ostream &out);
/// Writes an expression as source, with the parentheses that it needs and no
/// others.
void print(const Expr *expr, raw_ostream &out);

} // namespace ppcc::ast
