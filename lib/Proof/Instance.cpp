#include "ppcc/Proof/Instance.h"

#include <fmt/format.h>

using namespace ppcc;
using namespace ppcc::proof;

std::string ppcc::proof::instantiate(const Template &family, int64_t n,
                                     uint64_t maxActions, Program &program) {
  Head &head = program.editHead();
  for (size_t i = 0; i != head.pipes.size(); ++i) {
    __int128 first = family.pipes[i].first.at(n),
             count = family.pipes[i].count.at(n);
    if (first < 0 || count < 1 || first + count > Program::maxMicrobatches)
      return "a pipe has no microbatches, or too many";
    head.pipes[i].firstMicrobatch = static_cast<uint32_t>(first);
    head.pipes[i].numMicrobatches = static_cast<uint32_t>(count);
  }
  __int128 size = 0;
  for (const auto &rows : family.ranks)
    for (const Row &row : rows)
      size += row.window == noWindow ? 1 : __int128(n) + 1;
  if (size > maxActions)
    return fmt::format("there are more than {} actions", maxActions);
  Rows result;
  result.reserve(static_cast<size_t>(size));
  bool good = true;
  for (const auto &rows : family.ranks) {
    result.beginRank();
    forEachRow(rows, n, [&](uint32_t i, int64_t turn) {
      const Row &row = rows[i];
      const Pipe &pipe = head.pipes[row.pipe.value];
      __int128 microbatch = row.microbatch.at(n, turn);
      good &= microbatch >= pipe.firstMicrobatch &&
              microbatch < pipe.endMicrobatch();
      Action action{row.kind, row.pipe, row.stage};
      action.microbatch = static_cast<uint32_t>(microbatch);
      action.peer = row.peer;
      action.phase = row.phase;
      action.site = row.site;
      action.joined = row.joined;
      result.append(action);
    });
  }
  if (!good)
    return "an action is of a microbatch that its pipe has not";
  program = program.withRows(std::move(result));
  return "";
}
