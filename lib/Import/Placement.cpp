// Finds the placement, the pipes and the microbatches that actions imply.
#include "Importers.h"

#include "ppcc/Basic/Diagnostics/Import.h"
#include "ppcc/IR/HeadChecks.h"
#include "ppcc/IR/Location.h"

using namespace ppcc;

namespace {

struct Inference {
  Program &program;
  ImportContext &context;

  bool run(bool severalPipes) {
    if (program.size() == 0)
      return context.diags.report<diag::ImportNoActions>(
          Location(context.sources.name(context.file).str()));
    size_t errorsBefore = context.diags.errorCount();
    countMicrobatches();
    countStages();
    if (context.diags.errorCount() != errorsBefore)
      return false;
    Pipe pipe;
    pipe.name = "main";
    pipe.numMicrobatches = microbatches;
    if (placeStages(pipe))
      program.editHead().pipes.push_back(std::move(pipe));
    else if (!severalPipes || !findPipes())
      reportConflicts(pipe);
    if (context.diags.errorCount() != errorsBefore)
      return false;
    finishRows();
    return context.diags.errorCount() == errorsBefore;
  }

  /// Calls `visit(row, action, rank)` for each compute action.
  template <class Visit> void forEachCompute(Visit visit) const {
    for (RankId rank : program.ranks())
      for (ActionId row : program.rows(rank))
        if (program.kindOf(row).isCompute())
          visit(row, program[row], rank);
  }
  Location place(ActionId row) {
    return locationOf(program, row, context.sources);
  }

  void countMicrobatches() {
    ActionId lowest;
    uint32_t last = 0;
    std::optional<uint32_t> given = context.options.microbatches;
    program.editHead().hasBackward = false;
    for (ActionId row : program.rows()) {
      Action action = program[row];
      if (action.microbatch < program[lowest].microbatch)
        lowest = row;
      last = std::max(last, action.microbatch);
      if (program.kindOf(row).defines & ~slot::Output)
        program.editHead().hasBackward = true;
      if (given && action.microbatch >= *given && !context.diags.saturated())
        context.diags.report<diag::ImportMicrobatchRange>(
            place(row), cell(program, action), *given);
    }
    microbatches = given.value_or(last + 1);
    if (uint32_t first = program[lowest].microbatch)
      context.diags.report<diag::ImportFirstMicrobatch>(
          place(lowest), first == 1 ? "0" : fmt::format("0 to {}", first - 1),
          cell(program, lowest));
  }

  void countStages() {
    for (ActionId row : program.rows())
      stages = std::max(stages, program[row].stage.value + 1);
    firstRow.assign(stages, none);
    forEachCompute([&](ActionId row, const Action &action, RankId) {
      uint32_t &first = firstRow[action.stage.value];
      first = std::min(first, row.value);
    });
    for (uint32_t stage = 0; stage != stages; ++stage) {
      if (firstRow[stage] != none)
        continue;
      uint32_t first = stage;
      while (stage + 1 != stages && firstRow[stage + 1] == none)
        ++stage;
      reportGap(first, stage);
    }
  }

  /// Reports stages `first` to `last`, which compute nothing.
  void reportGap(uint32_t first, uint32_t last) {
    uint32_t named = last + 1 != stages ? last + 1 : last;
    auto rows = program.rows();
    auto at = llvm::find_if(
        rows, [&](ActionId row) { return program[row].stage.value == named; });
    std::string which =
        first == last ? fmt::format("stage {} computes", first)
                      : fmt::format("stages {} to {} compute", first, last);
    context.diags.report<diag::ImportMissingStage>(
        at == rows.end() ? Location() : place(*at), which, named);
  }

  /// Puts each stage on the rank that computes it first; false when another
  /// does too.
  bool placeStages(Pipe &pipe) {
    for (uint32_t row : firstRow)
      pipe.rankOfStage.push_back(program.rankOf(ActionId(row)));
    bool unique = true;
    forEachCompute([&](ActionId, const Action &action, RankId rank) {
      unique &= pipe.rankOfStage[action.stage.value] == rank;
    });
    return unique;
  }

  void reportConflicts(const Pipe &pipe) {
    std::vector<bool> reported(stages);
    forEachCompute([&](ActionId row, const Action &action, RankId rank) {
      uint32_t stage = action.stage.value;
      RankId first = pipe.rankOfStage[stage];
      if (first == rank || reported[stage] || context.diags.saturated())
        return;
      reported[stage] = true;
      context.diags
          .report<diag::ImportStageOnTwoRanks>(place(row), stage, first.value,
                                               rank.value)
          .note(place(ActionId(firstRow[stage])), "rank {} runs `{}`",
                first.value, cell(program, ActionId(firstRow[stage])))
          .note(place(row), "rank {} runs `{}`", rank.value,
                cell(program, row));
    });
  }

