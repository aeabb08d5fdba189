// Writes a run as a trace that Perfetto and Chrome open; see docs/traces.md.
#include "Emitters.h"
#include "Picture.h"

using namespace ppcc;

namespace {

struct Trace {
  const Picture &picture;
  const Transport &transport;
  raw_ostream &out;
  const Program &program = picture.program;
  const ProgramIndex &index = picture.index;
  const Simulation &times = picture.times;
  Writer writer{out};
  DenseMap<const GraphNode *, std::string> nodePaths{};
  StringRef before = "\n"; ///< What the next event stands after.

  void emit() {
    writer.put("{\n\"displayTimeUnit\": \"ms\",\n\"otherData\": ");
    writer.object([&](JsonFields &fields) {
      fields("format", "ppcc.trace");
      fields("version", 1);
      fields("title", picture.title());
      fields("microseconds_per_unit", 1000);
    });
    writer.put(",\n\"traceEvents\": [");
    for (RankId rank : picture.ranks) {
      names(rank);
      actions(rank);
    }
    flows();
    counters();
    writer.put("\n]\n}\n");
  }

  /// Threads of a rank: one for each member of a group, those of nodes, those
  /// of its messages, those beside.
  static constexpr uint32_t firstNodeThread = 500, firstMessageThread = 1000;
  static_assert(firstNodeThread + NodeGraphs::maxLanes <= firstMessageThread);

  /// An event; `visit` writes what it has beside its place.
  template <class Visit>
  void event(StringRef phase, RankId rank, uint32_t thread, Visit visit) {
    writer.put(std::exchange(before, ",\n"));
    auto members = [&](JsonFields &fields) {
      fields("ph", phase);
      fields("pid", rank);
      fields("tid", thread);
      visit(fields);
    };
    writer.object(members, {",", ":"});
  }
  /// An event that says one thing about its place.
  template <class Value>
  void metadataEvent(StringRef phase, RankId rank, uint32_t thread,
                     std::optional<Time> at, StringRef name, StringRef key,
                     const Value &value) {
    event(phase, rank, thread, [&](JsonFields &fields) {
      if (at)
        time(fields, "ts", *at);
      fields("name", name);
      fields.object("args", [&](JsonFields &args) { args(key, value); });
    });
  }
  /// A time in microseconds: a unit is a millisecond.
  void time(JsonFields &fields, StringRef name, Time value) {
    constexpr Time microsecond = cost::unit / 1000;
    static_assert(microsecond == 1'000'000);
    fields(name, value / microsecond);
    if (Time rest = value % microsecond) {
      std::string digits = fmt::format(".{:06}", rest);
      digits.erase(digits.find_last_not_of('0') + 1);
      writer.put(digits);
    }
  }

  void names(RankId rank) {
    auto metadataEvent = [&](uint32_t thread, StringRef name, StringRef key,
                             const auto &value) {
      this->metadataEvent("M", rank, thread, std::nullopt, name, key, value);
    };
    metadataEvent(0, "process_name", "name",
                  fmt::format("rank {}", rank.value));
    metadataEvent(0, "process_sort_index", "sort_index", rank);
    std::vector<std::pair<uint32_t, std::string>> threads{{0, "compute"}};
    uint32_t members = 1;
    picture.forEachBox(rank, [&](const Box &box) {
      members = std::max<uint32_t>(members, box.rows.size());
    });
    for (uint32_t i = 1; i <= threadOfMember(members - 1); ++i)
      threads.push_back({i, fmt::format("compute, overlapped {}", i)});
    for (auto [lane, name] : llvm::enumerate(picture.lanes()))
      threads.push_back({threadOfNodes(lane), name});
    forEachMessage(
        rank, [&](ActionId row) { threads.push_back(queueOf(program[row])); });
    for (uint8_t lane : picture.asyncLanes)
      threads.push_back(threadOfLane(lane));
    llvm::sort(threads);
    threads.erase(std::unique(threads.begin(), threads.end()), threads.end());
    for (const auto &[thread, name] : threads) {
      metadataEvent(thread, "thread_name", "name", name);
      metadataEvent(thread, "thread_sort_index", "sort_index", thread);
    }
  }

