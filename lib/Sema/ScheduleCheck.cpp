// Checks schedules.
#include "Checks.h"
#include "ppcc/Basic/Diagnostics/Instance.h"

using namespace ppcc;
using namespace ppcc::sema;

namespace {

class ScheduleChecker {
public:
  ScheduleChecker(const ast::Schedule &decl, const CommWords &words,
                  ExprChecker &exprs)
      : exprs(exprs), decl(decl), words(words) {
    schedule.decl = &decl;
    schedule.name = decl.name.text;
    schedule.range = main.range = decl.name.range;
    main.name = "main";
  }

  Schedule check() {
    SymbolTable::FrameScope frame(names, {});
    schedule.firstGlobal = names.numGlobals;
    names.declareForward(decl.items);
    checkParameters(decl.params, schedule, exprs);
    for (const ast::Stmt *item : decl.items)
      if (!checkHeadItem(item, schedule, exprs))
        dispatch(item, [&](const auto &node) { of(&node); });
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
    if (!used && !importMissing)
      for (const PipeDecl &pipe : schedule.pipes)
        complete(pipe, schedule.pipeSlots.empty()
                           ? owner
                           : fmt::format("pipe `{}`", pipe.name));
    if (!ranks && !importMissing)
      diags.report<diag::MissingItem>(decl.name.range, owner, "`ranks`")
          .note({}, "`ranks P;` gives their number");
    // The bodies of ranks, after all that they may use.
    if (!used && schedule.onRank)
      body(*schedule.onRank);
    if (!used)
      for (const ast::OnRankItem *item : schedule.onRanks)
        body(*item);
    if (!schedule.onRank && schedule.onRanks.empty() && !importMissing)
      diags.report<diag::MissingItem>(decl.name.range, owner, "`on rank`")
          .note({}, "`on rank r {{ ... }}` holds the actions of each rank");
    schedule.numGlobals = names.numGlobals;
    return std::move(schedule);
  }

private:
  // ---- Pipes ----

  /// What belongs to a pipe belongs to the only one.
  void of(const ast::Stmt *item) {
    mainItem = mainItem ? mainItem : item;
    inPipe(item, main, BodyKind::Schedule);
  }

  void of(const ast::PipeItem *item) {
    addPipe(item, nullptr);
    schedule.pipeSlots.push_back(names.defineGlobal(item->name, Type::Pipe));
  }

  /// Pipes in a loop: the name of each stands for the list of what it makes.
  void of(const ast::ForStmt *loop) {
    auto isPipe = [](auto *child) { return isa<ast::PipeItem>(child); };
    if (llvm::none_of(loop->body, isPipe))
      return of(static_cast<const ast::Stmt *>(loop));
    exprs.expectInts({loop->from, loop->to}, "the range of `for`");
    {
      SymbolTable::Scope scope(names);
      exprs.module.stmts[loop->id].index =
          names.defineLocal(loop->variable, Type::Int, Symbol::Binder::Loop);
      for (const ast::Stmt *child : loop->body)
        if (auto *pipe = dyn_cast<ast::PipeItem>(child))
          addPipe(pipe, loop);
        else
          reportMisplaced(child, BodyKind::Pipes, diags);
    }
    for (const ast::Stmt *child : loop->body)
      if (auto *pipe = dyn_cast<ast::PipeItem>(child))
        schedule.pipeSlots.push_back(
            names.defineGlobal(pipe->name, Type::PipeList));
  }

  void addPipe(const ast::PipeItem *item, const ast::ForStmt *loop) {
    PipeDecl pipe;
    pipe.name = item->name.text;
    pipe.range = item->name.range;
    pipe.loop = loop;
    for (const ast::Stmt *child : item->items)
      inPipe(child, pipe, BodyKind::Pipe);
    schedule.pipes.push_back(std::move(pipe));
  }

