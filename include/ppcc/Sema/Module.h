// What is known of a program's names and types: tables beside the tree, by the
// ids of its nodes.
#pragma once

#include "ppcc/AST/AST.h"
#include "ppcc/Basic/Diagnostics.h"
#include "ppcc/IR/ActionKind.h"
#include "ppcc/IR/Costs.h"

namespace ppcc::sema {

enum class Type : uint8_t {
  Error,
  Int,
  Bool,
  Float,
  Pipe,
  Part,
  IntList,
  PipeList
};

/// As it is written: `int`, `pipe[]`.
StringRef typeName(Type type);
/// Of a list, what it holds; else the type itself.
Type elementType(Type type);
inline bool isList(Type type) { return elementType(type) != type; }

/// An expression as text.
std::string source(const ast::Expr *expr);

enum class Builtin : uint8_t {
  Min,
  Max,
  Abs,
  Len,
  Sum,
  Layout,
  Issued,
  Pending,
  Padded,
  Ranks
};

/// What an expression means.
struct ExprInfo {
  /// What a name or a call speaks of. Kinds and letters are no values: they
  /// stand where a builtin takes them.
  enum class Ref : uint8_t {
    None,
    Global,
    Local,
    Function,
    Builtin,
    Kind,
    Letter,
  };
  Type type = Type::Error;
  Ref ref = Ref::None;
  bool becomesFloat = false; ///< An int that is used as a float.
  uint32_t index = 0; ///< A slot, a row of Module::functions, a Builtin, a
                      ///< kind or a character; of a list, the slot of its
                      ///< variable.
};

/// What a statement means.
struct StmtInfo {
  bool isBlock = false; ///< Of an action statement: it calls the block `index`,
                        ///< else it is of kind `index`.
  uint32_t index = 0;   ///< Or the slot of the variable of `let` and `for`, or
                        ///< a row of Module::placements.
};

/// What is declared with parameters, and evaluated in a frame of its own.
template <class Item> struct Callable {
  const Item *item = nullptr;
  std::vector<Type> params; ///< In local slots 0, 1, ...
  uint32_t numLocals = 0;
  uint32_t depth = 0; ///< Expressions nested in its evaluation, calls included.
};

struct Function : Callable<ast::FunctionItem> {
  Type result = Type::Error;
};

struct Block : Callable<ast::BlockItem> {
  const ast::Stmt *structural =
      nullptr; ///< A statement of it that cannot stand in a group.
};

/// Which ranks stages are on.
struct StageMapping {
  const ast::StagesItem *stages = nullptr;
  const ast::StageMapItem *stageMap = nullptr;
  uint32_t stageSlot = 0; ///< Local slot of the variable of the stage map.
};

/// A `placement` as declared.
struct Placement : StageMapping, Callable<ast::PlacementDeclItem> {};

/// An `insert`.
struct Insertion {
  /// What a variable of it stands for.
  enum class What : uint8_t {
    Microbatch,
    Stage,
    Rank,
    Ordinal, ///< Of the action of `kind`, among those of its rank.
  };
  struct Binding {
    What what = What::Microbatch;
    KindId kind;
    uint32_t slot = 0; ///< Local.
  };
  const ast::InsertItem *item = nullptr;
  KindId action;
  bool isBefore = false;
  std::vector<KindId> anchors;
  std::vector<Binding> bindings;
};

/// A `rule`, or an `insert` of a schedule, which has no parameters and no item.
struct Rule : Callable<ast::RuleItem> {
  std::vector<Insertion> inserts;
};

/// A rule that a schedule follows.
struct Application {
  uint32_t rule = 0; ///< A row of Module::rules.
  SourceRange range;
  std::vector<const ast::Expr *> args; ///< By parameter; null for the default.
};

/// What a declaration of an action says by expressions; null when not given.
struct KindCosts {
  KindId kind;
  const ast::Expr *time = nullptr, *memory = nullptr;
  const ast::Expr *peerRankExpr = nullptr; ///< Where its peer is,
  uint32_t numLocals = 1;                  ///< by the rank in slot 0.
};

struct ScheduleParam {
  const ast::Parameter *decl = nullptr;
  Type type = Type::Error;
};

/// A pipe as declared; a schedule without `pipe` has one, called `main`.
struct PipeDecl : StageMapping {
  StringRef name;
  SourceRange range;
  const ast::MicrobatchesItem *microbatches = nullptr;
  const ast::PlacementItem *placement = nullptr;
  const ast::SlicesItem *slices = nullptr;
  std::vector<const ast::Stmt *> edges;
  const ast::ForStmt *loop = nullptr; ///< That makes several of it, or null.
};

/// A schedule that another one has all of.
struct Use {
  uint32_t schedule = 0;               ///< A row of Module::known.
  std::vector<const ast::Expr *> args; ///< By parameter; null for the default.
};

/// What has parameters: a schedule, a model, a cluster.
struct Declaration {
  StringRef name; ///< Empty for a section within a schedule.
  SourceRange range;
  std::vector<ScheduleParam> params; ///< In global slots from firstGlobal on.
  uint32_t firstGlobal = 0;
  /// The items that are evaluated, in order: `let`, `require`, `ranks`,
  /// `backward`, `import`, and those of the schedule that is imported.
  std::vector<const ast::Stmt *> header;
  std::vector<uint32_t>
      letSlots; ///< The global slot of each `let` of the header, in order.
  uint32_t numGlobals = 0; ///< Of this one, and of those before it.
};

/// `link a, b { ... }` of a cluster.
struct LinkDecl {
  const ast::NamedItem *item = nullptr;
  uint32_t from = 0, to = 0; ///< The local slots of its ranks.
};

/// Layers in a row, `t * 24`, or groups of them, `(a, t) * 8`.
struct LayerRun {
  uint32_t layer = 0; ///< Index into Section::layers, where there is no group.
  std::vector<LayerRun> group;
  const ast::Expr *count = nullptr; ///< Null for one that stands by itself.
};

/// What `layers` says, of a model or of one of its parts.
struct PartDecl {
  ast::Identifier name{}; ///< Empty for a model without parts.
  SourceRange range{};
  const ast::StagesItem *stages = nullptr; ///< How many, if that is given.
  std::vector<LayerRun> runs{};
  std::vector<uint32_t> reads{}; ///< Other parts.
  bool isByCost = false;         ///< How it is cut.
  /// The layers that are dealt out; all numbered ones when empty.
  std::vector<uint32_t> counted{};
  /// Layers that stand where it is cut.
  std::optional<uint32_t> leave{}, enter{};
};

/// A part that the bodies of a schedule name.
struct PartName {
  ast::Identifier name;
  uint32_t slot = 0; ///< The global that holds its number.
};

/// A `model` or a `cluster`. One within a schedule has the schedule's globals.
struct Section : Declaration {
  /// A setting, and the local slot of its variable, if it has one.
  template <class Item> struct With {
    const Item *item = nullptr;
    uint32_t slot = 0;
  };

