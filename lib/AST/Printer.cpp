// Prints trees: a node a line for files, source text for expressions.
#include "ppcc/AST/AST.h"

#include "llvm/Support/raw_ostream.h"

#include <charconv>

using namespace ppcc;
using namespace ppcc::ast;
using llvm::cast;
using llvm::raw_ostream;
using llvm::StringRef;

StringRef ast::spelling(BinaryOp op) {
  static constexpr StringRef texts[] = {
      "+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "and", "or"};
  return texts[static_cast<unsigned>(op)];
}

StringRef ast::spelling(UnaryOp op) {
  return op == UnaryOp::Negate ? "-" : "not";
}

/// How tightly the outermost operator binds; the grammar's order.
static unsigned precedence(const Expr *expr) {
  switch (expr->kind) {
  case ExprKind::Conditional:
    return 0;
  case ExprKind::Unary:
    return cast<UnaryExpr>(expr)->op == UnaryOp::Not ? 3 : 7;
  case ExprKind::Binary:
    switch (cast<BinaryExpr>(expr)->op) {
    case BinaryOp::Or:
      return 1;
    case BinaryOp::And:
      return 2;
    case BinaryOp::Add:
    case BinaryOp::Sub:
      return 5;
    case BinaryOp::Mul:
    case BinaryOp::Div:
    case BinaryOp::Mod:
      return 6;
    default:
      return 4;
    }
  default:
    return 8;
  }
}

static void printAtLeast(const Expr *expr, unsigned level, raw_ostream &out) {
  bool parens = precedence(expr) < level;
  out << (parens ? "(" : "");
  print(expr, out);
  out << (parens ? ")" : "");
}

/// The shortest literal that gives the value again.
static void printFloat(double value, raw_ostream &out) {
  char digits[32];
  StringRef text(digits,
                 std::to_chars(digits, std::end(digits), value).ptr - digits);
  out << text << (text.find_first_of(".e") == StringRef::npos ? ".0" : "");
}

static void printList(Exprs list, raw_ostream &out) {
  for (const Expr *const &expr : list) {
    out << (&expr == list.begin() ? "" : ", ");
    print(expr, out);
  }
}

void ast::print(const Expr *expr, raw_ostream &out) {
  unsigned level = precedence(expr);
  switch (expr->kind) {
  case ExprKind::Int:
    out << cast<IntExpr>(expr)->value;
    break;
  case ExprKind::Float:
    printFloat(cast<FloatExpr>(expr)->value, out);
    break;
  case ExprKind::Bool:
    out << (cast<BoolExpr>(expr)->value ? "true" : "false");
    break;
  case ExprKind::Name:
    out << cast<NameExpr>(expr)->name;
    break;
  case ExprKind::Call: {
    auto *call = cast<CallExpr>(expr);
    out << call->callee.text << '(';
    printList(call->args, out);
    out << ')';
    break;
  }
  case ExprKind::List:
    out << '[';
    printList(cast<ListExpr>(expr)->elements, out);
    out << ']';
    break;
  case ExprKind::ListFor: {
    auto *list = cast<ListForExpr>(expr);
    out << '[';
    print(list->element, out);
    out << " for " << list->variable.text << " in ";
    print(list->from, out);
    out << " .. ";
    print(list->to, out);
    out << ']';
    break;
  }
  case ExprKind::Index:
    printAtLeast(cast<IndexExpr>(expr)->list, level, out);
    out << '[';
    print(cast<IndexExpr>(expr)->index, out);
    out << ']';
    break;
  case ExprKind::Unary: {
    auto *unary = cast<UnaryExpr>(expr);
    out << spelling(unary->op) << (unary->op == UnaryOp::Not ? " " : "");
    printAtLeast(unary->operand, level, out);
    break;
  }
  case ExprKind::Binary: {
    auto *binary = cast<BinaryExpr>(expr);
    printAtLeast(binary->lhs, level, out);
    out << ' ' << spelling(binary->op) << ' ';
    printAtLeast(binary->rhs, level + 1, out);
    break;
  }
  case ExprKind::Conditional: {
    auto *conditional = cast<ConditionalExpr>(expr);
    printAtLeast(conditional->condition, level + 1, out);
    out << " ? ";
    printAtLeast(conditional->then, level, out);
    out << " : ";
    printAtLeast(conditional->otherwise, level, out);
    break;
  }
  }
}

/// Whether a loop stands among declarations, where it can hold nothing else.
static bool isOfEdges(const ForStmt &loop) {
  if (loop.body.empty())
    return false;
  auto *inner = llvm::dyn_cast<ForStmt>(loop.body.front());
  return inner ? isOfEdges(*inner) : llvm::isa<EdgeStmt>(loop.body.front());
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
class TreePrinter {
public:
  explicit TreePrinter(raw_ostream &out) : out(out) {}

  /// Writes a node or record on a line, and what stands in it below.
  template <class Node> void line(const Node &node) {
    start(labelOf(node));
    fields(node);
  }

private:
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
  void field(llvm::ArrayRef<StringRef>, StringRef) {}
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
    printList(exprs, out);
  }
  void field(llvm::ArrayRef<Identifier> names, StringRef before) {
    for (const Identifier &name : names)
      field(name, before);
  }
  template <class Node>
  void field(llvm::ArrayRef<const Node *> statements, StringRef) {
    for (const Stmt *statement : statements)
      dispatch(statement, [this](const auto &node) { line(node); });
  }
  template <class Record>
  void field(llvm::ArrayRef<Record> records, StringRef between) {
    for (const Record &record : records)
      if (labelOf(record).empty()) {
        out << (&record == records.begin() ? "" : between);
        fields(record);
      } else {
        line(record);
      }
  }
  void field(llvm::ArrayRef<Branch> branches, StringRef) {
    level -= 2; // `ElseIf` stands below its `If`.
    for (const Branch &branch : branches) {
      if (&branch != branches.begin())
        start(branch.condition ? "ElseIf" : "Else");
      fields(branch);
    }
    level += 2;
  }
  void field(llvm::ArrayRef<Entry> entries, StringRef) {
    out << ' ';
    list(entries);
  }
  void list(llvm::ArrayRef<Entry> entries) {
    for (const Entry &entry : entries) {
      out << (&entry == entries.begin() ? "" : ", ") << entry.text.text;
      if (!entry.group.empty()) {
        out << '(';
        list(entry.group);
        out << ')';
      }
      if (entry.count)
        print(entry.count, out << " * ");
    }
  }
  void field(llvm::ArrayRef<TensorDecl> tensors, StringRef) {
    for (const TensorDecl &tensor : tensors) {
      out << ' ' << tensor.name.text << '[';
      for (const Expr *const &dim : tensor.dims) {
        out << (&dim == tensor.dims.begin() ? "" : ", ");
        dim ? print(dim, out) : void(out << '?');
      }
      out << "] " << tensor.type.text;
    }
  }

  raw_ostream &out;
  unsigned level = 0;
  bool isFirst = true;
  bool hasLeft = false; ///< The field before is there.
};

} // namespace

void ast::print(const File &file, raw_ostream &out) {
  TreePrinter(out).line(file);
  out << '\n';
}
