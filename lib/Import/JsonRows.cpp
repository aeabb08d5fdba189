// Reads the actions of a program, and its loops, from JSON.
#include "JsonRows.h"

#include "ppcc/IR/Loops.h"

using namespace ppcc;
using llvm::StringRef;

namespace {

/// The columns of an action in the order of the format, with the numbers that
/// fit.
struct Column {
  StringRef name;
  int64_t least, most;
};
constexpr Column columns[] = {
    {"kind", 0, 0xFF},
    {"pipe", 0, Program::maxPipes - 1},
    {"stage", 0, Program::maxStages - 1},
    {"microbatch", -1, Program::maxMicrobatches - 1},
    {"peer", -1, Program::maxStages - 1},
    {"phase", 0, Program::maxPhases},
    {"group", -1, UINT32_MAX - 1},
    {"site", 0, UINT32_MAX - 1},
};
enum {
  KindColumn,
  PipeColumn,
  StageColumn,
  MicrobatchColumn,
  PeerColumn,
  PhaseColumn,
  GroupColumn,
  SiteColumn
};

} // namespace

// ---- Keys ----

void JsonRows::readColumns() {
  size_t count = 0;
  bool good = true;
  json.list("columns", [&] {
    auto name = json.cursor.string();
    good &= name && count < std::size(columns) && *name == columns[count].name;
    ++count;
  });
  if (!good || count != std::size(columns))
    json.wrong("columns", "kind, pipe, stage, microbatch, peer, phase, group, "
                          "site");
}