  /// Cuts the microbatches into ranges within which each stage is on one rank.
  bool findPipes() {
    // A whole program has an action for each pair of stage and microbatch.
    if (uint64_t(stages) * microbatches > program.size())
      return false;
    std::vector<uint32_t> rankOfPair(size_t(stages) * microbatches, none);
    bool unique = true;
    forEachCompute([&](ActionId, const Action &action, RankId rank) {
      uint32_t &known =
          rankOfPair[size_t(action.microbatch) * stages + action.stage.value];
      unique &= known == none || known == rank.value;
      known = rank.value;
    });
    if (!unique)
      return false;
    std::vector<Pipe> pipes;
    for (uint32_t microbatch = 0; microbatch != microbatches; ++microbatch) {
      ArrayRef ranks(&rankOfPair[size_t(microbatch) * stages], stages);
      if (pipes.empty() || !merge(pipes.back(), ranks)) {
        if (pipes.size() == Program::maxPipes)
          return false;
        Pipe &pipe = pipes.emplace_back();
        pipe.name = fmt::format("pipe{}", pipes.size() - 1);
        pipe.firstMicrobatch = microbatch;
        pipe.rankOfStage.assign(stages, RankId(none));
        merge(pipe, ranks);
      }
      ++pipes.back().numMicrobatches;
    }
    std::vector<uint32_t> load = stagesOfRanks(pipes.front());
    for (const Pipe &pipe : pipes)
      if (llvm::is_contained(pipe.rankOfStage, RankId(none)) ||
          stagesOfRanks(pipe) != load)
        return false;
    program.editHead().pipes = std::move(pipes);
    return true;
  }

  /// Fills the stages that `pipe` has not placed yet; false when it has placed
  /// one on another rank.
  static bool merge(Pipe &pipe, ArrayRef<uint32_t> ranks) {
    for (auto [known, rank] : llvm::zip(pipe.rankOfStage, ranks))
      if (rank != none && known.value != none && known.value != rank)
        return false;
    for (auto [known, rank] : llvm::zip(pipe.rankOfStage, ranks))
      if (rank != none)
        known = RankId(rank);
    return true;
  }

  std::vector<uint32_t> stagesOfRanks(const Pipe &pipe) const {
    std::vector<uint32_t> load(program.numRanks());
    for (RankId rank : pipe.rankOfStage)
      if (rank.value != none)
        ++load[rank.value];
    return load;
  }

  /// Enters the pipe of each row, and the peer of each message.
  void finishRows() {
    PipeId pipe;
    for (ActionId row : program.rows()) {
      if (context.diags.saturated())
        break;
      Action action = program[row];
      if (!program.pipe(pipe).hasMicrobatch(action.microbatch))
        pipe = *program.pipeOfMicrobatch(action.microbatch);
      action.pipe = pipe;
      const KindInfo &info = program.kindOf(action);
      if (info.isCompute() || findPeer(row, action, info))
        program.editRows().set(row, action);
    }
    for (Pipe &info : program.editHead().pipes)
      sortEdges(info);
  }

  /// The neighbour at the other end, if the cell names no stage; a stage that
  /// it names makes an edge. False after a report that there is none.
  bool findPeer(ActionId row, Action &action, const KindInfo &info) {
    if (!action.hasPeer())
      // Stage 0 has no stage before it: that number is beyond the last.
      action.peer =
          StageId(action.stage.value + (info.goesToLaterStage() ? 1 : -1));
    if (action.peer.value >= stages)
      return context.diags.report<diag::ImportNoPeer>(place(row),
                                                      cell(program, row));
    StageId from = info.goesToLaterStage() ? action.stage : action.peer,
            to = info.goesToLaterStage() ? action.peer : action.stage;
    auto &edges = program.editHead().pipes[action.pipe.value].skipEdges;
    if (from.value + 1 < to.value &&
        (edges.empty() || edges.back() != std::pair(from, to)))
      edges.push_back({from, to});
    return true;
  }

  static constexpr uint32_t none = 0xFFFFFFFF;

  uint32_t microbatches = 0, stages = 0;
  std::vector<uint32_t>
      firstRow{}; ///< Of each stage: its first compute action.
};

} // namespace

bool ppcc::inferPlacement(Program &program, bool severalPipes,
                          ImportContext &context) {
  return Inference{program, context}.run(severalPipes);
}
