// Checks files, each after those that it imports.
#include "Checks.h"
#include "ppcc/Basic/Diagnostics/Instance.h"

using namespace ppcc;
using namespace ppcc::sema;

template <class T, class Fn>
static void forEach(const ast::File &file, Fn check) {
  for (const ast::Stmt *item : file.items)
    if (auto *decl = dyn_cast<T>(item))
      check(decl);
}

template <class T>
static void forEach(const ast::File &file, ExprChecker &exprs,
                    void (*check)(const T *, ExprChecker &)) {
  forEach<T>(file, [&](const T *decl) { check(decl, exprs); });
}

/// What is declared comes first, kind after kind, so that nothing that uses it
/// depends on where it stands.
static void checkFile(const ast::File &file, bool isMain,
                      const CommWords &words, ExprChecker &exprs) {
  Module &module = exprs.module;
  forEach(file, exprs, declareAction);
  exprs.names.declareForward(file.items);
  forEach(file, exprs, checkFunction);
  forEach(file, exprs, checkAction);
  forEach(file, exprs, checkPlacement);
  forEach(file, exprs, checkBlock);
  forEach(file, exprs, checkRule);
  forEach<ast::ApplyItem>(file, [&](auto *apply) {
    checkApply(apply, exprs, module.applications);
  });
  auto section = [&](const auto *item) { // Names of models and of clusters.
    Section found = checkSection(item, nullptr, words, exprs);
    found.source = file.source;
    if (found.name.empty())
      exprs.diags.report<diag::SectionWithoutName>(item->range, found.word());
    for (const Section &other : module.sections)
      if (other.source == file.source && other.name == found.name &&
          other.isModel() == found.isModel() && !found.name.empty())
        exprs.names.redefined(item->name, other.range);
    module.sections.push_back(std::move(found));
  };
  forEach<ast::ModelItem>(file, section);
  forEach<ast::ClusterItem>(file, section);
  DenseMap<StringRef, SourceRange> schedules;
  for (const ast::Schedule &decl : file.schedules) {
    auto [first, isNew] =
        schedules.try_emplace(decl.name.text, decl.name.range);
    if (!isNew)
      exprs.names.redefined(decl.name, first->second);
    Schedule schedule = checkSchedule(decl, words, exprs);
    if (isMain)
      module.schedules.push_back(schedule);
    Symbol symbol;
    symbol.index = uint32_t(module.known.size());
    exprs.names.redefine(NameSpace::Schedule, decl.name, symbol);
    module.known.push_back(std::move(schedule));
  }
}

std::optional<Module> sema::check(ArrayRef<ast::File> files,
                                  const ast::Context &context,
                                  const CommWords &words,
                                  DiagnosticEngine &diags, Observer *observer) {
  size_t before = diags.errorCount();
  Module module;
  module.exprs.resize(context.numExprs());
  module.stmts.resize(context.numStmts());
  ExprChecker exprs(module, diags);
  exprs.names.observer = observer;
  std::optional<SymbolTable::Scope> behindPrelude;
  for (const ast::File &file : files) {
    checkFile(file, &file == &files.back(), words, exprs);
    if (!behindPrelude)
      behindPrelude.emplace(exprs.names);
  }
  module.numLocals = exprs.names.frame.numLocals;
  if (diags.errorCount() != before)
    return std::nullopt;
  exprs.names.reportWarnings();
  return module;
}
