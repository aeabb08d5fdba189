// How long messages were on their way, from the traces of a run.
#include "MessageTimes.h"

#include "ppcc/IR/Program.h"

using namespace ppcc;

void MessageTimes::add(const TraceEvent &event) {
  SmallVector<StringRef, 8> groups;
  if (!event.start || !regex.match(event.name, &groups))
    return;
  auto found = kinds.find(groups[2]);
  uint32_t stage, peer;
  uint64_t microbatch;
  if (!found || kinds[*found].isCompute() ||
      groups[1].getAsInteger(10, stage) || stage >= Program::maxStages ||
      groups[3].getAsInteger(10, microbatch))
    return;
  const KindInfo &kind = kinds[*found];
  bool sends = kind.kindClass == KindClass::Send;
  bool isUp = sends == bool(kind.defines & slot::Output);
  if (groups[5].empty())
    peer = isUp ? stage + 1 : stage - 1; // May wrap: then it has no other end.
  else if (groups[5].getAsInteger(10, peer))
    return;

  Message message{kind.defines, sends ? stage : peer, sends ? peer : stage,
                  microbatch};
  if (sends)
    messages[message].sends.push_back(*event.start);
  else
    messages[message].receives.push_back(
        {*event.start,
         *event.start + event.duration - event.waited.value_or(event.duration),
         *event.start + event.duration});
}

std::map<uint32_t, std::vector<Time>> MessageTimes::byStage() const {
  std::map<uint32_t, std::vector<Time>> times;
  std::map<uint32_t, Time> bounds;
  for (const auto &[message, ends] : messages) {
    auto [slot, from, to, microbatch] = message;
    uint32_t stage = std::min(from, to);
    size_t steps = std::min(ends.sends.size(), ends.receives.size());
    for (size_t step = 0; step != steps; ++step) {
      Time sent = ends.sends[step];
      const Receive &receive = ends.receives[step];
      // Clocks that are not the same would show it.
      if (receive.end < sent)
        continue;
      Time time = receive.end - std::max(sent, receive.posted);
      if (receive.waited <= sent)
        times[stage].push_back(time);
      auto bound = bounds.try_emplace(stage, time).first;
      bound->second = std::min(bound->second, time);
    }
  }
  for (auto [stage, time] : bounds)
    if (times[stage].empty())
      times[stage] = {time};
  return times;
}
