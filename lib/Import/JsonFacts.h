// Reads what a program in JSON says of its rows although it follows from them,
// and checks that it does.
#pragma once

#include "JsonReader.h"
#include "ppcc/IR/Program.h"

namespace ppcc {

/// Reads the keys `waits` and `peak_activations` of docs/program-format.md.
class JsonFacts {
public:
  JsonFacts(ProgramJson &json, size_t maxActions, const Program &program)
      : json(json), maxActions(maxActions), program(program) {}

  /// The key `waits`.
  void readWaits();
  /// The key `peak_activations`.
  void readPeakActivations();

  /// Checks that there are no waits, whose positions are those of actions
  /// written out, beside loops.
  void checkNoWaits();
  /// Checks that each receive of a program without loops waits where its data
  /// is read first.
  void checkWaits();
  /// Checks that each peak is what the list of its rank, loops written out,
  /// amounts to.
  void checkPeakActivations();

private:
  std::vector<uint32_t> receivesOfRank() const;
  void reportWait(ActionId receive, size_t wait, RankId rank, ActionId reader);

  ProgramJson &json;
  size_t maxActions;
  const Program &program;

  /// The waits of each receive, where they stand, and how many each rank has.
  std::vector<uint32_t> waits, waitOffsets, waitsOfRank;
  std::optional<SourceRange> waitsPlace;
  std::vector<uint32_t> peaks; ///< Of activations, by rank.
  std::optional<SourceRange> peaksPlace;
};

} // namespace ppcc
