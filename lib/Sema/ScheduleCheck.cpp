#include "ScheduleCheck.h"

#include "BodyCheck.h"
#include "GraphCheck.h"
#include "HeadCheck.h"
#include "RuleCheck.h"
#include "SectionCheck.h"
#include "Settings.h"
#include "ppcc/Support/Suggest.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace ppcc;
using namespace ppcc::sema;
using ast::StmtKind;
using llvm::cast;
using llvm::dyn_cast;
using llvm::StringRef;

namespace {

/// Checks what stands in a pipe, or in a schedule with one pipe.
class PipeChecker {
public:
  PipeChecker(Schedule &schedule, ExprChecker &exprs)
      : schedule(schedule), exprs(exprs), diags(exprs.diags),
        names(exprs.names) {}

  void pipe(const ast::PipeItem *item) {
    PipeDecl decl;
    decl.name = item->name.text;
    decl.range = item->name.range;
    for (const ast::Stmt *child : item->items)
      this->item(child, decl, BodyOf::Pipe);
    schedule.pipeSlots.push_back(names.defineGlobal(item->name, Type::Pipe));
    schedule.pipes.push_back(std::move(decl));
  }

  void item(const ast::Stmt *item, PipeDecl &decl, BodyOf of) {
    switch (item->kind) {
    case StmtKind::Microbatches: {
      auto *i = cast<ast::MicrobatchesItem>(item);
      once(decl.microbatches, i, "`microbatches`", diags);
      for (const ast::Expr *expr : {i->first, i->end, i->pad})
        if (expr)
          exprs.expect(expr, Type::Int, "a number of microbatches");
      return;
    }
    case StmtKind::Placement:
      once(decl.placement, cast<ast::PlacementItem>(item), "`placement`",
           diags);
      return placement(*cast<ast::PlacementItem>(item));
    case StmtKind::Stages:
      once(decl.stages, cast<ast::StagesItem>(item), "`stages`", diags);
      return exprs.expect(cast<ast::StagesItem>(item)->count, Type::Int,
                          "the number of stages");
    case StmtKind::Slices:
      once(decl.slices, cast<ast::SlicesItem>(item), "`slices`", diags);
      return exprs.expect(cast<ast::SlicesItem>(item)->count, Type::Int,
                          "the number of slices");
    case StmtKind::Module:
      return moduleItem(cast<ast::ModuleItem>(item));
    case StmtKind::StageMap: {
      auto *i = cast<ast::StageMapItem>(item);
      once(decl.stageMap, i, "`stage ... on rank`", diags);
      Names::Scope scope(names);
      decl.stageSlot = names.defineLocal(i->variable, Type::Int);
      return exprs.expect(i->rank, Type::Int, "a rank");
    }
    default:
      checkStatement(item, of, exprs);
      decl.edges.push_back(item);
    }
  }

  /// Reports what a pipe lacks; `owner` is the pipe, or its schedule.
  void complete(const PipeDecl &pipe, std::string owner) {
    if (!pipe.microbatches)
      diags.report<diag::MissingItem>(pipe.range, owner, "`microbatches`");
    if (pipe.placement && (pipe.stages || pipe.stageMap))
      diags
          .report<diag::DuplicateItem>(pipe.placement->range,
                                       "way to place the stages")
          .note(pipe.stages ? pipe.stages->range : pipe.stageMap->range,
                "the first is here");
    else if (!pipe.placement && !pipe.stageMap)
      diags.report<diag::MissingItem>(
          pipe.range, owner,
          "`placement`, or `stages` with `stage s on rank ...`");
    else if (!pipe.placement && !pipe.stages)
      diags.report<diag::MissingItem>(pipe.range, owner,
                                      "`stages`, the number of them");
  }

private:
  void moduleItem(const ast::ModuleItem *item) {
    for (const ast::Expr *end : {item->from, item->to})
      exprs.expect(end, Type::Int, "a stage");
    // Of the pipe that is entered next.
    schedule.modules.push_back({item,
                                static_cast<uint32_t>(schedule.pipes.size()),
                                names.defineGlobal(item->name, Type::Pipe)});
  }

  void placement(const ast::PlacementItem &item) {
    int takes = llvm::StringSwitch<int>(item.name.text)
                    .Cases("linear", "v", 0)
                    .Cases("loop", "wave", 1)
                    .Default(-1);
    if (takes < 0)
      diags.report<diag::UnknownPlacement>(
          item.name.range, item.name.text,
          didYouMean(item.name.text, {"linear", "loop", "v", "wave"}));
    else if (takes != (item.argument ? 1 : 0))
      exprs.wrongCount(item.name,
                       takes ? "the number of chunks a rank" : "no argument",
                       item.argument ? 1 : 0);
    if (item.argument)
      exprs.expect(item.argument, Type::Int, "the number of chunks");
  }

  Schedule &schedule;
  ExprChecker &exprs;
  DiagnosticEngine &diags;
  Names &names;
};

class ScheduleChecker {
public:
  ScheduleChecker(const ast::Schedule &decl, const CommWords &words,
                  ExprChecker &exprs)
      : decl(decl), words(words), exprs(exprs), module(exprs.module),
        diags(exprs.diags), names(exprs.names) {
    schedule.decl = &decl;
    schedule.name = decl.name.text;
    schedule.range = decl.name.range;
  }

