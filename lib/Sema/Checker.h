// Resolves names and checks types: the state that all parts of it share.
#pragma once

#include "ppcc/Sema/Module.h"

#include "llvm/ADT/DenseMap.h"

#include <tuple>

namespace ppcc::sema {

/// What a name stands for.
struct Symbol {
  enum class Kind : uint8_t { Value, Function, Block } kind = Kind::Value;
  ExprInfo::Ref ref = ExprInfo::Ref::None;
  uint32_t index = 0;
  Type type = Type::Error;
  SourceRange range;
};

/// Goes through the files in order and fills the tables of a module.
class Checker {
public:
  Checker(Module &module, const CommWords &words, DiagnosticEngine &diags)
      : module(module), words(words), diags(diags) {
    scopes.emplace_back();
  }
  void file(const ast::File &file, bool isMain);

private:
  using Scope = llvm::DenseMap<llvm::StringRef, Symbol>;

  void fileItem(const ast::Item *item);

  // ---- Names ----

  Symbol *lookup(llvm::StringRef name);
  void redefined(const ast::Identifier &name, SourceRange first);
  /// Whether the language itself takes the name.
  static bool isBuiltin(llvm::StringRef name);
  void define(const ast::Identifier &name, Symbol symbol);
  uint32_t defineLocal(const ast::Identifier &name, Type type);
  uint32_t defineGlobal(const ast::Identifier &name, Type type);
  /// Names of functions and blocks that stand further down, to say more than
  /// "unknown".
  void noteDeclarations(llvm::ArrayRef<const ast::Item *> items);
  std::vector<llvm::StringRef> visible(Symbol::Kind kind);
  /// Reports a use of something that is being declared, or declared below. True
  /// when it was that.
  bool reportOrder(const ast::Identifier &name);

  // ---- Expressions ----

  Type type(const ast::Expr *expr) const { return module.exprs[expr->id].type; }
  Type set(const ast::Expr *expr, Type type,
           ExprInfo::Ref ref = ExprInfo::Ref::None, uint32_t index = 0);
  static bool fits(Type actual, Type wanted);
  void expect(const ast::Expr *expr, Type wanted, llvm::StringRef what);
  Type check(const ast::Expr *expr);
  Type checkNode(const ast::Expr *expr);
  static bool isNumber(Type type) {
    return type == Type::Int || type == Type::Float;
  }
  /// The type that holds both.
  static std::optional<Type> join(Type a, Type b);
  Type binary(const ast::BinaryExpr *expr);
  Type name(const ast::NameExpr *expr);
  void needRank(llvm::StringRef name, SourceRange range);
  void wrongCount(const ast::Identifier &name, std::string takes, size_t given);
  Type call(const ast::CallExpr *expr);
  /// `2 arguments`
  static std::string argumentCount(size_t count);
  void arguments(const ast::Identifier &name, llvm::ArrayRef<Type> params,
                 llvm::ArrayRef<const ast::Expr *> args);
  /// Counts what the evaluation of a callee adds at this place.
  void deepen(uint32_t depth, SourceRange range);
  Type builtin(const ast::CallExpr *expr, Builtin id);
  /// The F of `issued(F, c)`: the name of a kind, kept as an integer.
  void actionArgument(const ast::Expr *expr);
  /// The t of `layout(t, s)`, kept as a character.
  void layerArgument(const ast::Expr *expr);
  void chunkArgument(const ast::Expr *expr);
  std::optional<KindId> computeKind(llvm::StringRef letters) const;

  // ---- Statements ----

  void body(ast::Body statements);
  void notInOverlap(const ast::Stmt *stmt, llvm::StringRef word);
  void statement(const ast::Stmt *stmt);
  /// The kind that `defer` and `drain` name: one that some other kind holds as
  /// a part.
  uint32_t deferrable(const ast::Identifier &name);
  void action(const ast::ActionStmt *stmt);

  // ---- Declarations ----

