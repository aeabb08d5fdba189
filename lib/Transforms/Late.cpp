// Places each receive just before its consumer, each send directly after its
// producer. What a rank sends to another sooner is received sooner.
#include "CommPlan.h"

#include "ppcc/Analysis/Index/EdgeIndex.h"

using namespace ppcc;

namespace {

struct Late {
  CommPlan &plan;

  void run() {
    sent.resize(edges.channels().size());
    received.resize(edges.channels().size());
    sequenceOf.resize(edges.size());
    for (ActionId row : program.rows())
      forEachMessage(program, plan.index, program[row],
                     [&](uint8_t slotBit, StageId reader) {
                       if (consumer(program[row], slotBit, reader))
                         enqueue({row, reader, slotBit});
                     });
    for (RankId i : program.ranks())
      for (RankId rank(i.value); !writer.done(rank);) {
        ActionId begin = writer.next(rank), end = program.groupEnd(begin, rank);
        for (ActionId row : RowRange{begin, end})
          receive(rank, row);
        writer.copyItem(rank);
        for (ActionId row : RowRange{begin, end})
          send(rank, program[row]);
      }
    for (ActionId row : program.rows())
      receiveUnused(row);
  }

  struct Sent {
    ActionId producer;
    StageId reader;
    uint8_t slotBit;
  };

  Message messageOf(const Action &producer, uint8_t slotBit,
                    StageId reader) const {
    return *edges.find(producer.pipe, producer.stage, reader,
                       producer.microbatch, slotBit);
  }

  /// Puts a message, if it is the first of its number, after those that its
  /// rank sends the same way before.
  void enqueue(Sent one) {
    Action producer = program[one.producer];
    if (plan.index.definer(producer.pipe, producer.stage, producer.microbatch,
                           one.slotBit) != one.producer)
      return;
    Message message = messageOf(producer, one.slotBit, one.reader);
    sent[message.channel].push_back(one);
    sequenceOf[message.number] =
        static_cast<uint32_t>(sent[message.channel].size());
  }

  /// Receives what comes on the lane up to the message.
  void receiveUpTo(Message message) {
    for (uint32_t &next = received[message.channel];
         next < sequenceOf[message.number]; ++next) {
      const Sent &one = sent[message.channel][next];
      writer.receive(program[one.producer], one.slotBit, one.reader);
    }
  }

  /// The row that receives what `reader` reads, if it is on the reader's rank.
  std::optional<ActionId> consumer(const Action &producer, uint8_t slotBit,
                                   StageId reader) const {
    auto row =
        plan.index.definer(producer.pipe, reader, producer.microbatch, slotBit);
    RankId rank = program.rankOfStage(producer.pipe, reader);
    return row && program.rows(rank).contains(*row) ? row : std::nullopt;
  }

  /// The receives of what the action in `row` reads.
  void receive(RankId rank, ActionId row) {
    Action action = program[row];
    for (uint8_t slotBit : slotsIn(program.kindOf(action).defines))
      for (StageId source :
           plan.index.sourcesOf(action.pipe, action.stage, slotBit)) {
        auto from =
            plan.index.definer(action.pipe, source, action.microbatch, slotBit);
        if (from && program.rankOfStage(action.pipe, source) != rank &&
            consumer(program[*from], slotBit, action.stage) == row)
          receiveUpTo(messageOf(program[*from], slotBit, action.stage));
      }
  }

  void send(RankId rank, const Action &producer) {
    forEachMessage(program, plan.index, producer,
                   [&](uint8_t slotBit, StageId reader) {
                     writer.send(producer, rank, slotBit, reader);
                   });
  }

  /// The receives of what no action reads, or what is made a second time.
  void receiveUnused(ActionId row) {
    Action producer = program[row];
    forEachMessage(
        program, plan.index, producer, [&](uint8_t slotBit, StageId reader) {
          bool isFirst =
              plan.index.definer(producer.pipe, producer.stage,
                                 producer.microbatch, slotBit) == row;
          if (!isFirst || !consumer(producer, slotBit, reader))
            writer.receive(producer, slotBit, reader);
        });
  }

  const Program &program = plan.program;
  CommWriter &writer = plan.writer;
  EdgeIndex edges{program, plan.index};
  std::vector<std::vector<Sent>> sent{}; ///< By lane, in order.
  std::vector<uint32_t> received{};      ///< By lane: how many of these.
  std::vector<uint32_t>
      sequenceOf{}; ///< By message: how many are sent with it.
};

} // namespace

bool ppcc::planLate(CommPlan &plan) {
  Late{plan}.run();
  return true;
}