  void inPipe(const ast::Stmt *item, PipeDecl &pipe, BodyKind where) {
    dispatch(item, [&](const auto &node) { ofPipe(&node, pipe, where); });
  }
  void ofPipe(const ast::Stmt *item, PipeDecl &pipe, BodyKind where) {
    checkStatement(item, where, exprs);
    pipe.edges.push_back(item);
  }
  void ofPipe(const ast::MicrobatchesItem *item, PipeDecl &pipe, BodyKind) {
    once(pipe.microbatches, item, "`microbatches`");
    exprs.expectInts({item->first, item->end, item->pad},
                     "a number of microbatches");
  }
  void ofPipe(const ast::PlacementItem *item, PipeDecl &pipe, BodyKind) {
    once(pipe.placement, item, "`placement`");
    checkPlacementUse(*item, exprs);
  }
  void ofPipe(const ast::StagesItem *item, PipeDecl &pipe, BodyKind) {
    checkStages(item, pipe, exprs);
  }
  void ofPipe(const ast::StageMapItem *item, PipeDecl &pipe, BodyKind) {
    checkStages(item, pipe, exprs);
  }
  void ofPipe(const ast::SlicesItem *item, PipeDecl &pipe, BodyKind) {
    once(pipe.slices, item, "`slices`");
    exprs.expect(item->count, Type::Int, "the number of slices");
  }

  /// Reports what a pipe lacks; `owner` is the pipe, or its schedule.
  void complete(const PipeDecl &pipe, std::string owner) {
    if (!pipe.microbatches)
      diags.report<diag::MissingItem>(pipe.range, owner, "`microbatches`")
          .note({}, "`microbatches M;` gives their number");
    if (pipe.placement && (pipe.stages || pipe.stageMap))
      diags
          .report<diag::DuplicateItem>(pipe.placement->range,
                                       "way to place the stages")
          .note(pipe.stages ? pipe.stages->range : pipe.stageMap->range,
                "the first is here");
    else if (!pipe.placement && !pipe.stageMap)
      diags
          .report<diag::MissingItem>(
              pipe.range, owner,
              "`placement`, or `stages` with `stage s on rank ...`")
          .note({}, "`placement linear;` gives each rank one stage, "
                    "`placement loop(2);` two");
    else if (!pipe.placement && !pipe.stages)
      diags.report<diag::MissingItem>(pipe.range, owner,
                                      "`stages`, the number of them");
  }

  // ---- What a schedule has beside them ----

  void of(const ast::RanksItem *item) {
    exprs.expect(item->count, Type::Int, "the number of ranks");
    if (once(ranks, item, "`ranks`"))
      schedule.header.push_back(item);
  }
  void of(const ast::BackwardItem *item) {
    exprs.expect(item->condition, Type::Bool, "the condition of `backward`");
    if (once(backward, item, "`backward`"))
      schedule.header.push_back(item);
  }
  void of(const ast::CommItem *item) {
    if (once(schedule.comm, item, "`comm`"))
      checkComm(*item, words, diags);
  }
  void of(const ast::InsertItem *item) {
    schedule.rules.push_back(checkInsert(item, exprs));
  }
  void of(const ast::ApplyItem *item) {
    checkApply(item, exprs, schedule.rules);
  }
  void of(const ast::ModelItem *item) { section(item, schedule.model); }
  void of(const ast::ClusterItem *item) { section(item, schedule.cluster); }

  template <class T> bool once(const T *&place, const T *item, StringRef what) {
    return sema::once(place, item, what, diags);
  }

  void section(const ast::Stmt *item, std::optional<Section> &place) {
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
  }

