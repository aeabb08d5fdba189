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
    StringRef separator;
    for (const Expr *arg : call->args) {
      out << separator;
      print(arg, out);
      separator = ", ";
    }
    out << ')';
    break;
  }
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

namespace {

/// Lines of the form `Kind name expr`, two blanks a level.
class TreePrinter {
public:
  explicit TreePrinter(raw_ostream &out) : out(out) {}

  void file(const File &file) {
    line("File");
    Indent in(*this);
    for (const Import &import : file.imports) {
      (line("Import") << " \"").write_escaped(import.path) << '"';
    }
    items(file.items);
    for (const Schedule &schedule : file.schedules) {
      line("Schedule") << ' ' << schedule.name.text;
      Indent in(*this);
      params(schedule.params);
      items(schedule.items);
    }
    out << '\n';
  }

private:
  struct Indent {
    TreePrinter &printer;
    explicit Indent(TreePrinter &printer) : printer(printer) {
      printer.level += 2;
    }
    ~Indent() { printer.level -= 2; }
  };

  raw_ostream &line(StringRef kind) {
    if (!first)
      out << '\n';
    first = false;
    return out.indent(level) << kind;
  }

  void optional(StringRef word, const Expr *expr) {
    if (expr)
      out << ' ' << word << (word.empty() ? "" : " "), print(expr, out);
  }
  void optional(StringRef word, const Identifier &name) {
    if (!name.text.empty())
      out << ' ' << word << (word.empty() ? "" : " ") << name.text;
  }

  void params(llvm::ArrayRef<Parameter> params) {
    for (const Parameter &param : params) {
      line("Parameter") << ' ' << param.name.text;
      if (!param.type.text.empty())
        out << ": " << param.type.text;
      optional("=", param.defaultValue);
    }
  }

  void items(llvm::ArrayRef<const Item *> items) {
    for (const Item *i : items)
      item(i);
  }