void JsonRows::readActions() {
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

void JsonRows::readAction() {
  std::array<int64_t, std::size(columns)> row;
  if (!json.numbers("actions", row))
    return;
  for (auto [value, column] : llvm::zip(row, columns))
    if (value < column.least || value > column.most)
      return json.wrong(
          column.name, fmt::format("from {} to {}", column.least, column.most));
  if (program.size() >= maxActions)
    return json.tooMany(maxActions, "actions");
  Action action;
  action.kind = KindId(row[KindColumn]);
  action.pipe = PipeId(row[PipeColumn]);
  action.stage = StageId(row[StageColumn]);
  action.microbatch =
      row[MicrobatchColumn] < 0 ? Action::noMicrobatch : row[MicrobatchColumn];
  if (row[PeerColumn] >= 0)
    action.peer = StageId(row[PeerColumn]);
  action.phase = PhaseId(row[PhaseColumn]);
  action.site = SiteId(row[SiteColumn]);
  action.joined = joinsGroup(row[GroupColumn]);
  program.editRows().append(action);
  rowOffsets.push_back(json.lastOffset());
}

/// Whether a row with this group, or -1, is in that of the row before. Reports
/// numbers that do not go up by one.
bool JsonRows::joinsGroup(int64_t number) {
  bool joins = number >= 0 && number == group;
  group = number;
  if (number >= 0 && !joins && number != nextGroup++) {
    json.diags.report<diag::ImportJsonGroup>(json.lastPlace(), number,
                                             nextGroup - 1);
    nextGroup = number + 1;
  }
  return joins;
}

void JsonRows::readLoops() {
  json.list("loops", [&] {
    if (loopsOfRank.size() == Program::maxRanks)
      return json.tooMany(Program::maxRanks, "ranks");
    loopsOfRank.push_back(0);
    json.list("loops", [&] { readLoop(); });
  });
  loopsPlace = json.lastPlace();
}

void JsonRows::readLoop() {
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
  loops.push_back({ActionId(begin), ActionId(begin + rows),
                   static_cast<uint32_t>(count),
                   static_cast<int32_t>(advance)});
  loopPlaces.push_back(json.lastPlace());
  ++loopsOfRank.back();
}

// ---- Rows ----

void JsonRows::checkRanks() {
  if (program.ranksBegun() != program.numRanks())
    json.diags.report<diag::ImportJsonShape>(
        actionsPlace, "actions",
        fmt::format("a list of {} lists, one a rank", program.numRanks()));
}

void JsonRows::finish(llvm::ArrayRef<KindId> kinds) {
  numSites = program.sites().size();
  for (uint32_t row = 0; row != program.size() && !json.diags.saturated();
       ++row)
    finishRow(ActionId(row), rowOffsets[row], kinds);
}

void JsonRows::finishRow(ActionId id, uint32_t offset,
                         llvm::ArrayRef<KindId> kinds) {
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
bool JsonRows::checkTables(const Action &action, uint32_t offset,
                           size_t numKinds) {
  return checkNumber(offset, "kind", action.kind.value, numKinds, "`kinds`") &&
         checkNumber(offset, "pipe", action.pipe.value, program.pipes().size(),
                     "`pipes`") &&
         checkNumber(offset, "phase", action.phase.value,
                     program.phases().size(), "`phases`") &&
         checkNumber(offset, "site", action.site.value, numSites, "`sites`") &&
         checkNumber(offset, "stage", action.stage.value,
                     program.pipe(action.pipe).numStages(), "its pipe");
}

bool JsonRows::beyond(uint32_t offset, StringRef what, uint64_t number,
                      size_t size, StringRef whole) {
  json.diags.report<diag::ImportJsonRange>(
      placeOf(offset), what, number, fmt::format("{} has {}", whole, size));
  return false;
}

void JsonRows::checkPeer(const Action &action, uint32_t offset) {
  bool isMessage = !program.kindOf(action).isCompute();
  if (isMessage != action.hasPeer())
    json.diags.report<diag::ImportJsonShape>(placeOf(offset), "peer",
                                             isMessage
                                                 ? "a stage for a send or "
                                                   "receive"
                                                 : "-1 for a compute action");
  else if (isMessage)
    checkNumber(offset, "stage", action.peer.value,
                program.pipe(action.pipe).numStages(), "its pipe");
}

void JsonRows::checkMicrobatch(const Action &action, uint32_t offset) {
  const Pipe &pipe = program.pipe(action.pipe);
  if (program.kindOf(action).scope != KindScope::Microbatch) {
    if (action.hasMicrobatch())
      json.diags.report<diag::ImportJsonShape>(
          placeOf(offset), "microbatch",
          "-1 for an action that is not of a microbatch");
  } else if (!pipe.hasMicrobatch(action.microbatch)) {
    json.diags.report<diag::ImportJsonRange>(
        placeOf(offset), "microbatch", action.microbatch,
        fmt::format("its pipe has {} to, not including, {}",
                    pipe.firstMicrobatch, pipe.endMicrobatch()));
  }
}

/// The place of a row in the JSON, for an action of unknown origin.
SiteId JsonRows::ownSite(uint32_t offset) {
  for (; lineScanned < offset; ++lineScanned)
    if (json.text[lineScanned] == '\n') {
      ++line;
      lineStart = lineScanned + 1;
    }
  return ownSites.add(line, static_cast<uint32_t>(offset - lineStart + 1));
}

// ---- Loops ----

void JsonRows::finishLoops() {
  if (!loopsOfRank.empty() && loopsOfRank.size() != program.ranksBegun()) {
    json.diags.report<diag::ImportJsonShape>(loopsPlace, "loops",
                                             "a list for each rank");
    return;
  }
  size_t next = 0;
  for (uint32_t i = 0; i != loopsOfRank.size(); ++i) {
    RankId rank(i);
    ActionId free = program.begin(rank);
    for (uint32_t left = loopsOfRank[i]; left != 0; --left, ++next) {
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
    json.diags.report<diag::ImportTooMany>(loopsPlace, maxActions, "actions");
}

bool JsonRows::checkLoop(const Loop &loop, ActionId free, RankId rank,
                         SourceRange place) {
  auto splitsGroup = [&](ActionId row) {
    return row != program.end(rank) && program.joined(row);
  };
  if (loop.begin < free || loop.end > program.end(rank) ||
      splitsGroup(loop.begin) || splitsGroup(loop.end)) {
    json.diags.report<diag::ImportJsonShape>(
        place, "loops",
        "in the order of the actions, apart from each other, within the rank's "
        "list, and not across a group");
    return false;
  }
  for (ActionId row : RowRange{loop.begin, loop.end}) {
    Action action = program[row];
    if (action.hasMicrobatch() &&
        !checkLastTurn(loop, action.microbatch, program.pipe(action.pipe),
                       place, json.diags))
      return false;
  }
  return true;
}
