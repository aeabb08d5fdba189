// Reads what a program in JSON says of its rows although it follows from them,
// and checks that it does.
#include "JsonFacts.h"

#include "ppcc/Analysis/Activations.h"
#include "ppcc/Analysis/ReceiveBuffers.h"

using namespace ppcc;
using llvm::StringRef;

// ---- Waits ----

void JsonFacts::readWaits() {
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
  waitsPlace = json.lastPlace();
}

void JsonFacts::checkNoWaits() {
  if (waitsPlace)
    json.diags.report<diag::ImportJsonShape>(
        *waitsPlace, "waits",
        "absent where there are loops: its positions are "
        "those of actions written out");
}

void JsonFacts::checkWaits() {
  if (!waitsPlace)
    return;
  if (receivesOfRank() != waitsOfRank) {
    json.diags.report<diag::ImportJsonShape>(
        *waitsPlace, "waits",
        "a list for each rank, with a number for each of its receives");
    return;
  }
  ProgramIndex index(program);
  ReceiveBuffers buffers(program, index);
  if (!buffers.edges().fits())
    return; // It has far too few actions, as `verify` will say.
  size_t next = 0;
  for (RankId rank : program.ranks()) {
    uint32_t begin = program.begin(rank).value, end = program.end(rank).value;
    for (uint32_t row = begin; row != end && !json.diags.saturated(); ++row) {
      if (!program.kindOf(ActionId(row)).isRecv())
        continue;
      ActionId reader = buffers.waits()[next];
      if (waits[next] != reader.value - begin)
        reportWait(ActionId(row), next, rank, reader);
      ++next;
    }
  }
}

std::vector<uint32_t> JsonFacts::receivesOfRank() const {
  std::vector<uint32_t> receives(program.ranksBegun());
  for (uint32_t rank = 0; rank != receives.size(); ++rank)
    for (ActionId row : program.rows(RankId(rank)))
      receives[rank] += program.kindOf(row).isRecv();
  return receives;
}

void JsonFacts::reportWait(ActionId receive, size_t wait, RankId rank,
                           ActionId reader) {
  uint32_t truth = reader.value - program.begin(rank).value;
  std::string why =
      reader == program.end(rank)
          ? fmt::format("no action reads it, so it waits at the end, {}", truth)
          : fmt::format("it is read first at {}, `{}`", truth,
                        cell(program, program[reader]));
  StringRef digits =
      json.text.substr(waitOffsets[wait], 20).take_while(llvm::isDigit);
  json.diags.report<diag::ImportJsonWait>(
      json.range(digits), cell(program, program[receive]), waits[wait], why);
}

// ---- Activations ----

void JsonFacts::readPeakActivations() {
  json.list("peak_activations", [&] {
    if (peaks.size() == Program::maxRanks)
      return json.tooMany(Program::maxRanks, "ranks");
    peaks.push_back(json.number("peak_activations", 0, UINT32_MAX));
  });
  peaksPlace = json.lastPlace();
}

void JsonFacts::checkPeakActivations() {
  if (!peaksPlace)
    return;
  std::vector<uint32_t> truth;
  for (RankId rank : program.ranks())
    truth.push_back(peakActivations(program, rank));
  if (peaks == truth)
    return;
  std::string what =
      fmt::format("a list of {} numbers, one a rank", program.numRanks());
  if (peaks.size() == truth.size()) {
    size_t rank =
        std::mismatch(peaks.begin(), peaks.end(), truth.begin()).first -
        peaks.begin();
    what = fmt::format("{} for rank {}, whose list has that many activations "
                       "at one time",
                       truth[rank], rank);
  }
  json.diags.report<diag::ImportJsonShape>(*peaksPlace, "peak_activations",
                                           what);
}
