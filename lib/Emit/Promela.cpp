// Writes the program and a transport as a SPIN model: an invalid end state is a
// deadlock, a failed assertion a message that its receiver does not expect.
#include "Cells.h"
#include "Emitters.h"

#include "ppcc/Analysis/Analyses.h"
#include "ppcc/Basic/Diagnostics/Emit.h"
#include "ppcc/Basic/Diagnostics/Verify.h"
#include "ppcc/IR/Location.h"

#include "llvm/ADT/Sequence.h"

using namespace ppcc;

namespace {

constexpr size_t maxActions = 10'000;
/// SPIN counts processes, channels and what is in a channel in bytes.
constexpr size_t maxPerByte = 250;

/// A queue of a rank: one process of the model.
struct Queue {
  enum Part : uint8_t { Main, Comm, Peer, To, From };

  RankId rank;
  Part part = Main;
  RankId peer;

  auto operator<=>(const Queue &) const = default;
};

/// What a message carries, equal at both ends.
struct Label {
  PipeId pipe;
  StageId from, to;
  uint32_t microbatch = 0;
  uint8_t slotBit = 0;

  auto operator<=>(const Label &) const = default;
};

/// The ranks that messages go from and to.
using Ends = std::pair<RankId, RankId>;

/// Where a row runs. The messages of a group begin and end together, whatever
/// their queues, and one process runs them all; so do its compute actions.
struct Slot {
  uint32_t queue = 0;
  uint32_t leader = 0; ///< The queue whose process runs it.
  uint32_t count = 0;  ///< What the leader has run when it has.
  std::optional<ActionId> computeBefore; ///< The last before its item.
  std::optional<ActionId> queueBefore;   ///< The last of its queue before that.
};

/// The rows of an item that a queue's process runs, and those that its queue
/// holds and another process runs.
struct Part {
  ActionId item;
  SmallVector<ActionId, 8> led = {}, held = {};
};

/// What must have ended before an item begins: of some queues so many items;
/// nothing when its data never comes.
using Waits = std::optional<std::map<uint32_t, uint32_t>>;

/// The queues, channels and waits of a program under a transport.
struct Model {
  const Program &program;
  const Transport &transport;
  raw_ostream &out;
  const ProgramIndex &index = Analyses(program).index();
  Writer writer{out};
  std::vector<Queue> queues{};            ///< By rank; no duplicates.
  std::vector<std::vector<Part>> parts{}; ///< By queue, in order.
  std::map<Ends, uint32_t> channels{};    ///< How many sends they carry.
  std::map<Label, size_t> numbers{};      ///< That no other label has.
  std::map<std::pair<Label, RankId>, ActionId>
      receives{};              ///< The first of each.
  std::vector<Slot> slots{};   ///< By row.
  std::vector<bool> awaited{}; ///< By row: its queue's count is read.

  void build() {
    for (RankId rank : program.ranks())
      for (ActionId row : program.rows(rank))
        enter(rank, row);
    size_t before = 0;
    for (auto &[label, number] : numbers)
      before += std::exchange(number, before);
    llvm::sort(queues);
    queues.erase(llvm::unique(queues), queues.end());
    findSlots();
    findAwaited();
  }

  /// Calls `refuse(count, what)` for each thing of which there are more than
  /// SPIN can count.
  template <class Refuse> void checkLimits(Refuse refuse) const {
    uint32_t capacity = 0;
    for (auto [ends, sends] : channels)
      capacity = std::max(capacity, capacityFor(sends));
    size_t widest = 0;
    for (uint32_t queue = 0;
         queue != queues.size() && queues.size() <= maxPerByte; ++queue)
      widest = std::max(widest, widestBatch(queue));
    std::pair<size_t, StringRef> counts[] = {
        {queues.size(), "queues"},
        {channels.size(), "pairs of ranks"},
        {capacity, "messages under way between two ranks"},
        {widest, "messages in a group"}};
    for (auto [count, what] : counts)
      if (count > maxPerByte)
        refuse(count, what);
  }

  void write() {
    writeHead();
    // A process goes only when all younger ones have gone, and the first is the
    // oldest.
    if (transport.sendWait != SendWait::Receive || queues.empty())
      writeEnd();
    for (uint32_t queue = 0; queue != queues.size(); ++queue)
      writeProcess(queue);
  }

  bool isMessage(ActionId row) const {
    return !program.kindOf(row).isCompute();
  }

  bool sends(ActionId row) const { return program.kindOf(row).isSend(); }