  void item(const Item *item) {
    switch (item->kind) {
    case ItemKind::Microbatches: {
      auto *i = cast<MicrobatchesItem>(item);
      line("Microbatches");
      optional("", i->first);
      optional(i->first ? ".." : "", i->end);
      optional("pad", i->pad);
      return;
    }
    case ItemKind::Placement: {
      auto *i = cast<PlacementItem>(item);
      line("Placement") << ' ' << i->name.text;
      optional("", i->argument);
      return;
    }
    case ItemKind::Stages:
      line("Stages"), optional("", cast<StagesItem>(item)->count);
      return;
    case ItemKind::Slices:
      line("Slices"), optional("", cast<SlicesItem>(item)->count);
      return;
    case ItemKind::StageMap: {
      auto *i = cast<StageMapItem>(item);
      line("StageMap") << ' ' << i->variable.text;
      optional("->", i->rank);
      return;
    }
    case ItemKind::Edge: {
      auto *i = cast<EdgeItem>(item);
      line(i->isAbsent ? "NoEdge" : "Edge");
      optional("", i->from);
      optional("->", i->to);
      return;
    }
    case ItemKind::EdgeLoop: {
      auto *i = cast<EdgeLoopItem>(item);
      line("EdgeLoop") << ' ' << i->variable.text;
      optional("in", i->from);
      optional("..", i->to);
      Indent in(*this);
      return items(i->items);
    }
    case ItemKind::Module: {
      auto *i = cast<ModuleItem>(item);
      line("Module") << ' ' << i->name.text;
      optional("", i->from);
      optional("..", i->to);
      return;
    }
    case ItemKind::Require: {
      auto *i = cast<RequireItem>(item);
      line("Require");
      optional("", i->condition);
      if (!i->message.empty())
        (out << " \"").write_escaped(i->message) << '"';
      return;
    }
    case ItemKind::Ranks:
      line("Ranks"), optional("", cast<RanksItem>(item)->count);
      return;
    case ItemKind::Let: {
      auto *i = cast<LetItem>(item);
      line("Let") << ' ' << i->name.text;
      optional("=", i->value);
      return;
    }
    case ItemKind::Function: {
      auto *i = cast<FunctionItem>(item);
      line("Function") << ' ' << i->name.text;
      optional("=", i->value);
      Indent in(*this);
      return params(i->params);
    }
    case ItemKind::Block: {
      auto *i = cast<BlockItem>(item);
      line("Block") << ' ' << i->name.text;
      Indent in(*this);
      params(i->params);
      return body(i->body);
    }
    case ItemKind::Pipe: {
      auto *i = cast<PipeItem>(item);
      line("Pipe") << ' ' << i->name.text;
      Indent in(*this);
      return items(i->items);
    }
    case ItemKind::Backward:
      line("Backward"), optional("when", cast<BackwardItem>(item)->condition);
      return;
    case ItemKind::Model: {
      line("Model");
      Indent in(*this);
      for (const ModelSetting &setting : cast<ModelItem>(item)->settings) {
        line("Setting") << ' ' << setting.name.text;
        optional("", setting.subject);
        if (!setting.node.text.empty())
          out << '.' << setting.node.text;
        optional("pipe", setting.pipe);
        optional("stage", setting.stageVariable);
        optional(setting.word.text, setting.microbatchVariable);
        optional("=", setting.value);
      }
      for (const ModelTensors &clause : cast<ModelItem>(item)->tensors)
        tensors(clause);
      for (const ModelText &text : cast<ModelItem>(item)->texts) {
        line("Setting") << ' ' << text.name.text;
        optional("=", text.text);
      }
      return;
    }
    case ItemKind::Comm: {
      line("Comm");
      Indent in(*this);
      for (const CommSetting &setting : cast<CommItem>(item)->settings) {
        line("Setting") << ' ' << setting.name.text;
        for (const Identifier &value : setting.values)
          optional("", value);
      }
      return;
    }
    case ItemKind::OnRank: {
      auto *i = cast<OnRankItem>(item);
      line("OnRank") << ' ' << i->variable.text;
      Indent in(*this);
      return body(i->body);
    }
    case ItemKind::Layer: {
      auto *i = cast<LayerItem>(item);
      line("Layer") << ' ' << i->name.text;
      return graph(i->body);
    }
    case ItemKind::Action: {
      auto *i = cast<ActionItem>(item);
      line("ActionKind") << ' ' << i->name.text;
      Indent in(*this);
      for (const ActionProperty &property : i->properties) {
        line("Property") << ' ' << property.name.text;
        for (const ActionProperty::Value &value : property.values) {
          optional("", value.keyword);
          optional("", value.expr);
        }
      }
      return;
    }
    case ItemKind::Rule: {
      auto *i = cast<RuleItem>(item);
      line("Rule") << ' ' << i->name.text;
      Indent in(*this);
      params(i->params);
      for (const InsertItem *insert : i->inserts)
        this->item(insert);
      return;
    }
    case ItemKind::Insert: {
      auto *i = cast<InsertItem>(item);
      line("Insert") << ' ' << i->action.text << ' ' << i->side.text;
      for (const Identifier &anchor : i->anchors)
        optional("", anchor);
      if (i->perRank)
        out << " per rank";
      optional(i->distanceWord.text, i->distance);
      for (const InsertItem::Binding &binding : i->bindings)
        out << " for " << binding.what.text << ' ' << binding.variable.text;
      optional("when", i->condition);
      return;
    }
    case ItemKind::Apply: {
      auto *i = cast<ApplyItem>(item);
      line("With") << ' ' << i->rule.text;
      return arguments(i->args);
    }
    case ItemKind::StageGraph: {
      auto *i = cast<StageGraphItem>(item);
      line("StageGraph") << ' ' << i->variable.text;
      return graph(i->body);
    }
    case ItemKind::Pattern: {
      auto *i = cast<PatternItem>(item);
      line("Pattern");
      for (const Identifier &action : i->actions)
        optional("", action);
      return graph(i->body);
    }
    }
  }

  void tensors(const ModelTensors &clause) {
    line("Tensors") << ' ' << clause.name.text;
    optional("pipe", clause.pipe);
    optional("stage", clause.stageVariable);
    optional("in", clause.from);
    optional("..", clause.to);
    for (const TensorDecl &tensor : clause.tensors) {
      out << ' ' << tensor.name.text << '[';
      for (const Expr *const &dim : tensor.dims) {
        out << (&dim == tensor.dims.begin() ? "" : ", ");
        dim ? print(dim, out) : void(out << '?');
      }
      out << "] " << tensor.type.text;
    }
  }

  void arguments(llvm::ArrayRef<ActionStmt::Argument> args) {
    for (const ActionStmt::Argument &arg : args) {
      out << ' ' << arg.label.text << (arg.label.text.empty() ? "" : ":");
      print(arg.value, out);
    }
  }

  void graph(GraphBody body) {
    Indent in(*this);
    for (const GraphStmt *s : body)
      graphStatement(s);
  }

