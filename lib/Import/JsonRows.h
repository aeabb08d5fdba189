// Reads the actions of a program, and its loops, from JSON.
#pragma once

#include "JsonReader.h"
#include "ppcc/Basic/Diagnostics/Import.h"
#include "ppcc/IR/HeadChecks.h"
#include "ppcc/IR/Loops.h"

namespace ppcc {

/// Reads the keys `columns`, `actions` and `loops` of docs/program-format.md.
/// Rows may stand before what they refer to.
class JsonRows {
public:
  /// The program may have `maxActions` actions, loops written out.
  JsonRows(ProgramJson &json, size_t maxActions, Program &program)
      : json(json), maxActions(maxActions), program(program),
        ownSites(program, json.sources.name(json.file)) {}

  /// The key `columns`.
  void readColumns() {
    std::vector<std::optional<std::string>> names;
    json.list("columns", [&] { names.push_back(json.cursor.string()); });
    bool good = names.size() == std::size(columns);
    for (auto [name, column] : llvm::zip(names, columns))
      good &= name == column.name;
    if (!good)
      json.wrong("columns", "kind, pipe, stage, microbatch, peer, phase, "
                            "group, site");
  }

  /// The key `actions`. Rows keep the file's numbers for their kinds.
  void readActions() {
    json.list("actions", [&] {
      if (program.ranksBegun() == Program::maxRanks)
        return json.tooMany(Program::maxRanks, "ranks");
      program.editRows().beginRank();
      nextGroup = 0;
      group = -1;
      json.list("actions", [&] { readAction(); });
    });
    actionsPlace = json.lastPlace();
  }

  /// The key `loops`.
  void readLoops() {
    json.list("loops", [&] {
      if (loopsOfRank.size() == Program::maxRanks)
        return json.tooMany(Program::maxRanks, "ranks");
      loopsOfRank.push_back(0);
      json.list("loops", [&] { readLoop(); });
    });
    loopsPlace = json.lastPlace();
  }

  /// Checks that each rank has a list.
  void checkRanks() {
    if (program.ranksBegun() != program.numRanks())
      report<diag::ImportJsonShape>(
          actionsPlace, "actions",
          fmt::format("a list of {} lists, one a rank", program.numRanks()));
  }

  /// Puts the program's kinds in the place of the file's, and checks the
  /// numbers of all rows against what they count.
  void finish(ArrayRef<KindId> kinds) {
    numSites = program.sites().size();
    for (ActionId row : program.rows())
      if (!json.diags.saturated())
        finishRow(row, rowOffsets[row.value], kinds);
  }

  bool hasLoops() const { return !loops.empty(); }

