#include "Names.h"

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

Symbol *Names::find(Space space, const ast::Identifier &name,
                    bool &isReported) {
  isReported = false;
  bool isCurrent = false;
  for (auto &scope : llvm::reverse(scopes)) {
    auto found = scope.find(key(space, name.text));
    if (found == scope.end())
      continue;
    Symbol &symbol = found->second;
    if (!symbol.isBelow) {
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

Symbol *Names::find(Space space, StringRef name) {
  for (auto &scope : llvm::reverse(scopes))
    if (auto found = scope.find(key(space, name));
        found != scope.end() && !found->second.isBelow)
      return &found->second;
  return nullptr;
}

void Names::observe(Space space, const Symbol &symbol) const {
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
                    space == Space::Value ? typeName(symbol.type) : "");
}

void Names::redefined(const ast::Identifier &name, SourceRange first) {
  diags.report<diag::Redefined>(name.range, name.text)
      .note(first, "first defined here");
}

void Names::define(Space space, const ast::Identifier &name, Symbol symbol) {
  symbol.range = name.range;
  observe(space, symbol);
  Symbol *outer = find(space, name.text);
  auto [place, isNew] =
      scopes.back().try_emplace(key(space, name.text), symbol);
  bool isStatement = space == Space::Statement;
  if ((space == Space::Value && isCounter(name.text)) ||
      (space == Space::Function && findBuiltin(name.text)))
    diags.report<diag::ReservedName>(name.range, name.text, "built in");
  else if (!isNew && !place->second.isBelow)
    return redefined(name, place->second.range);
  else if (isStatement && outer && outer->isKind)
    redefined(name, outer->range);
  else if (isStatement && !symbol.isKind && kinds.find(name.text))
    diags.report<diag::ReservedName>(name.range, name.text, "an action");
  else if (outer && symbol.binder != Symbol::Binder::Declaration)
    doubts.push_back({name.text, name.range, outer->range});
  place->second = symbol;
}

uint32_t Names::defineValue(const ast::Identifier &name, ExprInfo::Ref ref,
                            uint32_t &count, Type type, Symbol::Binder binder) {
  Symbol symbol;
  symbol.index = count;
  symbol.ref = ref;
  symbol.type = type;
  symbol.binder = binder;
  define(Space::Value, name, symbol);
  return count++;
}

void Names::announce(ArrayRef<const ast::Stmt *> items) {
  auto enter = [&](Space space, const ast::Identifier &name) {
    Symbol symbol;
    symbol.isBelow = true;
    symbol.range = name.range;
    scopes.back().try_emplace(key(space, name.text), symbol);
  };
  for (const ast::Stmt *item : items)
    if (auto *function = dyn_cast<ast::FunctionItem>(item))
      enter(Space::Function, function->name);
    else if (auto *block = dyn_cast<ast::BlockItem>(item))
      enter(Space::Statement, block->name);
}

std::vector<StringRef> Names::visible(Space space) const {
  std::vector<StringRef> names;
  for (const auto &scope : scopes)
    for (const auto &[key, symbol] : scope)
      if (key.first == unsigned(space) && !symbol.isKind && !symbol.isBelow)
        names.push_back(key.second);
  llvm::sort(
      names); // The order of a hash table must not choose the suggestion.
  if (space == Space::Function)
    llvm::append_range(names, builtinNames);
  if (space == Space::Statement)
    llvm::append_range(names, kinds.computeLetters());
  return names;
}

void Names::leave() {
  for (const auto &[key, symbol] : scopes.back())
    if (symbol.binder == Symbol::Binder::Let && !symbol.isUsed)
      doubts.push_back({key.second, symbol.range, {}});
  scopes.pop_back();
}

void Names::reportDoubts() {
  llvm::stable_sort(doubts, [](const Doubt &a, const Doubt &b) {
    return a.range.begin.raw < b.range.begin.raw;
  });
  for (const Doubt &doubt : doubts)
    if (doubt.hidden.valid())
      diags.report<diag::HidesName>(doubt.range, doubt.name, doubt.name)
          .note(doubt.hidden, "the other one is here");
    else
      diags.report<diag::NeverUsed>(doubt.range, doubt.name);
}
