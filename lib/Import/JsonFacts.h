// Reads what a program in JSON says of its rows although it follows from them,
// and checks that it does.
#pragma once

#include "JsonReader.h"
#include "ppcc/Analysis/Analyses.h"
#include "ppcc/Analysis/Report/PeakUsage.h"

namespace ppcc {

/// Reads the keys `waits` and `peak_activations` of docs/program-format.md.
class JsonFacts {
public:
  JsonFacts(JsonReader &json, size_t maxActions, const Program &program)
      : json(json), maxActions(maxActions), program(program) {}

  /// The key `waits`: each receive of a program waits where its data is read
  /// first. `hasLoops`: the file has the program with loops, and positions are
  /// those of actions written out.
  void readWaits(bool hasLoops) {
    json.list("waits", [&] {
      if (waitsOfRank.size() == Program::maxRanks)
        return json.tooMany(Program::maxRanks, "ranks");
      waitsOfRank.push_back(0);
      json.list("waits", [&] {
        if (waits.size() >= maxActions)
          return json.tooMany(maxActions, "waits");
        waits.push_back(json.number("waits", 0, UINT32_MAX - 1));
        waitOffsets.push_back(json.lastOffset());
        ++waitsOfRank.back();
      });
    });
    if (json.isGood() && hasLoops)
      json.wrong("waits", "absent where there are loops: its positions are "
                          "those of actions written out");
    if (json.isGood())
      checkWaits();
  }

  /// The key `peak_activations`: each is what the list of its rank, loops
  /// written out, amounts to.
  void readPeakActivations() {
    std::vector<uint32_t> peaks, truth;
    json.list("peak_activations", [&] {
      if (peaks.size() == Program::maxRanks)
        return json.tooMany(Program::maxRanks, "ranks");
      peaks.push_back(json.number("peak_activations", 0, UINT32_MAX));
    });
    if (!json.isGood())
      return;
    for (RankId rank : program.ranks())
      truth.push_back(peakActivations(program, rank));
    if (peaks == truth)
      return;
    std::string what =
        fmt::format("a list of {} numbers, one per rank", program.numRanks());
    if (peaks.size() == truth.size()) {
      size_t rank = std::ranges::mismatch(peaks, truth).in1 - peaks.begin();
      what = fmt::format("{} for rank {}, whose list has that many activations "
                         "at one time",
                         truth[rank], rank);
    }
    json.wrong("peak_activations", what);
  }

private:
  void checkWaits() {
    std::vector<uint32_t> receives;
    for (RankId rank : program.ranks())
      receives.push_back(llvm::count_if(program.rows(rank), [&](ActionId row) {
        return program.kindOf(row).isRecv();
      }));
    if (receives != waitsOfRank)
      return json.wrong("waits", "a list for each rank, with a number for each "
                                 "of its receives");
    const ReceiveBuffers &buffers = Analyses(program).buffers();
    if (!buffers.edges().fits())
      return; // It has far too few actions, as `verify` will say.
    size_t next = 0;
    for (RankId rank : program.ranks())
      for (ActionId row : program.rows(rank))
        if (program.kindOf(row).isRecv() && !json.diags.saturated()) {
          checkWait(row, next, rank, buffers.waits()[next]);
          ++next;
        }
  }

  void checkWait(ActionId receive, size_t wait, RankId rank, ActionId reader) {
    uint32_t truth = reader.value - program.begin(rank).value;
    if (waits[wait] == truth)
      return;
    std::string why =
        reader == program.end(rank)
            ? fmt::format("no action reads it, so it waits at the end, {}",
                          truth)
            : fmt::format("it is read first at {}, `{}`", truth,
                          cell(program, reader));
    StringRef digits =
        json.text.substr(waitOffsets[wait], 20).take_while(llvm::isDigit);
    json.diags.report<diag::ImportJsonWait>(
        json.range(digits), cell(program, receive), waits[wait], why);
  }

  JsonReader &json;
  size_t maxActions;
  const Program &program;

  /// The waits of each receive, where they stand, and how many each rank has.
  std::vector<uint32_t> waits, waitOffsets, waitsOfRank;
};

} // namespace ppcc
