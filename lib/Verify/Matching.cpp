// Checks that two ranks send and receive the messages between them in one
// order.

#include "ProgramCheck.h"
#include "ppcc/IR/Calls.h"
#include "ppcc/Verify/Passes.h"

using namespace ppcc;

const MessageIndex *ppcc::messagesOf(const Program &program,
                                     PassContext &context) {
  if (!indexOf(program, context))
    return nullptr;
  const auto &messages = Analyses(program).messages();
  if (messages.fits())
    return &messages;
  if (!context.diags.hasErrors())
    context.diags.report<diag::TooFewActionsForMessages>(
        Location(program.name()), program.size());
  return nullptr;
}

/// Reports a send or receive whose message has no other end, or that is not the
/// first at its own.
static bool checkPair(const Program &program, const MessageIndex &messages,
                      ActionId row, PassContext &context) {
  Action action = program[row];
  bool sends = program.kindOf(action).isSend();
  auto message = messages.of(action);
  if (!message ||
      !(sends ? messages.recv(*message) : messages.send(*message))) {
    reportAt<diag::MessageUnpaired>(
        program, context, row, cell(program, action),
        sends ? "receive" : "send", program.peerRank(action).value);
    return false;
  }
  ActionId first = sends ? *messages.send(*message) : *messages.recv(*message);
  if (first == row)
    return true;
  reportAt<diag::MessageRepeated>(program, context, row, cell(program, action))
      .note(locationOf(program, first, context.sources), "the first is here");
  return false;
}

bool ppcc::checkPairs(const Program &program, const MessageIndex &messages,
                      PassContext &context) {
  if (messages.isWhole())
    return true;
  bool paired = true;
  for (ActionId row : program.rows())
    if (!context.diags.saturated() && !program.kindOf(row).isCompute())
      paired &= checkPair(program, messages, row, context);
  return paired;
}

std::vector<Mismatch> ppcc::firstMismatches(const Program &program,
                                            const MessageIndex &messages) {
  if (messages.isInOrder())
    return {};
  constexpr uint32_t mismatched = 0xFFFFFFFF;
  auto receives = receivesByChannel(program, messages);
  std::vector<uint32_t> sent(messages.channels().size());
  std::vector<Mismatch> found;
  for (ActionId row : program.rows()) {
    if (!program.kindOf(row).isSend())
      continue;
    auto message = messages.of(program[row]);
    assert(message && messages.recv(*message) && "the messages are paired");
    uint32_t &position = sent[message->channel];
    if (position == mismatched)
      continue;
    ActionId recv = receives[message->channel][position];
    if (recv == *messages.recv(*message)) {
      ++position;
      continue;
    }
    found.push_back(
        {row, recv, position, messages.channels()[message->channel]});
    position = mismatched;
  }
  return found;
}

namespace {

/// Tells the user of messages that do not match.
struct MismatchReporter : ProgramCheck {
  const MessageIndex &messages;

  void reportMismatch(const Mismatch &mismatch) const {
    auto [send, recv, position, channel] = mismatch;
    ActionId itsRecv = *messages.partner(send);
    if (uint8_t sent = program.kindOf(send).mainSlot(),
        received = program.kindOf(recv).mainSlot();
        sent != received && inBatch(send) && inBatch(recv)) {
      report<diag::BatchMispairs>(send, channel.to.value, dataOf(sent),
                                  cell(send), channel.from.value,
                                  dataOf(received), cell(recv))
          .note(place(send), "rank {} posts `{}`", channel.from.value,
                batchOf(channel.from, send))
          .note(place(recv), "rank {} posts `{}`", channel.to.value,
                batchOf(channel.to, recv));
      return;
    }
    report<diag::MessageOrder>(send, channel.from.value, cell(send),
                               channel.to.value, cell(recv))
        .note(place(recv), "rank {} receives `{}` as message {} from rank {}",
              channel.to.value, cell(recv), position + 1, channel.from.value)
        .note(place(itsRecv), "`{}` is only here", cell(itsRecv));
  }

  static StringRef dataOf(uint8_t slotBit) {
    return slotBit == slot::Output ? "activation" : "gradient";
  }

  bool inBatch(ActionId row) const { return program.itemOf(row).size() > 1; }

  /// The batch that a message of `rank` is posted in:
  /// `send_forward_recv_backward[0SEND_F1;0RECV_B0]`.
  std::string batchOf(RankId rank, ActionId row) const {
    constexpr uint32_t longest = 8; // Messages.
    auto [begin, end] = program.itemOf(row);
    std::string text = CallNames(program, rank).of(begin, end).str();
    for (ActionId next : RowRange{begin, end}) {
      text += next == begin ? "[" : ";";
      if (next.value - begin.value == longest)
        return text + "...]";
      text += cell(next);
    }
    return text + "]";
  }
};

} // namespace

void ppcc::verifyMatching(const Program &program, PassContext &context) {
  const MessageIndex *messages = messagesOf(program, context);
  if (!messages || !checkPairs(program, *messages, context))
    return;
  MismatchReporter reporter{{program, context}, *messages};
  for (const Mismatch &mismatch : firstMismatches(program, *messages))
    if (!context.diags.saturated())
      reporter.reportMismatch(mismatch);
}