  /// Checks the loops of finished rows, and hands those of a good program to
  /// it.
  void finishLoops() {
    if (!loopsOfRank.empty() && loopsOfRank.size() != program.ranksBegun())
      return report<diag::ImportJsonShape>(loopsPlace, "loops",
                                           "a list for each rank");
    size_t next = 0;
    for (RankId rank : firstIds<RankId>(loopsOfRank.size())) {
      ActionId free = program.begin(rank);
      for (uint32_t left = loopsOfRank[rank.value]; left != 0; --left, ++next) {
        Loop loop = loops[next];
        loop.begin.value += program.begin(rank).value;
        loop.end.value += program.begin(rank).value;
        if (!checkLoop(loop, free, rank, loopPlaces[next]))
          return;
        program.editRows().loops.push_back(loop);
        free = loop.end;
      }
    }
    if (flatSize(program) > maxActions)
      report<diag::ImportTooMany>(loopsPlace, maxActions, "actions");
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
    int64_t least, most;
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

  void readAction() {
    std::array<int64_t, std::size(columns)> row;
    if (!json.numbers("actions", row))
      return;
    for (auto [value, column] : llvm::zip(row, columns))
      if (value < column.least || value > column.most)
        return json.wrong(column.name, fmt::format("from {} to {}",
                                                   column.least, column.most));
    if (program.size() >= maxActions)
      return json.tooMany(maxActions, "actions");
    auto [kind, pipe, stage, microbatch, peer, phase, group, site] = row;
    program.editRows().append(
        {.kind = KindId(kind),
         .pipe = PipeId(pipe),
         .stage = StageId(stage),
         .microbatch =
             microbatch < 0 ? Action::noMicrobatch : uint32_t(microbatch),
         .peer = StageId(peer < 0 ? Action::noPeer : uint32_t(peer)),
         .phase = PhaseId(phase),
         .site = SiteId(site),
         .joined = joinsGroup(group)});
    rowOffsets.push_back(json.lastOffset());
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

  void readLoop() {
    if (loops.size() >= maxActions)
      return json.tooMany(maxActions, "loops");
    std::array<int64_t, 4> values;
    if (!json.numbers("loops", values))
      return;
    auto [begin, rows, count, advance] = values;
    constexpr int64_t most = UINT32_MAX / 4;
    if (begin < 0 || begin > most || rows < 1 || rows > most || count < 1 ||
        count > most || advance < -INT32_MAX || advance > INT32_MAX)
      return json.wrong("loops",
                        "the first action, a number of actions, a number of "
                        "turns, and what a turn adds to microbatches");
    loops.push_back({ActionId(begin), ActionId(begin + rows), uint32_t(count),
                     int32_t(advance)});
    loopPlaces.push_back(json.lastPlace());
    ++loopsOfRank.back();
  }

  void finishRow(ActionId id, uint32_t offset, ArrayRef<KindId> kinds) {
    Action action = program[id];
    if (!checkTables(action, offset, kinds.size()))
      return;
    action.kind = kinds[action.kind.value];
    checkPeer(action, offset);
    checkMicrobatch(action, offset);
    if (program.kindOf(action).scope == KindScope::Rank)
      placeOnRank(action, program.head(), program.rankOf(id), placeOf(offset),
                  json.diags);
    if (action.site == SiteId())
      action.site = ownSite(offset);
    program.editRows().set(id, action);
  }

  /// Whether the file has what the numbers of a row stand for.
  bool checkTables(const Action &action, uint32_t offset, size_t numKinds) {
    return checkNumber(offset, "kind", action.kind.value, numKinds,
                       "`kinds`") &&
           checkNumber(offset, "pipe", action.pipe.value,
                       program.pipes().size(), "`pipes`") &&
           checkNumber(offset, "phase", action.phase.value,
                       program.phases().size(), "`phases`") &&
           checkNumber(offset, "site", action.site.value, numSites,
                       "`sites`") &&
           checkNumber(offset, "stage", action.stage.value,
                       program.pipe(action.pipe).numStages(), "its pipe");
  }

  /// Whether a number of a row counts something that is there; else a report.
  bool checkNumber(uint32_t offset, StringRef what, uint64_t number,
                   size_t size, StringRef whole) {
    if (number < size)
      return true;
    report<diag::ImportJsonRange>(placeOf(offset), what, number,
                                  fmt::format("{} has {}", whole, size));
    return false;
  }

  void checkPeer(const Action &action, uint32_t offset) {
    const KindInfo &info = program.kindOf(action);
    bool isMessage = !info.isCompute() || info.hasFarEnd();
    if (isMessage != action.hasPeer())
      report<diag::ImportJsonShape>(placeOf(offset), "peer",
                                    isMessage ? "a stage for a send or receive"
                                              : "-1 for a compute action");
    else if (isMessage)
      checkNumber(offset, "stage", action.peer.value,
                  program.pipe(action.pipe).numStages(), "its pipe");
  }

  void checkMicrobatch(const Action &action, uint32_t offset) {
    const Pipe &pipe = program.pipe(action.pipe);
    if (program.kindOf(action).scope != KindScope::Microbatch) {
      if (action.hasMicrobatch())
        report<diag::ImportJsonShape>(
            placeOf(offset), "microbatch",
            "-1 for an action that is not of a microbatch");
    } else if (!pipe.hasMicrobatch(action.microbatch)) {
      report<diag::ImportJsonRange>(
          placeOf(offset), "microbatch", action.microbatch,
          fmt::format("its pipe has {} to, not including, {}",
                      pipe.firstMicrobatch, pipe.endMicrobatch()));
    }
  }

  /// The text of a row.
  SourceRange placeOf(uint32_t offset) const {
    return json.range(json.text.slice(offset, json.text.find(']', offset) + 1));
  }
  /// The place of a row in the JSON, for an action of unknown origin.
  SiteId ownSite(uint32_t offset) {
    for (; lineScanned < offset; ++lineScanned)
      if (json.text[lineScanned] == '\n') {
        ++line;
        lineStart = lineScanned + 1;
      }
    return ownSites.add(line, uint32_t(offset - lineStart + 1));
  }

  bool checkLoop(const Loop &loop, ActionId free, RankId rank,
                 SourceRange place) {
    auto splitsGroup = [&](ActionId row) {
      return row != program.end(rank) && program.joined(row);
    };
    if (loop.begin < free || loop.end > program.end(rank) ||
        splitsGroup(loop.begin) || splitsGroup(loop.end)) {
      report<diag::ImportJsonShape>(
          place, "loops",
          "in the order of the actions, apart from each other, within the "
          "rank's list, and not across a group");
      return false;
    }
    return llvm::all_of(RowRange{loop.begin, loop.end}, [&](ActionId row) {
      Action action = program[row];
      return !action.hasMicrobatch() ||
             checkLastTurn(loop, action.microbatch, program.pipe(action.pipe),
                           place, json.diags);
    });
  }

  ProgramJson &json;
  size_t maxActions;
  Program &program;

  std::vector<uint32_t> rowOffsets; ///< Where each action begins.
  SourceRange actionsPlace;
  uint32_t nextGroup = 0;
  int64_t group = -1;  ///< Of the row before.
  size_t numSites = 0; ///< That the file has.

  /// The loops with rows that count from the first of their rank, where they
  /// stand, and how many each rank has.
  std::vector<Loop> loops;
  std::vector<SourceRange> loopPlaces;
  std::vector<uint32_t> loopsOfRank;
  SourceRange loopsPlace;

  // The line of the last row that got a place of its own.
  OwnSites ownSites;
  uint32_t line = 1;
  size_t lineStart = 0, lineScanned = 0;
};

} // namespace ppcc
