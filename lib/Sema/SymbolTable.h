// The names in sight, each in the space that its place in the text chooses.
#pragma once

#include "ppcc/Basic/Diagnostics/Sema.h"
#include "ppcc/Sema/Module.h"
#include "ppcc/Sema/Observer.h"

#include "llvm/Support/SaveAndRestore.h"

namespace ppcc::sema {

/// Where a word is looked up: as a value, as what an expression calls, as a
/// statement (an action or a block), after `with`, `placement` or `import`.
enum class NameSpace { Value, Function, Statement, Rule, Placement, Schedule };
/// The words that declare names of each at the level of files.
inline constexpr StringRef declaredBy[] = {"",     "fn",        "block action",
                                           "rule", "placement", "schedule"};

/// The functions and counters of the language, by Builtin.
inline constexpr StringRef builtinNames[] = {
    "min",    "max",    "abs",     "len",    "sum",
    "layout", "issued", "pending", "padded", "ranks"};
inline std::optional<Builtin> findBuiltin(StringRef name) {
  const StringRef *found = llvm::find(builtinNames, name);
  return found == std::end(builtinNames)
             ? std::nullopt
             : std::optional(Builtin(found - builtinNames));
}
/// Whether the name is that of a builtin that stands for a value by itself.
inline bool isCounter(StringRef name) {
  auto found = findBuiltin(name);
  return found && *found >= Builtin::Pending;
}

/// What a name stands for.
struct Symbol {
  /// `Each`: a name for each rank, stage or microbatch.
  enum class Binder : uint8_t { Declaration, Each, Loop, Let };
  uint32_t index = 0; ///< A slot, or a row of a table of the module.
  ExprInfo::Ref ref = ExprInfo::Ref::None; ///< Of a value, as is the type.
  Type type = Type::Error;
  Binder binder = Binder::Declaration;
  bool isKind = false;    ///< Of a statement: an action, and no block.
  bool isForward = false; ///< Announced, but not defined yet.
  bool isUsed = false;
  SourceRange range;
  SourceRange statement = {}; ///< Of a Let, without its semicolon.
};

/// What is checked as a whole and has locals of its own: a function, a block, a
/// rule, the head of a schedule, the body of `on rank`.
struct Frame {
  NameSpace space = NameSpace::Value;
  ast::Identifier name; ///< Empty text for what cannot be called.
  bool onRank = false;
  bool inOverlap = false;
  uint32_t numLocals = 0;
  uint32_t currentDepth = 0, evalDepth = 0;
  const ast::Stmt *structural =
      nullptr; ///< The first statement that cannot stand in a group.
};

class SymbolTable {
public:
  SymbolTable(const KindTable &kinds, DiagnosticEngine &diags)
      : kinds(kinds), diags(diags), scopes(1) {}

  /// Names defined during its life go out of sight at its end.
  class Scope {
  public:
    explicit Scope(SymbolTable &names) : names(names) {
      names.scopes.emplace_back();
    }
    ~Scope() { names.leave(); }
    Scope(const Scope &) = delete;

  private:
    SymbolTable &names;
  };

  /// A scope with locals of its own.
  class FrameScope {
  public:
    FrameScope(SymbolTable &names, Frame inner)
        : names(names), frame(names.frame, inner), scope(names) {}
    /// Of the evaluation of all that was checked in it.
    uint32_t depth() const { return names.frame.evalDepth + 1; }

  private:
    SymbolTable &names;
    llvm::SaveAndRestore<Frame> frame;
    Scope scope;
  };

  /// What a word stands for, from the innermost scope outwards; null, and
  /// reported, when it is only declared further down, and null when it is
  /// nothing. `isReported` then tells which.
  Symbol *find(NameSpace space, const ast::Identifier &name, bool &isReported) {
    isReported = false;
    bool isCurrent = false;
    for (auto &scope : llvm::reverse(scopes)) {
      auto found = scope.find(key(space, name.text));
      if (found == scope.end())
        continue;
      Symbol &symbol = found->second;
      if (!symbol.isForward) {
        symbol.isUsed = true;
        if (observer)
          observer->use(name.range, symbol.range);
        return &symbol;
      }
      isCurrent = space == frame.space && name.text == frame.name.text;
      if (isCurrent)
        continue; // It may call another of its name from farther out.
      diags.report<diag::UsedBeforeDeclared>(name.range, name.text)
          .note(symbol.range, "declared here");
      isReported = true;
      return nullptr;
    }
    if (isCurrent) {
      diags.report<diag::RecursiveCall>(name.range, name.text)
          .note(frame.name.range, "declared here");
      isReported = true;
    }
    return nullptr;
  }
  /// The same without a report.
  Symbol *find(NameSpace space, StringRef name) {
    for (auto &scope : llvm::reverse(scopes))
      if (auto found = scope.find(key(space, name));
          found != scope.end() && !found->second.isForward)
        return &found->second;
    return nullptr;
  }