  Type declaredType(const ast::Identifier &name, Type otherwise);
  std::vector<Type> localParams(llvm::ArrayRef<ast::Parameter> params);
  /// Runs `check` in a new frame of locals and gives the depth of what it
  /// checked.
  template <class Fn> uint32_t inFrame(const ast::Identifier &name, Fn check) {
    auto saved = std::tuple(numLocals, evalDepth, nowDepth, current);
    numLocals = evalDepth = nowDepth = 0;
    current = name;
    scopes.emplace_back();
    check();
    scopes.pop_back();
    uint32_t depth = evalDepth + 1;
    std::tie(numLocals, evalDepth, nowDepth, current) = saved;
    return depth;
  }
  void functionOrBlock(const ast::Item *item);
  template <class T>
  bool once(const T *&place, const T *item, llvm::StringRef what) {
    if (!place) {
      place = item;
      return true;
    }
    diags.report<diag::DuplicateItem>(item->range, what)
        .note(place->range, "the first is here");
    return false;
  }
  Schedule schedule(const ast::Schedule &decl);
  static llvm::ArrayRef<const ast::Item *> itemsOf(const ast::Schedule &decl) {
    return decl.items;
  }
  void complete(const PipeDecl &pipe, std::string owner);
  void pipe(const ast::PipeItem *item, Schedule &schedule);
  void pipeItem(const ast::Item *item, PipeDecl &decl, Schedule &schedule);
  void moduleItem(const ast::ModuleItem *item, Schedule &schedule);
  void edge(const ast::Item *item);
  void placement(const ast::PlacementItem &item);

  // ---- Graphs ----

  void stageGraph(Schedule &schedule);
  /// Checks the expressions of a layer, a stage graph or a pattern.
  void graphBody(ast::GraphBody statements);

  // ---- Declared actions ----

  /// Enters the names, so that actions can speak of each other.
  void declareKinds(llvm::ArrayRef<const ast::Item *> items);
  void declareKind(const ast::ActionItem &decl);
  void properties(const ast::ActionItem &decl);
  void property(const ast::ActionProperty &property, KindInfo &info,
                KindCosts &costs);
  void badProperty(const ast::ActionProperty &property, llvm::StringRef takes);
  /// The word that a value is; empty when it is something else.
  static ast::Identifier word(const ast::ActionProperty::Value &value);
  std::optional<ast::Identifier> onlyWord(const ast::ActionProperty &property,
                                          llvm::StringRef takes);
  void laneProperty(const ast::ActionProperty &property, KindInfo &info);
  void perProperty(const ast::ActionProperty &property, KindInfo &info);
  void collectiveProperty(const ast::ActionProperty &property, KindInfo &info);
  /// A literal, perhaps negative.
  static std::optional<int32_t> smallInt(const ast::Expr *expr);
  /// Any kind, messages included.
  std::optional<KindId> kindCalled(const ast::Identifier &name);

  // ---- Rules ----

  void rule(const ast::RuleItem *item);
  Application insertOfSchedule(const ast::InsertItem *item);
  Insertion insertion(const ast::InsertItem *item);
  Insertion::Binding binding(const ast::InsertItem::Binding &binding);
  void apply(const ast::ApplyItem *item, std::vector<Application> &list);
  /// Reports a label that is no parameter.
  size_t placeOfParameter(const ast::RuleItem &rule,
                          const ast::Identifier &label);

  // ---- Settings ----

  /// Checks the values, and gives slots to the variables.
  void model(Schedule &schedule);
  /// Reports a name that is no pipe's.
  void pipeName(const ast::Identifier &name, const Schedule &schedule);
  /// The slot of the variable.
  uint32_t tensors(const ast::ModelTensors &clause, const Schedule &schedule);

  Module &module;
  const CommWords &words;
  DiagnosticEngine &diags;
  std::vector<Scope> scopes;
  llvm::DenseMap<llvm::StringRef, SourceRange> later;
  llvm::DenseMap<llvm::StringRef, SourceRange>
      kindRanges; ///< Of declared kinds.
  llvm::DenseMap<llvm::StringRef, uint32_t> rules;
  ast::Identifier current; ///< The function or block being checked.
  const ast::Stmt *structural = nullptr;
  uint32_t numGlobals = 0, numLocals = 0;
  uint32_t nowDepth = 0, evalDepth = 0;
  bool onRank = false, inOverlap = false;
};

} // namespace ppcc::sema
