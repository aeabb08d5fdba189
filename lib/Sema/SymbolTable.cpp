#include "SymbolTable.h"

#include "ppcc/Basic/Diagnostics/Sema.h"

using namespace ppcc;
using namespace ppcc::sema;

std::optional<Builtin> sema::findBuiltin(StringRef name) {
  const StringRef *found = llvm::find(builtinNames, name);
  return found == std::end(builtinNames)
             ? std::nullopt
             : std::optional(Builtin(found - builtinNames));
}

bool sema::isCounter(StringRef name) {
  auto found = findBuiltin(name);
  return found && *found >= Builtin::Pending;
}

Symbol *SymbolTable::find(NameSpace space, const ast::Identifier &name,
                          bool &isReported) {
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

Symbol *SymbolTable::find(NameSpace space, StringRef name) {
  for (auto &scope : llvm::reverse(scopes))
    if (auto found = scope.find(key(space, name));
        found != scope.end() && !found->second.isForward)
      return &found->second;
  return nullptr;
}

void SymbolTable::observe(NameSpace space, const Symbol &symbol) const {
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

void SymbolTable::redefined(const ast::Identifier &name, SourceRange first) {
  diags.report<diag::Redefined>(name.range, name.text)
      .note(first, "first defined here");
}

void SymbolTable::define(NameSpace space, const ast::Identifier &name,
                         Symbol symbol) {
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

uint32_t SymbolTable::defineValue(const ast::Identifier &name,
                                  ExprInfo::Ref ref, uint32_t &count, Type type,
                                  Symbol::Binder binder,
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

void SymbolTable::declareForward(ArrayRef<const ast::Stmt *> items) {
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

std::vector<StringRef> SymbolTable::visible(NameSpace space) const {
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

void SymbolTable::leave() {
  for (const auto &[key, symbol] : scopes.back())
    if (symbol.binder == Symbol::Binder::Let && !symbol.isUsed)
      warnings.push_back({key.second, symbol.range, {}, symbol.statement});
  scopes.pop_back();
}

void SymbolTable::reportWarnings() {
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
