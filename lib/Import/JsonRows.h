// Reads the actions of a program, and its loops, from JSON.
#pragma once

#include "JsonReader.h"
#include "ppcc/IR/HeadChecks.h"

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
  void readColumns();
  /// The key `actions`. Rows keep the file's numbers for their kinds.
  void readActions();
  /// The key `loops`.
  void readLoops();

  /// Checks that each rank has a list.
  void checkRanks();
  /// Puts the program's kinds in the place of the file's, and checks the
  /// numbers of all rows against what they count.
  void finish(llvm::ArrayRef<KindId> kinds);
  bool hasLoops() const { return !loops.empty(); }
  /// Checks the loops of finished rows, and hands those of a good program to
  /// it.
  void finishLoops();

private:
  void readAction();
  void readLoop();
  bool joinsGroup(int64_t number);

  void finishRow(ActionId id, uint32_t offset, llvm::ArrayRef<KindId> kinds);
  bool checkTables(const Action &action, uint32_t offset, size_t numKinds);
  /// Whether a number of a row counts something that is there; else a report.
  bool checkNumber(uint32_t offset, llvm::StringRef what, uint64_t number,
                   size_t size, llvm::StringRef whole) {
    return number < size || beyond(offset, what, number, size, whole);
  }
  bool beyond(uint32_t offset, llvm::StringRef what, uint64_t number,
              size_t size, llvm::StringRef whole);
  void checkPeer(const Action &action, uint32_t offset);
  void checkMicrobatch(const Action &action, uint32_t offset);
  SiteId ownSite(uint32_t offset);
  bool checkLoop(const Loop &loop, ActionId free, RankId rank,
                 SourceRange place);

  /// The text of a row.
  SourceRange placeOf(uint32_t offset) const {
    return json.range(json.text.slice(offset, json.text.find(']', offset) + 1));
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