  Queue queueOf(RankId rank, ActionId row) const {
    bool isCompute = program.kindOf(row).isCompute();
    switch (isCompute ? QueueLayout::One : transport.layout) {
    case QueueLayout::One:
      return {rank, Queue::Main, {}};
    case QueueLayout::Stream:
      return {rank, Queue::Comm, {}};
    case QueueLayout::StreamPerPeer:
      return {rank, Queue::Peer, program.peerRank(program[row])};
    case QueueLayout::StreamPerEdge:
      return {rank, sends(row) ? Queue::To : Queue::From,
              program.peerRank(program[row])};
    }
    llvm_unreachable("a layout that the model does not know");
  }

  Label labelOf(ActionId row) const {
    Action action = program[row];
    auto [from, to] = program.endpointsOf(action);
    return {action.pipe, from, to, action.microbatch,
            program.kindOf(action).mainSlot()};
  }

  Ends endsOf(RankId rank, ActionId row) const {
    RankId peer = program.peerRank(program[row]);
    return sends(row) ? Ends(rank, peer) : Ends(peer, rank);
  }

  void enter(RankId rank, ActionId row) {
    queues.push_back(queueOf(rank, row));
    if (program.kindOf(row).isCompute())
      return;
    ++numbers[labelOf(row)];
    channels[endsOf(rank, row)] += sends(row);
    if (!sends(row))
      receives.try_emplace({labelOf(row), rank}, row);
  }

  void findSlots() {
    slots.resize(program.size());
    parts.resize(queues.size());
    std::vector<uint32_t> counts(queues.size());
    std::vector<std::optional<ActionId>> last(queues.size());
    for (RankId rank : program.ranks()) {
      std::optional<ActionId> lastCompute;
      for (RowRange item : program.items(rank)) {
        // Of the compute actions, and of the messages.
        std::optional<uint32_t> leaders[2];
        for (ActionId row : item) {
          uint32_t queue =
              llvm::lower_bound(queues, queueOf(rank, row)) - queues.begin();
          auto &leader = leaders[transport.hasStreams() && isMessage(row)];
          if (!leader)
            ++counts[*(leader = queue)];
          slots[row.value] = {queue, *leader, counts[*leader], lastCompute,
                              last[queue]};
          partOf(*leader, item).led.push_back(row);
          if (queue != *leader)
            partOf(queue, item).held.push_back(row);
        }
        for (ActionId row : item) {
          last[slots[row.value].queue] = row;
          if (!isMessage(row))
            lastCompute = row;
        }
      }
    }
  }

  Part &partOf(uint32_t queue, RowRange item) {
    std::vector<Part> &ofQueue = parts[queue];
    if (ofQueue.empty() || ofQueue.back().item != item.from)
      ofQueue.push_back({item.from});
    return ofQueue.back();
  }

  void findAwaited() {
    awaited.resize(program.size());
    for (RankId rank : program.ranks())
      for (ActionId row : program.rows(rank)) {
        if (isLedElsewhere(row))
          awaited[row.value] = true;
        forEachWait(rank, row, [&](std::optional<ActionId> on) {
          if (on && !hasEndedBefore(*on, row))
            awaited[on->value] = true;
        });
      }
  }

  bool isLedElsewhere(ActionId row) const {
    return slots[row.value].leader != slots[row.value].queue;
  }

  /// Whether `earlier` has ended when the process that runs both comes to
  /// `row`.
  bool hasEndedBefore(ActionId earlier, ActionId row) const {
    const Slot &first = slots[earlier.value], &second = slots[row.value];
    return first.leader == second.leader && first.count < second.count;
  }

  /// 0 for a channel whose send waits for its receive.
  uint32_t capacityFor(uint32_t sends) const {
    uint32_t enough = std::max(sends, 1u);
    switch (transport.sendWait) {
    case SendWait::Nothing:
      return enough;
    case SendWait::Capacity:
      return std::min(transport.capacity, enough);
    case SendWait::Receive:
      return 0;
    }
    llvm_unreachable("a send wait that the model does not know");
  }

