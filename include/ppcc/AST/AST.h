// The tree of a source file: syntax as written, names unresolved. Nodes never
// change once they are made.
#pragma once

#include "ppcc/Basic/Source.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Allocator.h"
#include "llvm/Support/Casting.h"

#include <algorithm>
#include <cstdint>

namespace ppcc::ast {

/// A name where it stands.
struct Identifier {
  llvm::StringRef text;
  SourceRange range;
};

// ---- Expressions
// ---------------------------------------------------------------------------------------------

enum class ExprKind : uint8_t {
  Int,
  Float,
  Bool,
  Name,
  Call,
  Unary,
  Binary,
  Conditional
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

/// `+`, `and`, ...
llvm::StringRef spelling(BinaryOp op);
llvm::StringRef spelling(UnaryOp op);

/// An expression. `id` is dense over one Context, so that later phases keep
/// what they know in tables.
struct Expr {
  const ExprKind kind;
  uint32_t id = 0;
  uint32_t depth = 1; ///< Nodes on the longest way down.
  SourceRange range;

protected:
  Expr(ExprKind kind, SourceRange range) : kind(kind), range(range) {}
  void deepen(const Expr *child) { depth = std::max(depth, child->depth + 1); }
};

struct IntExpr : Expr {
  int64_t value;
  IntExpr(SourceRange range, int64_t value)
      : Expr(ExprKind::Int, range), value(value) {}
  static bool classof(const Expr *e) { return e->kind == ExprKind::Int; }
};

struct FloatExpr : Expr {
  double value;
  FloatExpr(SourceRange range, double value)
      : Expr(ExprKind::Float, range), value(value) {}
  static bool classof(const Expr *e) { return e->kind == ExprKind::Float; }
};

struct BoolExpr : Expr {
  bool value;
  BoolExpr(SourceRange range, bool value)
      : Expr(ExprKind::Bool, range), value(value) {}
  static bool classof(const Expr *e) { return e->kind == ExprKind::Bool; }
};

struct NameExpr : Expr {
  llvm::StringRef name;
  NameExpr(SourceRange range, llvm::StringRef name)
      : Expr(ExprKind::Name, range), name(name) {}
  static bool classof(const Expr *e) { return e->kind == ExprKind::Name; }
};

struct CallExpr : Expr {
  Identifier callee;
  llvm::ArrayRef<const Expr *> args;
  CallExpr(SourceRange range, Identifier callee,
           llvm::ArrayRef<const Expr *> args)
      : Expr(ExprKind::Call, range), callee(callee), args(args) {
    for (const Expr *arg : args)
      deepen(arg);
  }
  static bool classof(const Expr *e) { return e->kind == ExprKind::Call; }
};

struct UnaryExpr : Expr {
  UnaryOp op;
  const Expr *operand;
  UnaryExpr(SourceRange range, UnaryOp op, const Expr *operand)
      : Expr(ExprKind::Unary, range), op(op), operand(operand) {
    deepen(operand);
  }
  static bool classof(const Expr *e) { return e->kind == ExprKind::Unary; }
};

struct BinaryExpr : Expr {
  BinaryOp op;
  SourceRange opRange;
  const Expr *lhs, *rhs;
  BinaryExpr(SourceRange range, BinaryOp op, SourceRange opRange,
             const Expr *lhs, const Expr *rhs)
      : Expr(ExprKind::Binary, range), op(op), opRange(opRange), lhs(lhs),
        rhs(rhs) {
    deepen(lhs);
    deepen(rhs);
  }
  static bool classof(const Expr *e) { return e->kind == ExprKind::Binary; }
};

struct ConditionalExpr : Expr {
  const Expr *condition, *then, *otherwise;
  ConditionalExpr(SourceRange range, const Expr *condition, const Expr *then,
                  const Expr *otherwise)
      : Expr(ExprKind::Conditional, range), condition(condition), then(then),
        otherwise(otherwise) {
    deepen(condition);
    deepen(then);
    deepen(otherwise);
  }
  static bool classof(const Expr *e) {
    return e->kind == ExprKind::Conditional;
  }
};

// ---- Statements
// ----------------------------------------------------------------------------------------------

enum class StmtKind : uint8_t {
  Let,
  Phase,
  Repeat,
  For,
  While,
  If,
  Overlap,
  Defer,
  Drain,
  Action
};

/// A statement. `id` is dense over one Context.
struct Stmt {
  const StmtKind kind;
  uint32_t id = 0;
  SourceRange range; ///< Its first word or, for an action, the whole of it.

protected:
  Stmt(StmtKind kind, SourceRange range) : kind(kind), range(range) {}
};
using Body = llvm::ArrayRef<const Stmt *>;

struct LetStmt : Stmt {
  Identifier name;
  const Expr *value;
  LetStmt(SourceRange range, Identifier name, const Expr *value)
      : Stmt(StmtKind::Let, range), name(name), value(value) {}
  static bool classof(const Stmt *s) { return s->kind == StmtKind::Let; }
};

struct PhaseStmt : Stmt {
  Identifier name;
  Body body;
  PhaseStmt(SourceRange range, Identifier name, Body body)
      : Stmt(StmtKind::Phase, range), name(name), body(body) {}
  static bool classof(const Stmt *s) { return s->kind == StmtKind::Phase; }
};

struct RepeatStmt : Stmt {
  const Expr *count;
  Body body;
  RepeatStmt(SourceRange range, const Expr *count, Body body)
      : Stmt(StmtKind::Repeat, range), count(count), body(body) {}
  static bool classof(const Stmt *s) { return s->kind == StmtKind::Repeat; }
};

struct ForStmt : Stmt {
  Identifier variable;
  const Expr *from, *to;
  Body body;
  ForStmt(SourceRange range, Identifier variable, const Expr *from,
          const Expr *to, Body body)
      : Stmt(StmtKind::For, range), variable(variable), from(from), to(to),
        body(body) {}
  static bool classof(const Stmt *s) { return s->kind == StmtKind::For; }
};

struct WhileStmt : Stmt {
  const Expr *condition;
  Body body;
  WhileStmt(SourceRange range, const Expr *condition, Body body)
      : Stmt(StmtKind::While, range), condition(condition), body(body) {}
  static bool classof(const Stmt *s) { return s->kind == StmtKind::While; }
};

struct IfStmt : Stmt {
  struct Branch {
    const Expr *condition; ///< Null for the last `else`.
    Body body;
  };
  llvm::ArrayRef<Branch> branches;
  IfStmt(SourceRange range, llvm::ArrayRef<Branch> branches)
      : Stmt(StmtKind::If, range), branches(branches) {}
  static bool classof(const Stmt *s) { return s->kind == StmtKind::If; }
};

struct OverlapStmt : Stmt {
  Body body;
  OverlapStmt(SourceRange range, Body body)
      : Stmt(StmtKind::Overlap, range), body(body) {}
  static bool classof(const Stmt *s) { return s->kind == StmtKind::Overlap; }
};

struct DeferStmt : Stmt {
  Identifier action;
  const Expr *lag; ///< Null without `lag`.
  Body body;
  DeferStmt(SourceRange range, Identifier action, const Expr *lag, Body body)
      : Stmt(StmtKind::Defer, range), action(action), lag(lag), body(body) {}
  static bool classof(const Stmt *s) { return s->kind == StmtKind::Defer; }
};

struct DrainStmt : Stmt {
  Identifier action;
  const Expr *chunk; ///< Null for all chunks.
  DrainStmt(SourceRange range, Identifier action, const Expr *chunk)
      : Stmt(StmtKind::Drain, range), action(action), chunk(chunk) {}
  static bool classof(const Stmt *s) { return s->kind == StmtKind::Drain; }
};

/// `F(c, mb: e);`, or the call of a block: which of the two, the name decides.
struct ActionStmt : Stmt {
  struct Argument {
    Identifier label; ///< Empty text without a label.
    const Expr *value;
  };
  Identifier name;
  llvm::ArrayRef<Argument> args;
  ActionStmt(SourceRange range, Identifier name, llvm::ArrayRef<Argument> args)
      : Stmt(StmtKind::Action, range), name(name), args(args) {}
  static bool classof(const Stmt *s) { return s->kind == StmtKind::Action; }
};

// ---- Declarations
// --------------------------------------------------------------------------------------------

struct Parameter {
  Identifier name;
  Identifier type;          ///< Empty text when none is written.
  const Expr *defaultValue; ///< Null when none is written.
};

enum class ItemKind : uint8_t {
  Microbatches,
  Placement,
  Stages,
  Slices,
  StageMap,
  Edge,
  EdgeLoop,
  Module,
  Require,
  Ranks,
  Let,
  Function,
  Block,
  Pipe,
  Backward,
  Model,
  Comm,
  OnRank,
  Layer,
  StageGraph,
  Pattern,
  Action,
  Rule,
  Insert,
  Apply
};

/// What stands in a schedule, in a pipe, or (functions, blocks, actions, rules
/// and their applications) in a file.
struct Item {
  const ItemKind kind;
  SourceRange range; ///< Its first word.

protected:
  Item(ItemKind kind, SourceRange range) : kind(kind), range(range) {}
};

/// `microbatches M;`, `microbatches a .. b;`, each perhaps with `pad n`.
struct MicrobatchesItem : Item {
  const Expr *first; ///< Null without `..`.
  const Expr *end;   ///< The count, or the end of the range.
  const Expr *pad;   ///< Null without `pad`.
  MicrobatchesItem(SourceRange range, const Expr *first, const Expr *end,
                   const Expr *pad)
      : Item(ItemKind::Microbatches, range), first(first), end(end), pad(pad) {}
  static bool classof(const Item *i) {
    return i->kind == ItemKind::Microbatches;
  }
};

struct PlacementItem : Item {
  Identifier name;
  const Expr *argument; ///< Null without one.
  PlacementItem(SourceRange range, Identifier name, const Expr *argument)
      : Item(ItemKind::Placement, range), name(name), argument(argument) {}
  static bool classof(const Item *i) { return i->kind == ItemKind::Placement; }
};

struct StagesItem : Item {
  const Expr *count;
  StagesItem(SourceRange range, const Expr *count)
      : Item(ItemKind::Stages, range), count(count) {}
  static bool classof(const Item *i) { return i->kind == ItemKind::Stages; }
};

/// `slices n;`
struct SlicesItem : Item {
  const Expr *count;
  SlicesItem(SourceRange range, const Expr *count)
      : Item(ItemKind::Slices, range), count(count) {}
  static bool classof(const Item *i) { return i->kind == ItemKind::Slices; }
};

struct StageMapItem : Item {
  Identifier variable;
  const Expr *rank;
  StageMapItem(SourceRange range, Identifier variable, const Expr *rank)
      : Item(ItemKind::StageMap, range), variable(variable), rank(rank) {}
  static bool classof(const Item *i) { return i->kind == ItemKind::StageMap; }
};

/// `edge stage a -> stage b;`, or `no edge` to leave out a neighbours' edge.
struct EdgeItem : Item {
  bool isAbsent;
  const Expr *from, *to;
  EdgeItem(SourceRange range, bool isAbsent, const Expr *from, const Expr *to)
      : Item(ItemKind::Edge, range), isAbsent(isAbsent), from(from), to(to) {}
  static bool classof(const Item *i) { return i->kind == ItemKind::Edge; }
};

struct EdgeLoopItem : Item {
  uint32_t id = 0; ///< Of the same numbering as statements.
  Identifier variable;
  const Expr *from, *to;
  llvm::ArrayRef<const Item *> items; ///< Edges and edge loops.
  EdgeLoopItem(SourceRange range, Identifier variable, const Expr *from,
               const Expr *to, llvm::ArrayRef<const Item *> items)
      : Item(ItemKind::EdgeLoop, range), variable(variable), from(from), to(to),
        items(items) {}
  static bool classof(const Item *i) { return i->kind == ItemKind::EdgeLoop; }
};

/// `module vision stages 0 .. 3;`
struct ModuleItem : Item {
  Identifier name;
  const Expr *from, *to;
  ModuleItem(SourceRange range, Identifier name, const Expr *from,
             const Expr *to)
      : Item(ItemKind::Module, range), name(name), from(from), to(to) {}
  static bool classof(const Item *i) { return i->kind == ItemKind::Module; }
};

struct RequireItem : Item {
  const Expr *condition;
  llvm::StringRef message; ///< Empty without one.
  RequireItem(SourceRange range, const Expr *condition, llvm::StringRef message)
      : Item(ItemKind::Require, range), condition(condition), message(message) {
  }
  static bool classof(const Item *i) { return i->kind == ItemKind::Require; }
};

struct RanksItem : Item {
  const Expr *count;
  RanksItem(SourceRange range, const Expr *count)
      : Item(ItemKind::Ranks, range), count(count) {}
  static bool classof(const Item *i) { return i->kind == ItemKind::Ranks; }
};

struct LetItem : Item {
  Identifier name;
  const Expr *value;
  LetItem(SourceRange range, Identifier name, const Expr *value)
      : Item(ItemKind::Let, range), name(name), value(value) {}
  static bool classof(const Item *i) { return i->kind == ItemKind::Let; }
};

struct FunctionItem : Item {
  Identifier name;
  llvm::ArrayRef<Parameter> params;
  const Expr *value;
  FunctionItem(SourceRange range, Identifier name,
               llvm::ArrayRef<Parameter> params, const Expr *value)
      : Item(ItemKind::Function, range), name(name), params(params),
        value(value) {}
  static bool classof(const Item *i) { return i->kind == ItemKind::Function; }
};

struct BlockItem : Item {
  Identifier name;
  llvm::ArrayRef<Parameter> params;
  Body body;
  BlockItem(SourceRange range, Identifier name,
            llvm::ArrayRef<Parameter> params, Body body)
      : Item(ItemKind::Block, range), name(name), params(params), body(body) {}
  static bool classof(const Item *i) { return i->kind == ItemKind::Block; }
};

struct PipeItem : Item {
  Identifier name;
  llvm::ArrayRef<const Item *> items;
  PipeItem(SourceRange range, Identifier name,
           llvm::ArrayRef<const Item *> items)
      : Item(ItemKind::Pipe, range), name(name), items(items) {}
  static bool classof(const Item *i) { return i->kind == ItemKind::Pipe; }
};

struct BackwardItem : Item {
  const Expr *condition;
  BackwardItem(SourceRange range, const Expr *condition)
      : Item(ItemKind::Backward, range), condition(condition) {}
  static bool classof(const Item *i) { return i->kind == ItemKind::Backward; }
};

/// `cost F stage s = 1.5;`, or `scale F microbatch m = 2;`
struct ModelSetting {
  Identifier name;
  Identifier subject; ///< Empty text when absent, as are the next five.
  Identifier node;    ///< Of the action `subject`: `cost F.mlp = 0.5;`.
  Identifier pipe;
  Identifier stageVariable;
  Identifier word, microbatchVariable; ///< `microbatch` and its variable.
  const Expr *value;
};

/// `hidden[B, ?] bf16`
struct TensorDecl {
  Identifier name, type;
  llvm::ArrayRef<const Expr *> dims; ///< Null for `?`.
};

/// `output pipe p stage s in a .. b = hidden[B, H] bf16, mask[B] i32;`
struct ModelTensors {
  Identifier name; ///< `input` or `output`, as written.
  Identifier pipe; ///< Empty text when absent.
  Identifier stageVariable;
  const Expr *from, *to; ///< Null without `in`.
  llvm::ArrayRef<TensorDecl> tensors;
};

/// `layout "E|t|t|L";`
struct ModelText {
  Identifier name;
  Identifier text;                        ///< As written, without its quotes.
  llvm::ArrayRef<llvm::StringRef> stages; ///< Of a layout: see parseLayout().
};

struct ModelItem : Item {
  llvm::ArrayRef<ModelSetting> settings;
  llvm::ArrayRef<ModelTensors> tensors;
  llvm::ArrayRef<ModelText> texts;
  ModelItem(SourceRange range, llvm::ArrayRef<ModelSetting> settings,
            llvm::ArrayRef<ModelTensors> tensors,
            llvm::ArrayRef<ModelText> texts)
      : Item(ItemKind::Model, range), settings(settings), tensors(tensors),
        texts(texts) {}
  static bool classof(const Item *i) { return i->kind == ItemKind::Model; }
};

/// `transport stream, buffered:4;`
struct CommSetting {
  Identifier name;
  llvm::ArrayRef<Identifier>
      values; ///< As written, `stream-per-edge` and `buffered:4` as one text.
};

struct CommItem : Item {
  llvm::ArrayRef<CommSetting> settings;
  CommItem(SourceRange range, llvm::ArrayRef<CommSetting> settings)
      : Item(ItemKind::Comm, range), settings(settings) {}
  static bool classof(const Item *i) { return i->kind == ItemKind::Comm; }
};

struct OnRankItem : Item {
  Identifier variable;
  Body body;
  OnRankItem(SourceRange range, Identifier variable, Body body)
      : Item(ItemKind::OnRank, range), variable(variable), body(body) {}
  static bool classof(const Item *i) { return i->kind == ItemKind::OnRank; }
};

// ---- Graphs
// ----------------------------------------------------------------------------------------------------

enum class GraphStmtKind : uint8_t {
  Chain,
  UseLayer,
  PerLayer,
  Place,
  If,
  Repeat,
  For
};

/// What stands in a layer, a stage graph or a pattern. `id` is of the same
/// numbering as statements.
struct GraphStmt {
  const GraphStmtKind kind;
  uint32_t id = 0;
  SourceRange range; ///< Its first word or, for a place, the whole of it.

protected:
  GraphStmt(GraphStmtKind kind, SourceRange range) : kind(kind), range(range) {}
};
using GraphBody = llvm::ArrayRef<const GraphStmt *>;

/// `W.mlp @ comp`, or `per layer down`.
struct GraphLink {
  SourceRange range;
  bool isLayers;
  Identifier direction; ///< Of layers. Empty text when absent, as are `part`
                        ///< and `lane`.
  Identifier part, name, lane;
};

/// `F: attention @ comp -> mlp @ comp;`
struct ChainStmt : GraphStmt {
  Identifier action;
  llvm::ArrayRef<GraphLink> links;
  ChainStmt(SourceRange range, Identifier action,
            llvm::ArrayRef<GraphLink> links)
      : GraphStmt(GraphStmtKind::Chain, range), action(action), links(links) {}
  static bool classof(const GraphStmt *s) {
    return s->kind == GraphStmtKind::Chain;
  }
};

/// `layer moe;`
struct UseLayerStmt : GraphStmt {
  Identifier name;
  UseLayerStmt(SourceRange range, Identifier name)
      : GraphStmt(GraphStmtKind::UseLayer, range), name(name) {}
  static bool classof(const GraphStmt *s) {
    return s->kind == GraphStmtKind::UseLayer;
  }
};

/// `per layer { ... }`
struct PerLayerStmt : GraphStmt {
  GraphBody body;
  PerLayerStmt(SourceRange range, GraphBody body)
      : GraphStmt(GraphStmtKind::PerLayer, range), body(body) {}
  static bool classof(const GraphStmt *s) {
    return s->kind == GraphStmtKind::PerLayer;
  }
};

/// `F.mlp;`, or `last W.mlp;`
struct PlaceStmt : GraphStmt {
  Identifier modifier; ///< Empty text when absent.
  Identifier part, name;
  PlaceStmt(SourceRange range, Identifier modifier, Identifier part,
            Identifier name)
      : GraphStmt(GraphStmtKind::Place, range), modifier(modifier), part(part),
        name(name) {}
  static bool classof(const GraphStmt *s) {
    return s->kind == GraphStmtKind::Place;
  }
};

struct GraphIfStmt : GraphStmt {
  struct Branch {
    const Expr *condition; ///< Null for the last `else`.
    GraphBody body;
  };
  llvm::ArrayRef<Branch> branches;
  GraphIfStmt(SourceRange range, llvm::ArrayRef<Branch> branches)
      : GraphStmt(GraphStmtKind::If, range), branches(branches) {}
  static bool classof(const GraphStmt *s) {
    return s->kind == GraphStmtKind::If;
  }
};

struct GraphRepeatStmt : GraphStmt {
  const Expr *count;
  GraphBody body;
  GraphRepeatStmt(SourceRange range, const Expr *count, GraphBody body)
      : GraphStmt(GraphStmtKind::Repeat, range), count(count), body(body) {}
  static bool classof(const GraphStmt *s) {
    return s->kind == GraphStmtKind::Repeat;
  }
};

struct GraphForStmt : GraphStmt {
  Identifier variable;
  const Expr *from, *to;
  GraphBody body;
  GraphForStmt(SourceRange range, Identifier variable, const Expr *from,
               const Expr *to, GraphBody body)
      : GraphStmt(GraphStmtKind::For, range), variable(variable), from(from),
        to(to), body(body) {}
  static bool classof(const GraphStmt *s) {
    return s->kind == GraphStmtKind::For;
  }
};

/// `layer moe { ... }`
struct LayerItem : Item {
  Identifier name;
  GraphBody body;
  LayerItem(SourceRange range, Identifier name, GraphBody body)
      : Item(ItemKind::Layer, range), name(name), body(body) {}
  static bool classof(const Item *i) { return i->kind == ItemKind::Layer; }
};

/// `stage graph s { ... }`
struct StageGraphItem : Item {
  Identifier variable;
  GraphBody body;
  StageGraphItem(SourceRange range, Identifier variable, GraphBody body)
      : Item(ItemKind::StageGraph, range), variable(variable), body(body) {}
  static bool classof(const Item *i) { return i->kind == ItemKind::StageGraph; }
};

/// `overlap (F, B) { ... }`
struct PatternItem : Item {
  llvm::ArrayRef<Identifier> actions;
  GraphBody body;
  PatternItem(SourceRange range, llvm::ArrayRef<Identifier> actions,
              GraphBody body)
      : Item(ItemKind::Pattern, range), actions(actions), body(body) {}
  static bool classof(const Item *i) { return i->kind == ItemKind::Pattern; }
};

// ---- Declared actions
// -------------------------------------------------------------------------------------------

/// `after F, B;` in an action: its name and its values.
struct ActionProperty {
  struct Value {
    Identifier keyword; ///< `stage`, `rank` or `comm`; else empty text.
    const Expr *expr;   ///< Null for a keyword.
  };
  Identifier name;
  llvm::ArrayRef<Value> values;
};

/// `action NAME { ... }`: a kind of actions.
struct ActionItem : Item {
  Identifier name;
  llvm::ArrayRef<ActionProperty> properties;
  ActionItem(SourceRange range, Identifier name,
             llvm::ArrayRef<ActionProperty> properties)
      : Item(ItemKind::Action, range), name(name), properties(properties) {}
  static bool classof(const Item *i) { return i->kind == ItemKind::Action; }
};

/// `insert R before B, I by n for microbatch m when m % 2 == 0;`
struct InsertItem : Item {
  struct Binding {
    Identifier what, variable;
  };
  Identifier action, side;
  llvm::ArrayRef<Identifier> anchors;
  bool perRank;            ///< All that is inserted on a rank stands together.
  Identifier distanceWord; ///< Empty text without a distance.
  const Expr *distance;    ///< Null without one.
  llvm::ArrayRef<Binding> bindings;
  const Expr *condition; ///< Null without `when`.
  InsertItem(SourceRange range, Identifier action, Identifier side,
             llvm::ArrayRef<Identifier> anchors, bool perRank,
             Identifier distanceWord, const Expr *distance,
             llvm::ArrayRef<Binding> bindings, const Expr *condition)
      : Item(ItemKind::Insert, range), action(action), side(side),
        anchors(anchors), perRank(perRank), distanceWord(distanceWord),
        distance(distance), bindings(bindings), condition(condition) {}
  static bool classof(const Item *i) { return i->kind == ItemKind::Insert; }
};

/// `rule NAME(...) { ... }`: insertions with parameters.
struct RuleItem : Item {
  Identifier name;
  llvm::ArrayRef<Parameter> params;
  llvm::ArrayRef<const InsertItem *> inserts;
  RuleItem(SourceRange range, Identifier name, llvm::ArrayRef<Parameter> params,
           llvm::ArrayRef<const InsertItem *> inserts)
      : Item(ItemKind::Rule, range), name(name), params(params),
        inserts(inserts) {}
  static bool classof(const Item *i) { return i->kind == ItemKind::Rule; }
};

/// `with NAME(...);`: a rule is followed.
struct ApplyItem : Item {
  Identifier rule;
  llvm::ArrayRef<ActionStmt::Argument> args;
  ApplyItem(SourceRange range, Identifier rule,
            llvm::ArrayRef<ActionStmt::Argument> args)
      : Item(ItemKind::Apply, range), rule(rule), args(args) {}
  static bool classof(const Item *i) { return i->kind == ItemKind::Apply; }
};

struct Import {
  llvm::StringRef path;
  SourceRange range; ///< The string.
};

struct Schedule {
  Identifier name;
  llvm::ArrayRef<Parameter> params;
  llvm::ArrayRef<const Item *> items;
};

/// One source file.
struct File {
  uint32_t source = 0; ///< In the SourceManager.
  llvm::ArrayRef<Import> imports;
  llvm::ArrayRef<const Item *> items; ///< All but imports and schedules, in
                                      ///< order.
  llvm::ArrayRef<Schedule> schedules;
};

/// Owns the nodes of all files of a compilation and gives them their ids.
class Context {
public:
  template <class T, class... Args> const T *make(Args &&...args) {
    static_assert(std::is_trivially_destructible_v<T>);
    T *node = new (arena.Allocate<T>()) T(std::forward<Args>(args)...);
    if constexpr (std::is_base_of_v<Expr, T>)
      node->id = exprs++;
    if constexpr (std::is_base_of_v<Stmt, T> ||
                  std::is_base_of_v<GraphStmt, T> ||
                  std::is_same_v<EdgeLoopItem, T>)
      node->id = stmts++;
    return node;
  }
  template <class T> llvm::ArrayRef<T> copy(llvm::ArrayRef<T> values) {
    T *data = arena.Allocate<T>(values.size());
    std::uninitialized_copy(values.begin(), values.end(), data);
    return {data, values.size()};
  }
  llvm::StringRef copy(llvm::StringRef text) { return text.copy(arena); }

  uint32_t numExprs() const { return exprs; }
  uint32_t numStmts() const { return stmts; }

private:
  llvm::BumpPtrAllocator arena;
  uint32_t exprs = 0, stmts = 0;
};

/// Writes the tree of a file, a node a line, children indented.
void print(const File &file, llvm::raw_ostream &out);
/// Writes an expression as source, with the parentheses that it needs and no
/// others.
void print(const Expr *expr, llvm::raw_ostream &out);

} // namespace ppcc::ast
