// How long a program takes.
#pragma once

#include "ppcc/Analysis/Durations.h"
#include "ppcc/Analysis/Inboxes.h"

namespace ppcc {

/// The time from the start of the first action to the end of the last when
/// each rank runs its compute actions in order and waits for data alone: an
/// edge between ranks takes its latency, sends and receives in the program
/// count for nothing. A bound for every placement of messages. When each row
/// starts is left in `starts`, if given; in the inboxes, which are at their
/// beginning, how long each input lies there before its reader starts. Nothing
/// when the ranks wait for each other. The times must fit(). O(actions +
/// messages). It is simulate() for planning: it tells slacks, not causes.
std::optional<Time> dataBound(Inboxes &inboxes, const Durations &durations,
                              std::vector<Time> *starts = nullptr);
inline std::optional<Time> dataBound(const Program &program,
                                     const ProgramIndex &index,
                                     const Durations &durations,
                                     std::vector<Time> *starts = nullptr) {
  Inboxes inboxes(program, index);
  return dataBound(inboxes, durations, starts);
}

} // namespace ppcc