  /// Reports a name that its scope has already, or that belongs to the
  /// language.
  void define(NameSpace space, const ast::Identifier &name, Symbol symbol) {
    symbol.range = name.range;
    observe(space, symbol);
    Symbol *outer = find(space, name.text);
    auto [place, isNew] =
        scopes.back().try_emplace(key(space, name.text), symbol);
    bool isStatement = space == NameSpace::Statement;
    if ((space == NameSpace::Value && isCounter(name.text)) ||
        (space == NameSpace::Function && findBuiltin(name.text)))
      diags.report<diag::ReservedName>(name.range, name.text, "built in");
    else if (!isNew && !place->second.isForward)
      return redefined(name, place->second.range);
    else if (isStatement && outer && outer->isKind)
      redefined(name, outer->range);
    else if (isStatement && !symbol.isKind && kinds.find(name.text))
      diags.report<diag::ReservedName>(name.range, name.text, "an action");
    else if (outer && symbol.binder != Symbol::Binder::Declaration)
      warnings.push_back({name.text, name.range, outer->range});
    place->second = symbol;
  }
  uint32_t defineLocal(const ast::Identifier &name, Type type,
                       Symbol::Binder binder = Symbol::Binder::Declaration,
                       SourceRange statement = {}) {
    return defineValue(name, ExprInfo::Ref::Local, frame.numLocals, type,
                       binder, statement);
  }
  uint32_t defineGlobal(const ast::Identifier &name, Type type,
                        Symbol::Binder binder = Symbol::Binder::Declaration,
                        SourceRange statement = {}) {
    return defineValue(name, ExprInfo::Ref::Global, numGlobals, type, binder,
                       statement);
  }
  /// Enters a name whatever its scope has.
  void redefine(NameSpace space, const ast::Identifier &name, Symbol symbol) {
    symbol.range = name.range;
    observe(space, symbol);
    scopes.back()[key(space, name.text)] = symbol;
  }
  void redefined(const ast::Identifier &name, SourceRange first) {
    diags.report<diag::Redefined>(name.range, name.text)
        .note(first, "first defined here");
  }
  /// Enters what stands further down in this scope, to say more than "unknown".
  void declareForward(ArrayRef<const ast::Stmt *> items) {
    auto enter = [&](NameSpace space, const ast::Identifier &name) {
      Symbol symbol;
      symbol.isForward = true;
      symbol.range = name.range;
      scopes.back().try_emplace(key(space, name.text), symbol);
    };
    for (const ast::Stmt *item : items)
      if (auto *function = dyn_cast<ast::FunctionItem>(item))
        enter(NameSpace::Function, function->name);
      else if (auto *block = dyn_cast<ast::BlockItem>(item))
        enter(NameSpace::Statement, block->name);
  }
  /// All names of a space, sorted, and after them those of the language.
  std::vector<StringRef> visible(NameSpace space) const {
    std::vector<StringRef> names;
    for (const auto &scope : scopes)
      for (const auto &[key, symbol] : scope)
        if (key.first == unsigned(space) && !symbol.isKind && !symbol.isForward)
          names.push_back(key.second);
    llvm::sort(
        names); // The order of a hash table must not choose the suggestion.
    if (space == NameSpace::Function)
      llvm::append_range(names, builtinNames);
    if (space == NameSpace::Statement)
      llvm::append_range(names, kinds.computeMnemonics());
    return names;
  }

  /// Reports what is no error but seems to be none that was meant: hidden and
  /// unused names.
  void reportWarnings() {
    llvm::stable_sort(warnings,
                      [](const PendingWarning &a, const PendingWarning &b) {
                        return a.range.begin.raw < b.range.begin.raw;
                      });
    for (const PendingWarning &doubt : warnings)
      if (doubt.hidden.valid())
        diags.report<diag::HidesName>(doubt.range, doubt.name, doubt.name)
            .note(doubt.hidden, "the other one is here");
      else
        diags.report<diag::NeverUsed>(doubt.range, doubt.name)
            .fix(doubt.statement, "", fmt::format("Remove `{}`", doubt.name));
  }

  /// Notes that a word means the name that is in sight, if there is one.
  void recordUse(NameSpace space, const ast::Identifier &name) {
    if (Symbol *symbol = observer ? find(space, name.text) : nullptr)
      observer->use(name.range, symbol->range);
  }

  Frame frame;
  uint32_t numGlobals = 0;
  Observer *observer = nullptr; ///< May be null.

private:
  using Key = std::pair<unsigned, StringRef>;
  static Key key(NameSpace space, StringRef name) {
    return {unsigned(space), name};
  }
  uint32_t defineValue(const ast::Identifier &name, ExprInfo::Ref ref,
                       uint32_t &count, Type type, Symbol::Binder binder,
                       SourceRange statement) {
    Symbol symbol;
    symbol.index = count;
    symbol.ref = ref;
    symbol.type = type;
    symbol.binder = binder;
    symbol.statement = statement;
    define(NameSpace::Value, name, symbol);
    return count++;
  }
  void leave() {
    for (const auto &[key, symbol] : scopes.back())
      if (symbol.binder == Symbol::Binder::Let && !symbol.isUsed)
        warnings.push_back({key.second, symbol.range, {}, symbol.statement});
    scopes.pop_back();
  }
  void observe(NameSpace space, const Symbol &symbol) const {
    if (!observer)
      return;
    static constexpr StringRef whats[] = {"value", "function",  "block",
                                          "rule",  "placement", "schedule"};
    StringRef what = symbol.isKind                           ? "action"
                     : symbol.binder == Symbol::Binder::Loop ? "loop"
                     : symbol.binder == Symbol::Binder::Let
                         ? "let"
                         : whats[unsigned(space)];
    observer->declare(symbol.range, what,
                      space == NameSpace::Value ? typeName(symbol.type) : "");
  }

  struct PendingWarning {
    StringRef name;
    SourceRange range, hidden;  ///< Nothing is hidden by what is unused.
    SourceRange statement = {}; ///< Of what is unused.
  };

  const KindTable &kinds;
  DiagnosticEngine &diags;
  std::vector<DenseMap<Key, Symbol>> scopes;
  std::vector<PendingWarning> warnings;
};

} // namespace ppcc::sema
