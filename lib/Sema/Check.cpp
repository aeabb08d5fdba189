// Checks files, each after those that it imports.
#include "ActionCheck.h"
#include "BodyCheck.h"
#include "PlacementCheck.h"
#include "RuleCheck.h"
#include "ScheduleCheck.h"
#include "SectionCheck.h"
#include "ppcc/Basic/Diagnostics/Instance.h"
#include "ppcc/Basic/Diagnostics/Sema.h"
#include "ppcc/Support/Suggest.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace ppcc;
using namespace ppcc::sema;
using llvm::ArrayRef;
using llvm::dyn_cast;
using llvm::StringRef;

StringRef sema::typeName(Type type) {
  static constexpr StringRef names[] = {"error", "int",  "bool",  "float",
                                        "pipe",  "part", "int[]", "pipe[]"};
  return names[static_cast<unsigned>(type)];
}

Type sema::elementType(Type type) {
  return type == Type::IntList    ? Type::Int
         : type == Type::PipeList ? Type::Pipe
                                  : type;
}

std::string sema::source(const ast::Expr *expr) {
  std::string text;
  llvm::raw_string_ostream out(text);
  print(expr, out);
  return text;
}

template <class T, class Fn>
static void forEach(const ast::File &file, Fn check) {
  for (const ast::Stmt *item : file.items)
    if (auto *decl = dyn_cast<T>(item))
      check(decl);
}

/// What is declared comes first, kind after kind, so that nothing that uses it
/// depends on where it stands.
static void checkFile(const ast::File &file, bool isMain,
                      const CommWords &words, ExprChecker &exprs) {
  Module &module = exprs.module;
  declareActions(file.items, exprs);
  exprs.names.announce(file.items);
  forEach<ast::FunctionItem>(
      file, [&](auto *function) { checkFunction(function, exprs); });
  checkActions(file.items, exprs);
  forEach<ast::PlacementDeclItem>(
      file, [&](auto *placement) { checkPlacement(placement, exprs); });
  forEach<ast::BlockItem>(file, [&](auto *block) { checkBlock(block, exprs); });
  forEach<ast::RuleItem>(file, [&](auto *rule) { checkRule(rule, exprs); });
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
  llvm::DenseMap<StringRef, SourceRange> schedules;
  for (const ast::Schedule &decl : file.schedules) {
    auto [first, isNew] =
        schedules.try_emplace(decl.name.text, decl.name.range);
    if (!isNew)
      exprs.names.redefined(decl.name, first->second);
    Schedule schedule = checkSchedule(decl, words, exprs);
    if (isMain)
      module.schedules.push_back(schedule);
    Symbol symbol;
    symbol.index = static_cast<uint32_t>(module.known.size());
    exprs.names.redefine(Space::Schedule, decl.name, symbol);
    module.known.push_back(std::move(schedule));
  }
}

std::optional<Module> sema::check(ArrayRef<ast::File> files,
                                  const ast::Context &context,
                                  const CommWords &words,
                                  DiagnosticEngine &diags,
                                  Observer *observer) {
  size_t before = diags.errorCount();
  Module module;
  module.exprs.resize(context.numExprs());
  module.stmts.resize(context.numStmts());
  ExprChecker exprs(module, diags);
  exprs.names.observer = observer;
  std::optional<Names::Scope> behindPrelude;
  for (const ast::File &file : files) {
    checkFile(file, &file == &files.back(), words, exprs);
    if (!behindPrelude)
      behindPrelude.emplace(exprs.names);
  }
  module.numLocals = exprs.names.frame.numLocals;
  if (diags.errorCount() != before)
    return std::nullopt;
  exprs.names.reportDoubts();
  return module;
}

const Schedule *sema::selectSchedule(const Module &module, StringRef name,
                                     StringRef fileName,
                                     DiagnosticEngine &diags) {
  std::vector<StringRef> names;
  for (const Schedule &schedule : module.schedules) {
    names.push_back(schedule.decl->name.text);
    if (names.back() == name)
      return &schedule;
  }
  if (names.empty())
    diags.report<diag::NoSchedule>(Place(), fileName);
  else if (!name.empty())
    diags.report<diag::UnknownSchedule>(Place(), name, fileName,
                                        didYouMean(name, names));
  else if (names.size() > 1)
    diags.report<diag::WhichSchedule>(Place(), fileName, names.size(),
                                      llvm::join(names, ", "));
  else
    return &module.schedules.front();
  return nullptr;
}
