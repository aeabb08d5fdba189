#include "ppcc/Analysis/Queues.h"

using namespace ppcc;

Queues::Queues(const Program &program, const MessageIndex *messages,
               QueueLayout layout)
    : program(program), messages(messages), layout(layout),
      count(program.ranksBegun()) {
  if (layout == QueueLayout::Stream)
    count *= 2;
  else if (layout != QueueLayout::One && messages)
    numberStreams();
  firstLane = count;
  if (program.kinds().hasBeside())
    count += program.ranksBegun() * program.kinds().lanes().size();
}

/// A stream belongs to an end of a lane, or to several.
void Queues::numberStreams() {
  auto lanes = messages->lanes();
  for (uint32_t lane = 0; lane != lanes.size(); ++lane) {
    streamOfSends.push_back(count + 2 * lane);
    streamOfReceives.push_back(count + 2 * lane + 1);
    if (layout != QueueLayout::StreamPerPeer)
      continue;
    // What a rank receives from a peer shares the stream of what it sends
    // there.
    Lane wanted{lanes[lane].to, lanes[lane].from};
    auto back = llvm::lower_bound(lanes, wanted);
    if (back != lanes.end() && *back == wanted)
      streamOfReceives.back() = count + 2 * (back - lanes.begin());
  }
  count += 2 * lanes.size();
}

uint32_t Queues::of(const Action &action, RankId rank) const {
  const KindInfo &info = program.kindOf(action);
  if (hasOwnQueue(info, layout))
    return firstLane + rank.value * program.kinds().lanes().size() + info.lane;
  if (layout == QueueLayout::One || info.occupiesRank())
    return rank.value;
  if (layout == QueueLayout::Stream)
    return program.ranksBegun() + rank.value;
  auto message = messages->of(action);
  if (!message)
    return rank.value;
  return info.isSend() ? streamOfSends[message->lane]
                       : streamOfReceives[message->lane];
}

std::vector<uint32_t> ppcc::issuedBehind(const Program &program,
                                         QueueLayout layout) {
  std::vector<uint32_t> rows(program.size(), noRow);
  auto isInOwnQueue = [&](ActionId row) {
    const KindInfo &info = program.kindOf(row);
    return layout == QueueLayout::One ? !hasOwnQueue(info, layout)
                                      : info.occupiesRank();
  };
  for (RankId rank : program.ranks()) {
    uint32_t before = noRow, beforeGroup = noRow;
    for (ActionId row : program.rows(rank)) {
      if (!program.joined(row))
        beforeGroup = before;
      if (isInOwnQueue(row))
        before = row.value;
      else
        rows[row.value] = beforeGroup;
    }
  }
  return rows;
}

std::vector<uint32_t> ppcc::roomMakers(const Program &program,
                                       const MessageIndex &messages,
                                       uint32_t capacity) {
  std::vector<uint32_t> rows(program.size(), noRow);
  auto receives = receivesOfLanes(program, messages);
  std::vector<uint32_t> sent(messages.lanes().size());
  for (ActionId row : program.rows()) {
    if (!program.kindOf(row).isSend())
      continue;
    auto message = messages.of(program[row]);
    if (!message)
      continue;
    const std::vector<ActionId> &received = receives[message->lane];
    uint32_t position = sent[message->lane]++;
    if (position >= capacity && position - capacity < received.size())
      rows[row.value] = received[position - capacity].value;
  }
  return rows;
}