  Schedule check() {
    Names::FrameScope frame(names, {});
    names.numGlobals = 0;
    names.announce(decl.items);
    checkParameters(decl.params, schedule, exprs);
    PipeDecl main;
    main.name = "main";
    main.range = decl.name.range;
    PipeChecker pipes(schedule, exprs);
    const ast::Stmt *mainItem = nullptr;
    for (const ast::Stmt *item : decl.items) {
      if (auto *pipe = dyn_cast<ast::PipeItem>(item)) {
        pipes.pipe(pipe);
      } else if (!this->item(item)) {
        mainItem = mainItem ? mainItem : item;
        pipes.item(item, main, BodyOf::Schedule);
      }
    }
    schedule.headerLocals = names.frame.numLocals;
    checkGraphs(schedule, module.kinds, diags);
    if (mainItem && !schedule.pipes.empty())
      diags
          .report<diag::MixedPipes>(mainItem->range,
                                    "stages, placement, microbatches and edges")
          .note(schedule.pipes.front().range, "the pipe is here");
    if (schedule.pipes.empty())
      schedule.pipes.push_back(std::move(main));
    std::string owner = fmt::format("schedule `{}`", decl.name.text);
    for (const PipeDecl &pipe : schedule.pipes)
      pipes.complete(pipe, schedule.pipeSlots.empty()
                               ? owner
                               : fmt::format("pipe `{}`", pipe.name));
    if (!ranks)
      diags.report<diag::MissingItem>(decl.name.range, owner, "`ranks`");
    if (schedule.onRank)
      onRank();
    else
      diags.report<diag::MissingItem>(decl.name.range, owner, "`on rank`");
    schedule.numGlobals = names.numGlobals;
    return std::move(schedule);
  }

private:
  /// False for what belongs to a pipe.
  bool item(const ast::Stmt *item) {
    if (checkHeadItem(item, schedule, exprs))
      return true;
    switch (item->kind) {
    case StmtKind::Ranks:
      exprs.expect(cast<ast::RanksItem>(item)->count, Type::Int,
                   "the number of ranks");
      if (once(ranks, cast<ast::RanksItem>(item), "`ranks`"))
        schedule.header.push_back(item);
      return true;
    case StmtKind::Backward:
      exprs.expect(cast<ast::BackwardItem>(item)->condition, Type::Bool,
                   "the condition of `backward`");
      if (once(backward, cast<ast::BackwardItem>(item), "`backward`"))
        schedule.header.push_back(item);
      return true;
    case StmtKind::Model:
      return section(item, schedule.model);
    case StmtKind::Cluster:
      return section(item, schedule.cluster);
    case StmtKind::Comm:
      if (once(schedule.comm, cast<ast::CommItem>(item), "`comm`"))
        checkComm(*schedule.comm, words, diags);
      return true;
    case StmtKind::Layer:
      schedule.layers.push_back(cast<ast::LayerItem>(item));
      checkBody(schedule.layers.back()->body, BodyOf::Layer, exprs);
      return true;
    case StmtKind::StageGraph:
      if (once(schedule.graph, cast<ast::StageGraphItem>(item),
               "`stage graph`")) {
        Names::Scope scope(names);
        schedule.graphSlot =
            names.defineLocal(schedule.graph->variable, Type::Int);
        checkBody(schedule.graph->body, BodyOf::StageGraph, exprs);
      }
      return true;
    case StmtKind::Pattern:
      schedule.patterns.push_back(cast<ast::PatternItem>(item));
      checkBody(schedule.patterns.back()->body, BodyOf::Pattern, exprs);
      return true;
    case StmtKind::Insert:
      schedule.rules.push_back(checkInsert(cast<ast::InsertItem>(item), exprs));
      return true;
    case StmtKind::Apply:
      checkApply(cast<ast::ApplyItem>(item), exprs, schedule.rules);
      return true;
    case StmtKind::OnRank:
      once(schedule.onRank, cast<ast::OnRankItem>(item), "`on rank`");
      return true;
    default:
      return false;
    }
  }

  template <class T> bool once(const T *&place, const T *item, StringRef what) {
    return sema::once(place, item, what, diags);
  }

  bool section(const ast::Stmt *item, std::optional<Section> &place) {
    const ast::Stmt *first = place ? place->item : nullptr;
    Section section = checkSection(item, &schedule, words, exprs);
    if (once(first, item, fmt::format("`{}`", section.word())))
      place = std::move(section);
    return true;
  }

  void onRank() {
    Names::FrameScope frame(names, {Space::Value, {}, /*onRank=*/true});
    names.defineLocal(schedule.onRank->variable, Type::Int);
    checkBody(schedule.onRank->body, BodyOf::Rank, exprs);
    schedule.numLocals = names.frame.numLocals;
  }

  const ast::Schedule &decl;
  const CommWords &words;
  ExprChecker &exprs;
  Module &module;
  DiagnosticEngine &diags;
  Names &names;
  Schedule schedule;
  const ast::RanksItem *ranks = nullptr;
  const ast::BackwardItem *backward = nullptr;
};

} // namespace

Schedule sema::checkSchedule(const ast::Schedule &decl, const CommWords &words,
                             ExprChecker &exprs) {
  return ScheduleChecker(decl, words, exprs).check();
}