  const ast::Stmt *item = nullptr;
  uint32_t source = 0; ///< The file that declares it.
  std::vector<With<ast::SettingItem>> settings;
  std::vector<With<ast::TensorsItem>> tensors;
  const ast::TextItem *layout = nullptr;
  std::vector<const ast::NamedItem *> layers;
  std::vector<PartDecl> parts; ///< One without a name where there are none.
  std::vector<const ast::PatternItem *> patterns;
  std::vector<LinkDecl> links;
  const ast::WordsItem *transport = nullptr;
  const ast::WordsItem *unitsItem = nullptr;
  Units units;
  uint32_t numLocals = 0;

  bool isModel() const { return item->kind == ast::StmtKind::Model; }
  /// `model` or `cluster`.
  StringRef word() const { return isModel() ? "model" : "cluster"; }
};

/// Of a schedule, what another one that imports it has in its place.
struct Order {
  std::vector<PipeDecl> pipes;
  std::vector<uint32_t> pipeSlots; ///< The global slot that holds each pipe's
                                   ///< number, if it has a name.
  std::vector<PartName> parts;     ///< Those of its model.
  /// That of `on rank r`, for all ranks; null where some have their own.
  const ast::OnRankItem *onRank = nullptr;
  std::vector<const ast::OnRankItem *> onRanks; ///< Those of some ranks.
  uint32_t numLocals = 0;    ///< Of the body of `on rank`; slot 0 is the rank.
  uint32_t headerLocals = 0; ///< Of stage maps and edge loops.
};

struct Schedule : Declaration, Order {
  const ast::Schedule *decl = nullptr;
  std::vector<Use> uses; ///< Of each `import` of the header, in order.
  std::optional<Section> model, cluster;
  const ast::CommItem *comm = nullptr;
  std::vector<Application> rules; ///< In the order in which they are followed.
};

/// A file with all that it imports, checked.
struct Module {
  std::vector<ExprInfo> exprs;
  std::vector<StmtInfo> stmts;
  /// For a schedule-level function or block in a global table, the same:
  /// schedules do not see each other's.
  std::vector<Function> functions;
  std::vector<Block> blocks;
  std::vector<Placement> placements;
  std::vector<Schedule> schedules; ///< Those of the file itself.
  std::vector<Section> sections;   ///< The models and clusters of all files.
  std::vector<Schedule> known;     ///< Those of all files.
  std::vector<Rule> rules;
  std::vector<Application> applications; ///< Those of files: for all schedules,
                                         ///< after their own.
  KindTable kinds;                       ///< Those that some file declares too.
  std::vector<KindCosts> kindCosts;
  uint32_t numLocals = 0; ///< Of what stands in files.
};

/// `memory F`, `cost F.mlp`.
std::string nameOf(const ast::SettingItem &setting);
/// What a layer, a part or the first end of a link is called.
inline StringRef firstName(const ast::NamedItem *item) {
  return item->names.front().text;
}

inline StringRef nameOfPart(const PartDecl &part) { return part.name.text; }

/// What a setting of a model or a cluster sets, without values; nothing when
/// its name and subject name nothing.
std::optional<CostSetting> findSetting(const ast::SettingItem &setting,
                                       const KindTable &kinds);

class Observer;

/// What the settings of `comm { }` may name.
struct CommWords {
  std::vector<StringRef> transports; ///< To suggest.
  bool (*isTransport)(StringRef) = nullptr;
  std::vector<StringRef> orders;
  std::vector<StringRef> fusions;
  std::vector<StringRef> calls;
};

/// Checks names and types. `files` holds the imported files first, each after
/// those that it imports, and the main file last; the names of the first, the
/// prelude, may be hidden by those of the others. Reports every error; gives
/// nothing when there was one. `observer`, if any, is told what words mean, in
/// files with errors too. O(nodes).
std::optional<Module> check(ArrayRef<ast::File> files,
                            const ast::Context &context, const CommWords &words,
                            DiagnosticEngine &diags,
                            Observer *observer = nullptr);

/// The schedule to compile: the one called `name` or, without a name, the only
/// one. Reports why there is none.
const Schedule *selectSchedule(const Module &module, StringRef name,
                               StringRef fileName, DiagnosticEngine &diags);

} // namespace ppcc::sema