  template <class Visit> void forEachMessage(RankId rank, Visit visit) const {
    for (ActionId row : program.rows(rank))
      if (!program.kindOf(row).isCompute() && program[row].hasPeer() &&
          picture.isShown(row))
        visit(row);
  }

  bool sends(const Action &message) const {
    return program.kindOf(message).isSend();
  }

  /// Members of a group begin and end together, so many can share a thread.
  static uint32_t threadOfMember(uint32_t member) {
    return std::min(member, firstNodeThread - 1);
  }
  static uint32_t threadOfNodes(uint32_t lane) {
    return firstNodeThread + lane;
  }
  /// The queues of the transport as threads, with their names. Where all share
  /// one with the compute actions, messages still have a thread of their own to
  /// look at.
  std::pair<uint32_t, std::string> queueOf(const Action &message) const {
    uint32_t peer = program.peerRank(message).value;
    switch (transport.layout) {
    case QueueLayout::One:
    case QueueLayout::Stream:
      return {firstMessageThread, "communication"};
    case QueueLayout::StreamPerPeer:
      return {firstMessageThread + peer,
              fmt::format("communication with rank {}", peer)};
    case QueueLayout::StreamPerEdge:
      return {firstMessageThread + 2 * peer + !sends(message),
              fmt::format("{} rank {}",
                          sends(message) ? "sends to" : "receives from", peer)};
    }
    llvm_unreachable("all layouts are above");
  }
  uint32_t threadOf(const Action &message) const {
    return queueOf(message).first;
  }
  /// The thread of a lane beside the compute actions. Where messages have one
  /// queue, their lane is in it.
  std::pair<uint32_t, std::string> threadOfLane(uint8_t lane) const {
    bool isOfMessages = transport.layout == QueueLayout::One ||
                        transport.layout == QueueLayout::Stream;
    if (isOfMessages && lane == lane::Comm)
      return {firstMessageThread, "communication"};
    return {firstMessageThread + 2 * program.numRanks() + lane,
            program.kinds().lanes()[lane]};
  }

  void actions(RankId rank) {
    picture.forEachBox(rank, [&](const Box &box) {
      for (auto [i, row] : llvm::enumerate(box.rows))
        action(rank, row, threadOfMember(i));
    });
    picture.forEachBox(rank, [&](const Box &box) {
      picture.forEachNode(box,
                          [&](const NodeBox &shown) { node(rank, shown); });
    });
    picture.forEachAsyncBox(rank, [&](const Box &box) {
      action(rank, box.rows.from, threadOfLane(picture.laneOf(box)).first);
    });
    forEachMessage(
        rank, [&](ActionId row) { action(rank, row, threadOf(program[row])); });
  }

  /// The event of a row, from its start to its end.
  void action(RankId rank, ActionId row, uint32_t thread) {
    Action action = program[row];
    slice(rank, thread, times.starts[row.value], times.ends[row.value], action,
          "", [&](JsonFields &args) {
            if (action.phase != PhaseId())
              args("phase", program.phases()[action.phase.value]);
            if (action.site == SiteId())
              return;
            const Site &site = program.sites()[action.site.value];
            args.key("source");
            writer.put('"');
            writer.jsonPart(program.files()[site.file].name);
            writer.put(':', site.line, ':', site.column, '"');
          });
  }

  /// The event of a node: named as in `0B3.L1.mlp`.
  void node(RankId rank, const NodeBox &box) {
    const GraphNode &node = *box.node;
    auto [path, isNew] = nodePaths.try_emplace(&node);
    if (isNew)
      path->second = "." + program.nodes().pathOf(node);
    slice(rank, threadOfNodes(node.lane), box.from, box.to, box.action,
          path->second, [&](JsonFields &args) {
            if (node.layer != GraphNode::noLayer)
              args("layer", node.layer);
            args.key("action");
            writer.put('"');
            writer.cell(program, box.row);
            writer.put('"');
          });
  }

