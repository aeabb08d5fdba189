#include "ppcc/Analysis/Run/EventNeeds.h"

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
  if (program.kinds().hasAsync())
    count += program.ranksBegun() * program.kinds().lanes().size();
}

/// A stream belongs to an end of a channel, or to several.
void Queues::numberStreams() {
  auto channels = messages->channels();
  for (uint32_t channel = 0; channel != channels.size(); ++channel) {
    streamOfSends.push_back(count + 2 * channel);
    streamOfReceives.push_back(count + 2 * channel + 1);
    if (layout != QueueLayout::StreamPerPeer)
      continue;
    // What a rank receives from a peer shares the stream of what it sends
    // there.
    Channel wanted{channels[channel].to, channels[channel].from};
    auto back = llvm::lower_bound(channels, wanted);
    if (back != channels.end() && *back == wanted)
      streamOfReceives.back() = count + 2 * (back - channels.begin());
  }
  count += 2 * channels.size();
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
  return info.isSend() ? streamOfSends[message->channel]
                       : streamOfReceives[message->channel];
}

std::vector<uint32_t> ppcc::issuePredecessors(const Program &program,
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

std::vector<uint32_t> ppcc::bufferFreeingReceives(const Program &program,
                                                  const MessageIndex &messages,
                                                  uint32_t capacity) {
  std::vector<uint32_t> rows(program.size(), noRow);
  auto receives = receivesByChannel(program, messages);
  std::vector<uint32_t> sent(messages.channels().size());
  for (ActionId row : program.rows()) {
    if (!program.kindOf(row).isSend())
      continue;
    auto message = messages.of(program[row]);
    if (!message)
      continue;
    const std::vector<ActionId> &received = receives[message->channel];
    uint32_t position = sent[message->channel]++;
    if (position >= capacity && position - capacity < received.size())
      rows[row.value] = received[position - capacity].value;
  }
  return rows;
}
