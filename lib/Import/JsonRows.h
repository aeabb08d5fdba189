// Reads the actions of a program, and its loops, from JSON.
#pragma once

#include "JsonReader.h"
#include "ppcc/IR/HeadChecks.h"
#include "ppcc/IR/Loops.h"

namespace ppcc {

/// Reads the keys `columns`, `actions` and `loops` of docs/program-format.md,
/// when all that they refer to has been read.
class JsonRows {
public:
  /// The program may have `maxActions` actions, loops written out.
  JsonRows(JsonReader &json, size_t maxActions, Program &program)
      : json(json), maxActions(maxActions), program(program),
        cellSites(program, json.sources.name(json.file)) {}

  /// The key `columns`.
  void readColumns() {
    std::vector<std::optional<std::string>> names;
    json.list("columns", [&] { names.push_back(json.string()); });
    bool good = names.size() == std::size(columns);
    for (auto [name, column] : llvm::zip(names, columns))
      good &= name == column.name;
    if (!good)
      json.wrong("columns", "kind, pipe, stage, microbatch, peer, phase, "
                            "group, site");
  }

  /// The key `actions`, with the kinds by the file's numbers.
  void readActions(ArrayRef<KindId> kinds) {
    size_t numSites = program.sites().size();
    bool tooMany = false;
    Rows &rows = program.editRows();
    constexpr size_t minBytes = StringRef("[0,0,0,0,0,0,0,0]").size();
    rows.reserve(std::min(maxActions, json.text.size() / minBytes));
    size_t bytes = 0; // Which have been read since pages were dropped.
    json.list("actions", [&] {
      tooMany = program.ranksBegun() == program.numRanks();
      if (tooMany)
        return json.skip();
      rows.beginRank();
      nextGroup = 0;
      group = -1;
      json.list("actions", [&] { readAction(kinds, numSites, rows); });
      if (bytes += json.last().size(); bytes >> 24 != 0) { // Every 16 MB.
        json.sources.dropPages(json.file);
        bytes = 0;
      }
    });
    if (tooMany || program.ranksBegun() != program.numRanks())
      json.wrong("actions", fmt::format("a list of {} lists, one per rank",
                                        program.numRanks()));
  }

  /// The key `loops`. Writes them out.
  void readLoops() {
    uint32_t ranks = 0;
    json.list("loops", [&] {
      RankId rank(ranks++);
      if (rank.value >= program.ranksBegun())
        return json.skip();
      ActionId free = program.begin(rank);
      json.list("loops", [&] { readLoop(rank, free); });
    });
    if (ranks != 0 && ranks != program.ranksBegun())
      json.wrong("loops", "a list for each rank");
    if (program.loops().empty() || !json.isGood())
      return;
    if (unrolledSize(program) > maxActions)
      return json.tooMany(maxActions, "actions");
    program = unrolled(program);
  }

private:
  template <diag::Id id, class... Args>
  void report(SourceRange at, Args &&...args) {
    json.diags.report<id>(at, std::forward<Args>(args)...);
  }

  /// The columns of an action in the order of the format, with the numbers that
  /// fit.
  struct Column {
    StringRef name;
    int64_t min, max;
  };
  static constexpr Column columns[] = {
      {"kind", 0, 0xFF},
      {"pipe", 0, Program::maxPipes - 1},
      {"stage", 0, Program::maxStages - 1},
      {"microbatch", -1, Program::maxMicrobatches - 1},
      {"peer", -1, Program::maxStages - 1},
      {"phase", 0, Program::maxPhases},
      {"group", -1, UINT32_MAX - 1},
      {"site", 0, UINT32_MAX - 1},
  };

  void readAction(ArrayRef<KindId> kinds, size_t numSites, Rows &rows) {
    auto row = json.numbers<std::size(columns)>("actions");
    if (!row)
      return;
    for (auto [value, column] : llvm::zip(*row, columns))
      if (value < column.min || value > column.max)
        return json.wrong(column.name,
                          fmt::format("from {} to {}", column.min, column.max));
    if (program.size() >= maxActions)
      return json.tooMany(maxActions, "actions");
    auto [kind, pipe, stage, microbatch, peer, phase, group, site] = *row;
    Action action{.kind = KindId(kind),
                  .pipe = PipeId(pipe),
                  .stage = StageId(stage),
                  .microbatch = microbatch < 0 ? Action::noMicrobatch
                                               : uint32_t(microbatch),
                  .peer = StageId(peer < 0 ? Action::noPeer : uint32_t(peer)),
                  .phase = PhaseId(phase),
                  .site = SiteId(site),
                  .joined = joinsGroup(group)};
    if (json.diags.saturated() ||
        !checkNumber("kind", kind, kinds.size(), "`kinds`") ||
        !checkNumber("pipe", pipe, program.pipes().size(), "`pipes`") ||
        !checkNumber("phase", phase, program.phases().size(), "`phases`") ||
        !checkNumber("site", site, numSites, "`sites`") ||
        !checkNumber("stage", stage, program.pipe(action.pipe).numStages(),
                     "its pipe"))
      return;
    action.kind = kinds[kind];
    checkPeer(action);
    checkMicrobatch(action);
    if (program.kindOf(action).scope == KindScope::Rank)
      assignFirstStage(action, program.head(), RankId(program.ranksBegun() - 1),
                       json.lastPlace(), json.diags);
    if (action.site == SiteId())
      action.site = ownSite(json.lastOffset());
    rows.append(action);
  }