  /// A slice, named by its action and a node of it; `more` writes what it tells
  /// beside what all slices tell.
  template <class More>
  void slice(RankId rank, uint32_t thread, Time from, Time to,
             const Action &action, StringRef node, More more) {
    event("X", rank, thread, [&](JsonFields &fields) {
      time(fields, "ts", from);
      time(fields, "dur", to - from);
      fields.key("name");
      writer.put('"');
      writer.cell(program, action);
      writer.jsonPart(node);
      writer.put('"');
      fields("cat", program.kindOf(action).mnemonic);
      fields.object("args", [&](JsonFields &args) {
        args("stage", action.stage);
        if (action.hasMicrobatch())
          args("microbatch", action.microbatch);
        if (program.pipes().size() > 1)
          args("pipe", program.pipe(action.pipe).name);
        more(args);
      });
    });
  }

  /// An arrow from each action through the message that carries its result,
  /// where that takes time, to the action that reads it.
  void flows() {
    const MessageIndex &messages = Analyses(program).messages();
    for (RankId rank : picture.ranks)
      forEachMessage(rank, [&](ActionId row) {
        Action send = program[row];
        auto message = messages.of(send);
        if (!sends(send) || !message || messages.send(*message) != row)
          return;
        uint8_t slotBit = program.kindOf(send).mainSlot();
        auto maker =
            index.definer(send.pipe, send.stage, send.microbatch, slotBit);
        auto reader =
            index.definer(send.pipe, send.peer, send.microbatch, slotBit);
        RankId peer = program.peerRank(send);
        if (!maker || !reader || !picture.indexOf(peer) ||
            !picture.isShown(*maker) || !picture.isShown(*reader))
          return;
        // A reader may begin before it needs what it reads; with the last of
        // its nodes nothing of it is left to point at.
        Time needed = picture.inputTime(*reader);
        if (needed >= times.ends[reader->value])
          return;
        uint32_t number = message->number;
        flow("s", number, *maker, startOf(*maker));
        // A receive may have waited long; its arrow comes with the send.
        for (auto end : {std::optional(row), messages.recv(*message)})
          if (end)
            if (Time at = std::max(startOf(*end), startOf(row));
                at < times.ends[end->value])
              flow("t", number, *end, at);
        flow("f", number, *reader, needed);
      });
  }

  Time startOf(ActionId row) const { return times.starts[row.value]; }

  /// Which member of its group a compute row is, as far as it has a thread.
  uint32_t memberOf(ActionId row) const {
    uint32_t member = 0;
    for (; member != threadOfMember(member + 1) && program.joined(row) &&
           program.kindOf(ActionId(row.value - 1)).isCompute();
         --row.value)
      ++member;
    return member;
  }

  void flow(StringRef phase, uint32_t number, ActionId row, Time at) {
    bool isCompute = program.kindOf(row).isCompute();
    event(phase, program.rankOf(row),
          isCompute ? threadOfMember(memberOf(row)) : threadOf(program[row]),
          [&](JsonFields &fields) {
            time(fields, "ts", at);
            fields("id", number);
            fields("name", "message");
            fields("cat", "message");
            if (phase == "f")
              fields("bp", "e");
          });
  }

  /// What each rank holds, from each change on.
  void counters() {
    MemoryCurve curve(program, times);
    for (RankId rank : picture.ranks) {
      std::optional<MemoryStep> last;
      curve.walk(rank, [&](const MemoryStep &step) {
        if (last && last->at != step.at)
          counter(rank, *last);
        last = step;
        return true;
      });
      if (last)
        counter(rank, *last);
    }
  }

  void counter(RankId rank, const MemoryStep &step) {
    event("C", rank, 0, [&](JsonFields &fields) {
      time(fields, "ts", step.at);
      fields("name", "memory");
      fields.object("args", [&](JsonFields &args) {
        args.raw("memory", amount::format(step.memory));
      });
    });
    metadataEvent("C", rank, 0, step.at, "activations", "activations",
                  step.activations);
  }
};

} // namespace

void ppcc::emitTrace(const Program &program, raw_ostream &out,
                     EmitContext &context) {
  auto picture = Picture::make(program, context);
  if (!picture)
    return;
  Trace{*picture, context.options.transport, out}.emit();
}