  /// Takes over what another schedule has: its head, its pipes, its ranks.
  void of(const ast::UseScheduleItem *item) {
    Symbol *symbol = exprs.called<diag::UnknownImport>(NameSpace::Schedule,
                                                       item->name, item->args);
    importMissing |= !symbol;
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
        {symbol->index,
         exprs.labelled(item->name, item->args, used->decl->params, types)});
    schedule.header.push_back(item);
    llvm::append_range(schedule.header, used->header);
    llvm::append_range(schedule.letSlots, used->letSlots);
    llvm::append_range(schedule.uses, used->uses);
    llvm::append_range(schedule.rules, used->rules);
    static_cast<Order &>(schedule) = *used;
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

  void of(const ast::OnRankItem *item) {
    const ast::OnRankItem *other = schedule.onRank;
    if (!other && isForAllRanks(*item) && !schedule.onRanks.empty())
      other = schedule.onRanks.front();
    if (other && reportIfValue(*item))
      return;
    if (other)
      diags
          .report<diag::DuplicateItem>(
              item->range, isForAllRanks(*other) && isForAllRanks(*item)
                               ? "`on rank`"
                               : "`on rank` where one is for all "
                                 "ranks")
          .note(other->range, "the first is here");
    else if (isForAllRanks(*item))
      schedule.onRank = item;
    else
      schedule.onRanks.push_back(item);
  }

  void body(const ast::OnRankItem &item) {
    SymbolTable::FrameScope frame(names, {});
    reportIfValue(item);
    exprs.rankVariable(item.variable);
    if (item.condition)
      exprs.expect(item.condition, Type::Bool, "the condition of `where`");
    if (item.ranks && !item.isSeveral)
      exprs.expect(item.ranks, Type::Int, "a rank");
    else if (item.ranks)
      checkRankList(item);
    names.frame.onRank = true;
    checkBody(item.body, BodyKind::Rank, exprs);
    schedule.numLocals = std::max(schedule.numLocals, names.frame.numLocals);
  }

  static bool isForAllRanks(const ast::OnRankItem &item) {
    return !item.ranks && !item.condition;
  }

  /// Reports `on rank last { }`, which is not for the rank of that number.
  bool reportIfValue(const ast::OnRankItem &item) {
    const ast::Identifier &name = item.variable;
    Symbol *known = names.find(NameSpace::Value, name.text);
    if (!known)
      return false;
    auto report = diags.report<diag::RankNameIsValue>(name.range, name.text);
    report.note(known->range, "declared here");
    if (SourceRange range(item.range.begin, name.range.end); !item.condition)
      report.didYouMean(range, range, fmt::format("on ranks [{}]", name.text));
    return true;
  }

  void checkRankList(const ast::OnRankItem &item) {
    bool isList =
        isa<ast::ListExpr, ast::ListForExpr, ast::NameExpr>(item.ranks);
    if (!isList && !exprs.requireRankName(
                       item.ranks, {item.range.begin, item.ranks->range.end},
                       "on rank {1} where {0}"))
      return;
    Type type = exprs.check(item.ranks);
    if (type == Type::Bool)
      diags.report<diag::MissingRankName>(item.ranks->range);
    else if (type != Type::IntList && type != Type::Error)
      diags.report<diag::TypeMismatch>(
          item.ranks->range, "what says which ranks", "a list", typeName(type));
  }

  ExprChecker &exprs;
  Module &module = exprs.module;
  DiagnosticEngine &diags = exprs.diags;
  SymbolTable &names = exprs.names;
  const ast::Schedule &decl;
  const CommWords &words;
  PipeDecl main;                       ///< Where no pipe has a name.
  const ast::Stmt *mainItem = nullptr; ///< The first that belongs to it.
  Schedule schedule;
  std::optional<Schedule> used; ///< The one that it imports.
  bool importMissing = false;   ///< There is none of that name.
  const ast::RanksItem *ranks = nullptr;
  const ast::BackwardItem *backward = nullptr;
};

} // namespace

Schedule sema::checkSchedule(const ast::Schedule &decl, const CommWords &words,
                             ExprChecker &exprs) {
  return ScheduleChecker(decl, words, exprs).check();
}