  /// Calls `visit` with each row that must end before `row` can start: those
  /// that bring its data to the rank, and what its stream waits for, where the
  /// process does not see to it; with nothing for data that never comes.
  template <class Visit>
  void forEachWait(RankId rank, ActionId row, Visit visit) const {
    Action action = program[row];
    const KindInfo &info = program.kindOf(action);
    auto definer = [&](StageId stage, uint8_t slotBit) {
      return index.definer(action.pipe, stage, action.microbatch, slotBit);
    };
    auto visitLocal = [&](StageId stage, uint8_t slotBit) {
      auto found = definer(stage, slotBit);
      visit(found && program.rankOf(*found) == rank ? found : std::nullopt);
    };
    if (!info.isCompute()) {
      if (sends(row))
        visitLocal(action.stage, info.mainSlot());
      const Slot &slot = slots[row.value];
      if (slot.computeBefore && transport.hasStreams())
        visit(slot.computeBefore);
      if (slot.queueBefore && isLedElsewhere(row))
        visit(slot.queueBefore);
      return;
    }
    for (ActionId needed : index.rules().neededBy(row))
      visit(needed);
    for (uint8_t slotBit : slotsIn(info.needs))
      visitLocal(action.stage, slotBit);
    for (uint8_t slotBit : slotsIn(info.defines)) {
      for (StageId source : index.sourcesOf(action.pipe, action.stage, slotBit))
        if (program.rankOfStage(action.pipe, source) == rank)
          visitLocal(source, slotBit);
        else if (numbers.empty())
          visit(definer(source, slotBit));
        else
          visit(receiveOf(
              {action.pipe, source, action.stage, action.microbatch, slotBit},
              rank));
    }
  }

  /// The first row of `rank` that receives what `label` says.
  std::optional<ActionId> receiveOf(const Label &label, RankId rank) const {
    auto found = receives.find({label, rank});
    return found != receives.end() ? std::optional(found->second)
                                   : std::nullopt;
  }

  void writeHead() {
    put("/* ");
    for (char c : program.name())
      put(llvm::isAlnum(c) || c == '_' ? c : ' ');
    put(" under ", transport.name,
        ".\n"
        "   spin -a FILE && gcc -DSAFETY -o pan pan.c && ./pan\n"
        "   An invalid end state is a deadlock, a failed assertion a message "
        "that its\n"
        "   receiver does not expect. */\n"
        "hidden int got;\n");
    if (llvm::any_of(llvm::seq<uint32_t>(0, queues.size()),
                     [&](uint32_t queue) { return widestBatch(queue) > 1; }))
      // Two, so that nothing goes from one batch to another through them.
      put("chan nowhere = [0] of { int };\n"
          "chan nothing = [0] of { int };\n");
    for (auto [ends, sends] : channels)
      put("chan ", nameOf(ends), " = [", capacityFor(sends), "] of { int };\n");
    for (const Queue &queue : queues)
      put("short ", nameOf(queue), "_done;\n");
  }

  /// Nothing may be left in a channel once all have ended.
  void writeEnd() {
    put("\ninit {\n  (_nr_pr == 1);\n");
    for (auto [ends, sends] : channels)
      if (capacityFor(sends) != 0)
        put("  assert(empty(", nameOf(ends), "));\n");
    put("}\n");
  }

  static std::string nameOf(const Ends &ends) {
    return fmt::format("from{}to{}", ends.first.value, ends.second.value);
  }

  static std::string nameOf(const Queue &queue) {
    static constexpr llvm::StringLiteral names[] = {"", "_comm", "_peer", "_to",
                                                    "_from"};
    return fmt::format(
        "rank{}{}{}", queue.rank.value, StringRef(names[queue.part]),
        queue.part > Queue::Comm ? fmt::to_string(queue.peer.value) : "");
  }

  /// The most messages of a queue that begin together.
  size_t widestBatch(uint32_t queue) const {
    size_t widest = 0;
    for (const Part &part : parts[queue]) {
      size_t width = llvm::count_if(
          part.led, [&](ActionId row) { return isMessage(row); });
      widest = std::max(widest, width);
    }
    return widest;
  }

  void writeProcess(uint32_t queue) {
    put("\nactive proctype ", nameOf(queues[queue]), "() {\n");
    if (size_t widest = widestBatch(queue); widest > 1)
      for (size_t member = 0; member != widest; ++member)
        put("  chan open", member, ";\n");
    for (const Part &part : parts[queue]) {
      bool isHeld = part.led.empty();
      put("  /*");
      for (ActionId row : isHeld ? part.held : part.led) {
        put(' ');
        writer.cell(program, row);
      }
      put(" */\n");
      if (isHeld)
        writeHeld(part.held.front());
      else
        writePart(queues[queue].rank, part.led);
    }
    put("  skip\n}\n");
  }

