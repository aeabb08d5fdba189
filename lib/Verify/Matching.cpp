// Checks that two ranks send and receive the messages between them in one
// order.
#include "Matching.h"

#include "Report.h"
#include "ppcc/Basic/Diagnostics/Verify.h"
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
    context.diags.report<diag::FarTooFewMessages>(Place(program.name()),
                                                  program.size());
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
        sends ? "receive" : "send", program.otherEnd(action).value);
    return false;
  }
  ActionId first = sends ? *messages.send(*message) : *messages.recv(*message);
  if (first == row)
    return true;
  reportAt<diag::MessageRepeated>(program, context, row, cell(program, action))
      .note(placeOf(program, first, context.sources), "the first is here");
  return false;
}

bool ppcc::checkPairs(const Program &program, const MessageIndex &messages,
                      PassContext &context) {
  if (messages.isWhole())
    return true;
  bool paired = true;
  for (uint32_t row = 0; row != program.size() && !context.diags.saturated();
       ++row)
    if (!program.kindOf(ActionId(row)).isCompute())
      paired &= checkPair(program, messages, ActionId(row), context);
  return paired;
}

std::vector<Mismatch> ppcc::firstMismatches(const Program &program,
                                            const MessageIndex &messages) {
  if (messages.isInOrder())
    return {};
  constexpr uint32_t mismatched = 0xFFFFFFFF;
  LaneReceives receives(program, messages);
  std::vector<uint32_t> sent(messages.lanes().size());
  std::vector<Mismatch> found;
  for (ActionId row : program.rows()) {
    if (!program.kindOf(row).isSend())
      continue;
    auto message = messages.of(program[row]);
    assert(message && messages.recv(*message) && "the messages are paired");
    uint32_t &position = sent[message->lane];
    if (position == mismatched)
      continue;
    ActionId recv = receives.of(message->lane)[position];
    if (recv == *messages.recv(*message)) {
      ++position;
      continue;
    }
    found.push_back({row, recv, position, messages.lanes()[message->lane]});
    position = mismatched;
  }
  return found;
}

namespace {

class Matching final : public CheckPass {
public:
  void check(const Program &program, PassContext &context) const override {
    const MessageIndex *messages = messagesOf(program, context);
    if (!messages || !checkPairs(program, *messages, context))
      return;
    for (const Mismatch &mismatch : firstMismatches(program, *messages)) {
      report(program, *messages, mismatch, context);
      if (context.diags.saturated())
        return;
    }
  }

private:
  static StringRef dataOf(uint8_t slotBit) {
    return slotBit == slot::Output ? "activation" : "gradient";
  }

  static bool inBatch(const Program &program, ActionId row) {
    ActionId next(row.value + 1);
    return program.joined(row) ||
           (next.value != program.size() && program.joined(next));
  }

  /// The batch that a message of `rank` is posted in:
  /// `send_forward_recv_backward[0SEND_F1;0RECV_B0]`.
  static std::string batchOf(const Program &program, RankId rank,
                             ActionId row) {
    constexpr uint32_t longest = 8; // Messages.
    while (program.joined(row))
      --row.value;
    ActionId end = program.groupEnd(row, rank);
    std::string text = CallNames(program, rank).of(row, end).str();
    for (ActionId next : RowRange{row, end}) {
      text += next == row ? "[" : ";";
      if (next.value - row.value == longest)
        return text + "...]";
      text += cell(program, next);
    }
    return text + "]";
  }

  static void report(const Program &program, const MessageIndex &messages,
                     const Mismatch &mismatch, PassContext &context) {
    auto [send, recv, position, lane] = mismatch;
    auto place = [&](ActionId row) {
      return placeOf(program, row, context.sources);
    };
    ActionId itsRecv = *messages.partner(send);
    if (uint8_t sent = program.kindOf(send).mainSlot(),
        received = program.kindOf(recv).mainSlot();
        sent != received && inBatch(program, send) && inBatch(program, recv)) {
      reportAt<diag::BatchMispairs>(program, context, send, lane.to.value,
                                    dataOf(sent), cell(program, send),
                                    lane.from.value, dataOf(received),
                                    cell(program, recv))
          .note(place(send), "rank {} posts `{}`", lane.from.value,
                batchOf(program, lane.from, send))
          .note(place(recv), "rank {} posts `{}`", lane.to.value,
                batchOf(program, lane.to, recv));
      return;
    }
    reportAt<diag::MessageOrder>(program, context, send, lane.from.value,
                                 cell(program, send), lane.to.value,
                                 cell(program, recv))
        .note(place(recv), "rank {} receives `{}` as message {} from rank {}",
              lane.to.value, cell(program, recv), position + 1, lane.from.value)
        .note(place(itsRecv), "`{}` comes only here", cell(program, itsRecv));
  }
};

} // namespace

PassFactory ppcc::verifyMatching() { return passFactory<Matching>(); }