  /// Whether a row with this group, or -1, is in that of the row before.
  /// Reports numbers that do not go up by one.
  bool joinsGroup(int64_t number) {
    bool joins = number >= 0 && number == group;
    group = number;
    if (number >= 0 && !joins && number != nextGroup++) {
      report<diag::ImportJsonGroup>(json.lastPlace(), number, nextGroup - 1);
      nextGroup = number + 1;
    }
    return joins;
  }

  /// Whether a number of a row counts something that is there; else a report.
  bool checkNumber(StringRef what, uint64_t number, size_t size,
                   StringRef whole) {
    if (number < size)
      return true;
    report<diag::ImportJsonRange>(json.lastPlace(), what, number,
                                  fmt::format("{} has {}", whole, size));
    return false;
  }

  void checkPeer(const Action &action) {
    const KindInfo &info = program.kindOf(action);
    if (info.hasPeer() != action.hasPeer())
      json.wrong("peer", info.hasPeer() ? "a stage for a send or receive"
                                        : "-1 for a compute action");
    else if (info.hasPeer())
      checkNumber("stage", action.peer.value,
                  program.pipe(action.pipe).numStages(), "its pipe");
  }

  void checkMicrobatch(const Action &action) {
    const Pipe &pipe = program.pipe(action.pipe);
    if (program.kindOf(action).scope != KindScope::Microbatch) {
      if (action.hasMicrobatch())
        json.wrong("microbatch",
                   "-1 for an action that is not of a microbatch");
    } else if (!pipe.hasMicrobatch(action.microbatch)) {
      report<diag::ImportJsonRange>(
          json.lastPlace(), "microbatch", action.microbatch,
          fmt::format("its pipe has {} to, not including, {}",
                      pipe.firstMicrobatch, pipe.endMicrobatch()));
    }
  }

  /// The place of a row in the JSON, for an action of unknown origin.
  SiteId ownSite(uint32_t offset) {
    for (; lineScanned < offset; ++lineScanned)
      if (json.text[lineScanned] == '\n') {
        ++line;
        lineStart = lineScanned + 1;
      }
    return cellSites.add(line, uint32_t(offset - lineStart + 1));
  }

  /// Reads a loop of a rank, whose rows from `free` on are in none.
  void readLoop(RankId rank, ActionId &free) {
    auto values = json.numbers<4>("loops");
    if (!values)
      return;
    auto [begin, rows, count, advance] = *values;
    constexpr int64_t max = UINT32_MAX / 4;
    if (begin < 0 || begin > max || rows < 1 || rows > max || count < 1 ||
        count > max || advance < -INT32_MAX || advance > INT32_MAX)
      return json.wrong(
          "loops", "the first action, a number of actions, a number of "
                   "iterations, and what an iteration adds to microbatches");
    ActionId first(program.begin(rank).value + begin);
    Loop loop{first, ActionId(first.value + rows), uint32_t(count),
              int32_t(advance)};
    if (!json.isGood() || !checkLoop(loop, free, rank))
      return;
    program.editRows().loops.push_back(loop);
    free = loop.end;
  }

  bool checkLoop(const Loop &loop, ActionId free, RankId rank) {
    auto splitsGroup = [&](ActionId row) {
      return row != program.end(rank) && program.joined(row);
    };
    if (loop.begin < free || loop.end > program.end(rank) ||
        splitsGroup(loop.begin) || splitsGroup(loop.end)) {
      json.wrong("loops",
                 "in the order of the actions, apart from each other, within "
                 "the rank's list, and not across a group");
      return false;
    }
    return llvm::all_of(RowRange{loop.begin, loop.end}, [&](ActionId row) {
      Action action = program[row];
      return !action.hasMicrobatch() ||
             checkLastIteration(loop, action.microbatch,
                                program.pipe(action.pipe), json.lastPlace(),
                                json.diags);
    });
  }

  JsonReader &json;
  size_t maxActions;
  Program &program;

  uint32_t nextGroup = 0;
  int64_t group = -1; ///< Of the row before.

  // The line of the last row that got a place of its own.
  CellSites cellSites;
  uint32_t line = 1;
  size_t lineStart = 0, lineScanned = 0;
};

} // namespace ppcc