  void writePart(RankId rank, ArrayRef<ActionId> rows) {
    SmallVector<ActionId, 8> members;
    llvm::copy_if(rows, std::back_inserter(members),
                  [&](ActionId row) { return isMessage(row); });
    bool isAwaited =
        llvm::any_of(rows, [&](ActionId row) { return awaited[row.value]; });
    Waits waits = waitsOf(rank, rows);
    if (waits && waits->empty() && members.empty() && !isAwaited)
      return;
    put("  atomic {");
    writeWaits(waits);
    if (members.size() == 1)
      put(' ', nameOf(endsOf(rank, members.front())),
          transfer(members.front()));
    else if (!members.empty())
      writeBatch(rank, members);
    const Slot &slot = slots[rows.front().value];
    if (isAwaited)
      put(' ', nameOf(queues[slot.leader]), "_done = ", slot.count, ';');
    put(" }\n");
  }

  /// The queue of a row that another process runs waits for it.
  void writeHeld(ActionId row) {
    const Slot &slot = slots[row.value];
    put("  atomic {");
    writeWaits({{{slot.leader, slot.count}}});
    put(" }\n");
  }

  Waits waitsOf(RankId rank, ArrayRef<ActionId> rows) const {
    Waits waits(std::in_place);
    for (ActionId row : rows)
      forEachWait(rank, row, [&](std::optional<ActionId> on) {
        if (!on)
          waits.reset();
        if (!waits || hasEndedBefore(*on, row))
          return;
        const Slot &slot = slots[on->value];
        uint32_t &count = (*waits)[slot.leader];
        count = std::max(count, slot.count);
      });
    return waits;
  }

  /// `(rank0_comm_done >= 2 && rank0_done >= 1);`
  void writeWaits(const Waits &waits) {
    if (!waits)
      return put(" false;");
    StringRef before = " (";
    for (auto [queue, count] : *waits)
      put(std::exchange(before, " && "), nameOf(queues[queue]),
          "_done >= ", count);
    if (!waits->empty())
      put(");");
  }

  /// What stands after the channel: `!17;`, `?got; assert(got == 17);`.
  std::string transfer(ActionId row) const {
    return fmt::format(
        fmt::runtime(sends(row) ? "!{};" : "?got; assert(got == {});"),
        numbers.at(labelOf(row)));
  }

  /// Messages that begin together and end in any order, but in theirs where
  /// they share a channel.
  void writeBatch(RankId rank, ArrayRef<ActionId> rows) {
    auto sameChannel = [&](ActionId a) {
      return [&, a](ActionId b) {
        return sends(a) == sends(b) && endsOf(rank, a) == endsOf(rank, b);
      };
    };
    auto closed = [&](ActionId row) {
      return sends(row) ? "nowhere" : "nothing";
    };
    auto open = [&](size_t member, bool opens) {
      ActionId row = rows[member];
      put(" open", member, " = ",
          opens ? nameOf(endsOf(rank, row)) : closed(row), ';');
    };
    for (auto [i, row] : llvm::enumerate(rows))
      open(i, llvm::none_of(rows.take_front(i), sameChannel(row)));
    put("\n    do\n");
    for (auto [i, row] : llvm::enumerate(rows)) {
      put("    :: open", i, transfer(row));
      open(i, false);
      auto next = llvm::find_if(rows.drop_front(i + 1), sameChannel(row));
      if (next != rows.end())
        open(next - rows.begin(), true);
      put('\n');
    }
    put("    ::");
    for (auto [i, row] : llvm::enumerate(rows))
      put(i == 0 ? " (open" : " && open", i, " == ", closed(row));
    put("); break\n    od;");
  }

  template <class... Parts> void put(const Parts &...parts) {
    writer.put(parts...);
  }
};

} // namespace

void ppcc::emitPromela(const Program &program, raw_ostream &out,
                       EmitContext &context) {
  size_t errorsBefore = context.diags.errorCount();
  auto refuse = [&](size_t count, StringRef what, size_t limit) {
    context.diags.report<diag::ModelTooLarge>(Location(program.name()), count,
                                              what, limit);
  };
  if (program.size() > maxActions)
    return refuse(program.size(), "actions", maxActions);
  for (ActionId row : program.rows())
    if (const KindInfo &info = program.kindOf(row);
        info.isAsync() || info.isCollective())
      return context.diags.refuse<diag::SpinNoLane>(
          locationOf(program, row, context.sources), cell(program, row));
  Model model{program, context.options.transport, out};
  model.build();
  model.checkLimits(
      [&](size_t count, StringRef what) { refuse(count, what, maxPerByte); });
  if (context.diags.errorCount() != errorsBefore)
    return;
  model.write();
}
