// Prints trees: a node a line for files, source text for expressions.
#include "ppcc/AST/AST.h"

#include <charconv>

using namespace ppcc;
using namespace ppcc::ast;

StringRef ast::spelling(BinaryOp op) {
  static constexpr StringRef texts[] = {
      "+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "and", "or"};
  return texts[unsigned(op)];
}

StringRef ast::spelling(UnaryOp op) {
  return op == UnaryOp::Negate ? "-" : "not";
}

/// How tightly the outermost operator binds; the grammar's order.
static unsigned precedence(const Expr *expr) {
  // As in spelling(BinaryOp).
  static constexpr unsigned ofBinary[] = {5, 5, 6, 6, 6, 4, 4,
                                          4, 4, 4, 4, 2, 1};
  switch (expr->kind) {
  case ExprKind::Conditional:
    return 0;
  case ExprKind::Unary:
    return cast<UnaryExpr>(expr)->op == UnaryOp::Not ? 3 : 7;
  case ExprKind::Binary:
    return ofBinary[unsigned(cast<BinaryExpr>(expr)->op)];
  default:
    return 8;
  }
}

namespace {

/// Writes expressions as source.
struct ExprPrinter {
  raw_ostream &out;

  /// In parentheses where the expression binds less tightly than `level`.
  void put(const Expr *expr, unsigned level = 0) {
    unsigned own = precedence(expr);
    StringRef close; // Of a bracket, within which nothing needs parentheses.
    out << (own < level ? "(" : "");
    auto field = [&](const auto &value, StringRef before) {
      out << before;
      if (before == "(" || before == "[")
        close = before == "(" ? ")" : "]";
      // Operators of two sides group to the left, `?:` to the right.
      bool isAway = isa<ConditionalExpr>(expr) == before.empty();
      put(value, close.empty() ? own + isAway : 0);
    };
    dispatch(expr, [&](const auto &node) { forEachField(node, field); });
    out << close << (own < level ? ")" : "");
  }

  void put(Exprs list, unsigned = 0) {
    llvm::interleaveComma(list, out, [&](const Expr *expr) { put(expr); });
  }

  void put(int64_t value, unsigned) { out << value; }
  /// The shortest literal that gives the value again.
  void put(double value, unsigned) {
    char digits[32];
    char *end = std::to_chars(digits, std::end(digits), value).ptr;
    StringRef text(digits, end - digits);
    out << text << (text.find_first_of(".e") == StringRef::npos ? ".0" : "");
  }
  void put(bool value, unsigned) { out << (value ? "true" : "false"); }
  void put(StringRef name, unsigned) { out << name; }
  void put(const Identifier &name, unsigned) { out << name.text; }
  void put(UnaryOp op, unsigned) {
    out << spelling(op) << (op == UnaryOp::Not ? " " : "");
  }
  void put(BinaryOp op, unsigned) { out << spelling(op); }
  void put(SourceRange, unsigned) {}
};

} // namespace

void ast::print(const Expr *expr, raw_ostream &out) {
  ExprPrinter{out}.put(expr);
}

/// Whether a loop stands among declarations, where it can hold nothing else.
static bool isOfEdges(const ForStmt &loop) {
  if (loop.body.empty())
    return false;
  auto *inner = dyn_cast<ForStmt>(loop.body.front());
  return inner ? isOfEdges(*inner) : isa<EdgeStmt>(loop.body.front());
}

#define EXPR(Name)
#define NODE(Name, Suffix, Label)                                              \
  static StringRef labelOf([[maybe_unused]] const Name##Suffix &node) {        \
    return Label;                                                              \
  }
#define RECORD(Name, Label)                                                    \
  [[maybe_unused]] static StringRef labelOf(const Name &) { return Label; }
#include "ppcc/AST/AST.def"

namespace {

/// Lines of the form `Kind name expr`, two blanks a level.
struct TreePrinter {
  raw_ostream &out;

  /// Writes a node or record on a line, and what stands in it below.
  template <class Node> void line(const Node &node) {
    start(labelOf(node));
    fields(node);
  }

  void start(StringRef label) {
    out << (std::exchange(isFirst, false) ? "" : "\n");
    out.indent(level) << label;
  }

  template <class Node> void fields(const Node &node) {
    level += 2;
    hasLeft = false;
    forEachField(node, [this](const auto &value, StringRef before) {
      field(value, before);
    });
    level -= 2;
  }

  /// Writes what stands before a field; false when there is no field. A text
  /// that joins the field to the one on its left is left out without that one.
  bool begin(bool isThere, StringRef before) {
    bool joins = before.ltrim().starts_with(".") || before.starts_with(":");
    if (isThere)
      out << (before.empty() || (joins && !hasLeft) ? " " : before);
    return hasLeft = isThere;
  }

  void field(uint32_t, StringRef) {}
  void field(SourceRange, StringRef) {}
  void field(ArrayRef<StringRef>, StringRef) {}
  void field(bool value, StringRef text) { out << (value ? text : ""); }
  void field(const Expr *expr, StringRef before) {
    if (begin(expr, before))
      print(expr, out);
  }
  void field(const Identifier &name, StringRef before) {
    if (begin(!name.text.empty(), before))
      out << name.text;
  }
  void field(StringRef text, StringRef before) {
    if (begin(!text.empty(), before))
      (out << '"').write_escaped(text) << '"';
  }
  void field(Exprs exprs, StringRef) {
    out << (exprs.empty() ? "" : " ");
    ExprPrinter{out}.put(exprs);
  }
  void field(ArrayRef<Identifier> names, StringRef before) {
    for (const Identifier &name : names)
      field(name, before);
  }
  template <class Node>
  void field(ArrayRef<const Node *> statements, StringRef) {
    for (const Stmt *statement : statements)
      dispatch(statement, [this](const auto &node) { line(node); });
  }
  template <class Record>
  void field(ArrayRef<Record> records, StringRef between) {
    for (const Record &record : records)
      if (labelOf(record).empty()) {
        out << (&record == records.begin() ? "" : between);
        fields(record);
      } else {
        line(record);
      }
  }
  void field(ArrayRef<Branch> branches, StringRef) {
    level -= 2; // `ElseIf` stands below its `If`.
    for (const Branch &branch : branches) {
      if (&branch != branches.begin())
        start(branch.condition ? "ElseIf" : "Else");
      fields(branch);
    }
    level += 2;
  }
  void field(ArrayRef<Entry> entries, StringRef) {
    out << ' ';
    list(entries);
  }
  void list(ArrayRef<Entry> entries) {
    llvm::interleaveComma(entries, out, [&](const Entry &entry) {
      out << entry.text.text;
      if (!entry.group.empty()) {
        out << '(';
        list(entry.group);
        out << ')';
      }
      if (entry.count)
        print(entry.count, out << " * ");
    });
  }
  void field(ArrayRef<TensorDecl> tensors, StringRef) {
    for (const TensorDecl &tensor : tensors) {
      out << ' ' << tensor.name.text << '[';
      llvm::interleaveComma(tensor.dims, out, [&](const Expr *dim) {
        dim ? print(dim, out) : void(out << '?');
      });
      out << "] " << tensor.type.text;
    }
  }

  unsigned level = 0;
  bool isFirst = true;
  bool hasLeft = false; ///< The field before is there.
};

} // namespace

void ast::print(const File &file, raw_ostream &out) {
  TreePrinter{out}.line(file);
  out << '\n';
}
