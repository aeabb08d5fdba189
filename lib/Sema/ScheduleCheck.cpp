// Checks schedules.
#include "Checks.h"
#include "Settings.h"
#include "ppcc/Basic/Diagnostics/Instance.h"

using namespace ppcc;
using namespace ppcc::sema;
using ast::StmtKind;

namespace {

/// Checks what stands in a pipe, or in a schedule with one pipe.
class PipeChecker : Checking {
public:
  PipeChecker(Schedule &schedule, ExprChecker &exprs)
      : Checking(exprs), schedule(schedule) {}

  void pipe(const ast::PipeItem *item) {
    addPipe(item, nullptr);
    schedule.pipeSlots.push_back(names.defineGlobal(item->name, Type::Pipe));
  }

  /// Pipes in a loop: the name of each stands for the list of what it makes.
  void pipes(const ast::ForStmt *loop) {
    exprs.expectInts({loop->from, loop->to}, "the range of `for`");
    {
      Names::Scope scope(names);
      exprs.module.stmts[loop->id].index =
          names.defineLocal(loop->variable, Type::Int, Symbol::Binder::Loop);
      for (const ast::Stmt *child : loop->body)
        if (auto *pipe = dyn_cast<ast::PipeItem>(child))
          addPipe(pipe, loop);
        else
          reportMisplaced(child, BodyOf::Pipes, diags);
    }
    for (const ast::Stmt *child : loop->body)
      if (auto *pipe = dyn_cast<ast::PipeItem>(child))
        schedule.pipeSlots.push_back(
            names.defineGlobal(pipe->name, Type::PipeList));
  }

