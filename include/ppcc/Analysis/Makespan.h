// How long a program takes.
#pragma once

#include "ppcc/Analysis/Durations.h"
#include "ppcc/Analysis/ProgramIndex.h"

namespace ppcc {

/// The time from the start of the first action to the end of the last when
/// each rank runs its compute actions in order and waits for data alone: an
/// edge between ranks takes its latency, sends and receives in the program
/// count for nothing. A bound for every placement of messages. When each row
/// starts is left in `starts`, if given; in `slacks` how long each input lies
/// there before its reader starts, by Inboxes::inputOf. Nothing when the ranks
/// wait for each other. The times must fit(). O(actions + messages). It is
/// simulate() for planning: it tells slacks, not causes.
std::optional<Time> dataBound(const Program &program, const ProgramIndex &index,
                              const Durations &durations,
                              std::vector<Time> *starts = nullptr,
                              std::vector<Time> *slacks = nullptr);

} // namespace ppcc