  void graphStatement(const GraphStmt *stmt) {
    switch (stmt->kind) {
    case GraphStmtKind::Chain: {
      auto *s = cast<ChainStmt>(stmt);
      line("Chain") << ' ' << s->action.text;
      for (const GraphLink &l : s->links)
        link(l, &l == s->links.begin() ? " " : " -> ");
      return;
    }
    case GraphStmtKind::UseLayer:
      line("UseLayer") << ' ' << cast<UseLayerStmt>(stmt)->name.text;
      return;
    case GraphStmtKind::PerLayer:
      line("PerLayer");
      return graph(cast<PerLayerStmt>(stmt)->body);
    case GraphStmtKind::Place: {
      auto *s = cast<PlaceStmt>(stmt);
      line("Place");
      optional("", s->modifier);
      out << ' ' << s->part.text << '.' << s->name.text;
      return;
    }
    case GraphStmtKind::If:
      for (const GraphIfStmt::Branch &branch :
           cast<GraphIfStmt>(stmt)->branches) {
        line(&branch == cast<GraphIfStmt>(stmt)->branches.begin() ? "If"
             : branch.condition                                   ? "ElseIf"
                                                                  : "Else");
        optional("", branch.condition);
        graph(branch.body);
      }
      return;
    case GraphStmtKind::Repeat:
      line("Repeat"), optional("", cast<GraphRepeatStmt>(stmt)->count);
      return graph(cast<GraphRepeatStmt>(stmt)->body);
    case GraphStmtKind::For: {
      auto *s = cast<GraphForStmt>(stmt);
      line("For") << ' ' << s->variable.text;
      optional("in", s->from);
      optional("..", s->to);
      return graph(s->body);
    }
    }
  }

  void link(const GraphLink &link, StringRef before) {
    out << before;
    if (link.isLayers) {
      out << "per layer";
      return optional("", link.direction);
    }
    if (!link.part.text.empty())
      out << link.part.text << '.';
    out << link.name.text;
    optional("@", link.lane);
  }

  void body(Body body) {
    for (const Stmt *s : body)
      statement(s);
  }
  void nested(Body statements) {
    Indent in(*this);
    body(statements);
  }

  void statement(const Stmt *stmt) {
    switch (stmt->kind) {
    case StmtKind::Let: {
      auto *s = cast<LetStmt>(stmt);
      line("Let") << ' ' << s->name.text;
      optional("=", s->value);
      return;
    }
    case StmtKind::Phase:
      line("Phase") << ' ' << cast<PhaseStmt>(stmt)->name.text;
      return nested(cast<PhaseStmt>(stmt)->body);
    case StmtKind::Repeat:
      line("Repeat"), optional("", cast<RepeatStmt>(stmt)->count);
      return nested(cast<RepeatStmt>(stmt)->body);
    case StmtKind::For: {
      auto *s = cast<ForStmt>(stmt);
      line("For") << ' ' << s->variable.text;
      optional("in", s->from);
      optional("..", s->to);
      return nested(s->body);
    }
    case StmtKind::While:
      line("While"), optional("", cast<WhileStmt>(stmt)->condition);
      return nested(cast<WhileStmt>(stmt)->body);
    case StmtKind::If:
      for (const IfStmt::Branch &branch : cast<IfStmt>(stmt)->branches) {
        line(&branch == cast<IfStmt>(stmt)->branches.begin() ? "If"
             : branch.condition                              ? "ElseIf"
                                                             : "Else");
        optional("", branch.condition);
        nested(branch.body);
      }
      return;
    case StmtKind::Overlap:
      line("Overlap");
      return nested(cast<OverlapStmt>(stmt)->body);
    case StmtKind::Defer: {
      auto *s = cast<DeferStmt>(stmt);
      line("Defer") << ' ' << s->action.text;
      optional("lag", s->lag);
      return nested(s->body);
    }
    case StmtKind::Drain: {
      auto *s = cast<DrainStmt>(stmt);
      line("Drain") << ' ' << s->action.text;
      optional("", s->chunk);
      return;
    }
    case StmtKind::Action: {
      auto *s = cast<ActionStmt>(stmt);
      line("Action") << ' ' << s->name.text;
      return arguments(s->args);
    }
    }
  }

  raw_ostream &out;
  unsigned level = 0;
  bool first = true;
};

} // namespace

void ast::print(const File &file, raw_ostream &out) {
  TreePrinter(out).file(file);
}