  void item(const ast::Stmt *item, PipeDecl &decl, BodyOf of) {
    switch (item->kind) {
    case StmtKind::Microbatches: {
      auto *i = cast<ast::MicrobatchesItem>(item);
      once(decl.microbatches, i, "`microbatches`", diags);
      return exprs.expectInts({i->first, i->end, i->pad},
                              "a number of microbatches");
    }
    case StmtKind::Placement:
      once(decl.placement, cast<ast::PlacementItem>(item), "`placement`",
           diags);
      return checkPlacementUse(*cast<ast::PlacementItem>(item), exprs);
    case StmtKind::Stages:
    case StmtKind::StageMap:
      return checkStages(item, decl, exprs);
    case StmtKind::Slices:
      once(decl.slices, cast<ast::SlicesItem>(item), "`slices`", diags);
      return exprs.expect(cast<ast::SlicesItem>(item)->count, Type::Int,
                          "the number of slices");
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
  void addPipe(const ast::PipeItem *item, const ast::ForStmt *loop) {
    PipeDecl decl;
    decl.name = item->name.text;
    decl.range = item->name.range;
    decl.loop = loop;
    for (const ast::Stmt *child : item->items)
      this->item(child, decl, BodyOf::Pipe);
    schedule.pipes.push_back(std::move(decl));
  }

  Schedule &schedule;
};

class ScheduleChecker : Checking {
public:
  ScheduleChecker(const ast::Schedule &decl, const CommWords &words,
                  ExprChecker &exprs)
      : Checking(exprs), decl(decl), words(words) {
    schedule.decl = &decl;
    schedule.name = decl.name.text;
    schedule.range = decl.name.range;
  }

  Schedule check() {
    Names::FrameScope frame(names, {});
    schedule.firstGlobal = names.numGlobals;
    names.announce(decl.items);
    checkParameters(decl.params, schedule, exprs);
    PipeDecl main;
    main.name = "main";
    main.range = decl.name.range;
    PipeChecker pipes(schedule, exprs);
    const ast::Stmt *mainItem = nullptr;
    for (const ast::Stmt *item : decl.items) {
      auto *loop = dyn_cast<ast::ForStmt>(item);
      bool isOfPipes = loop && llvm::any_of(loop->body, [](auto *child) {
                         return isa<ast::PipeItem>(child);
                       });
      if (auto *pipe = dyn_cast<ast::PipeItem>(item)) {
        pipes.pipe(pipe);
      } else if (isOfPipes) {
        pipes.pipes(loop);
      } else if (!this->item(item)) {
        mainItem = mainItem ? mainItem : item;
        pipes.item(item, main, BodyOf::Schedule);
      }
    }
    schedule.headerLocals =
        std::max(schedule.headerLocals, names.frame.numLocals);
    inheritSections();
    if (used && (mainItem || schedule.pipes.size() != used->pipes.size()))
      diags.report<diag::DuplicateItem>(
          mainItem ? mainItem->range : schedule.pipes.back().range,
          "way to place the stages: `import` has one");
    else if (mainItem && !schedule.pipes.empty())
      diags
          .report<diag::MixedPipes>(mainItem->range,
                                    "stages, placement, microbatches and edges")
          .note(schedule.pipes.front().range, "the pipe is here");
    if (schedule.pipes.empty())
      schedule.pipes.push_back(std::move(main));
    std::string owner = fmt::format("schedule `{}`", decl.name.text);
    for (const PipeDecl &pipe : schedule.pipes)
      used || lacksImport
          ? void()
          : pipes.complete(pipe, schedule.pipeSlots.empty()
                                     ? owner
                                     : fmt::format("pipe `{}`", pipe.name));
    if (!ranks && !lacksImport)
      diags.report<diag::MissingItem>(decl.name.range, owner, "`ranks`");
    if (!used)
      onRanks();
    if (!schedule.onRank && schedule.onRanks.empty() && !lacksImport)
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
    case StmtKind::Insert:
      schedule.rules.push_back(checkInsert(cast<ast::InsertItem>(item), exprs));
      return true;
    case StmtKind::Apply:
      checkApply(cast<ast::ApplyItem>(item), exprs, schedule.rules);
      return true;
    case StmtKind::UseSchedule:
      return use(cast<ast::UseScheduleItem>(item)), true;
    case StmtKind::OnRank:
      return onRank(cast<ast::OnRankItem>(item)), true;
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
    bool isNew = once(first, item, fmt::format("`{}`", section.word()));
    if (isNew)
      place = std::move(section);
    if (isNew && place->isModel())
      for (const PartDecl &part : place->parts)
        if (!part.name.text.empty())
          schedule.parts.push_back(
              {part.name, names.defineGlobal(part.name, Type::Part)});
    return true;
  }

  /// Takes over what another schedule has: its head, its pipes, its ranks.
  void use(const ast::UseScheduleItem *item) {
    Symbol *symbol = exprs.called<diag::UnknownImport>(
        Space::Schedule, item->name, item->args);
    lacksImport |= !symbol;
    if (!symbol)
      return;
    if (used || ranks || !schedule.pipes.empty() || schedule.onRank ||
        !schedule.onRanks.empty())
      return diags.refuse<diag::DuplicateItem>(
          item->range, "order: `import` stands above all that says one");
    used = module.known[symbol->index];
    std::vector<Type> types;
    for (const ScheduleParam &param : used->params)
      types.push_back(param.type);
    schedule.uses.push_back(
        {symbol->index, exprs.labelled(item->name, item->args,
                                       used->decl->params, types)});
    schedule.header.push_back(item);
    auto add = [](auto &to, const auto &from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    add(schedule.header, used->header);
    add(schedule.letSlots, used->letSlots);
    add(schedule.uses, used->uses);
    add(schedule.rules, used->rules);
    schedule.pipes = used->pipes;
    schedule.pipeSlots = used->pipeSlots;
    schedule.parts = used->parts;
    schedule.onRank = used->onRank;
    schedule.onRanks = used->onRanks;
    schedule.numLocals = used->numLocals;
    schedule.headerLocals = used->headerLocals;
    for (const ast::Stmt *stmt : used->header)
      if (auto *count = dyn_cast<ast::RanksItem>(stmt))
        ranks = count;
      else if (auto *condition = dyn_cast<ast::BackwardItem>(stmt))
        backward = condition;
  }

  /// What the schedule does not say itself.
  void inheritSections() {
    if (!used)
      return;
    if (!schedule.model)
      schedule.model = used->model;
    if (!schedule.cluster)
      schedule.cluster = used->cluster;
    if (!schedule.comm)
      schedule.comm = used->comm;
  }

  void onRank(const ast::OnRankItem *item) {
    const ast::OnRankItem *other = schedule.onRank;
    if (!other && !item->ranks && !schedule.onRanks.empty())
      other = schedule.onRanks.front();
    if (other)
      diags
          .report<diag::DuplicateItem>(item->range,
                                       other->ranks || item->ranks
                                           ? "`on rank` where one is for all "
                                             "ranks"
                                           : "`on rank`")
          .note(other->range, "the first is here");
    else if (item->ranks)
      schedule.onRanks.push_back(item);
    else
      schedule.onRank = item;
  }

  /// Checks the bodies of ranks, behind all that they may use.
  void onRanks() {
    if (schedule.onRank)
      onRanks(*schedule.onRank);
    for (const ast::OnRankItem *item : schedule.onRanks)
      onRanks(*item);
  }

  void onRanks(const ast::OnRankItem &item) {
    Names::FrameScope frame(names, {});
    exprs.rankVariable(item.variable, item.isSeveral ? item.ranks : nullptr);
    Type type = item.ranks ? exprs.check(item.ranks) : Type::Error;
    bool isGood = item.isSeveral ? type == Type::Bool || type == Type::IntList
                                 : type == Type::Int;
    if (!isGood && type != Type::Error)
      diags.report<diag::TypeMismatch>(
          item.ranks->range,
          item.isSeveral ? "what says which ranks" : "a rank",
          item.isSeveral ? "a condition or a list" : "int", typeName(type));
    names.frame.onRank = true;
    checkBody(item.body, BodyOf::Rank, exprs);
    schedule.numLocals = std::max(schedule.numLocals, names.frame.numLocals);
  }

  const ast::Schedule &decl;
  const CommWords &words;
  Schedule schedule;
  std::optional<Schedule> used; ///< The one that it imports.
  bool lacksImport = false;     ///< There is none of that name.
  const ast::RanksItem *ranks = nullptr;
  const ast::BackwardItem *backward = nullptr;
};

} // namespace

Schedule sema::checkSchedule(const ast::Schedule &decl, const CommWords &words,
                             ExprChecker &exprs) {
  return ScheduleChecker(decl, words, exprs).check();
}
