// Writes what a program's run amounts to, for people and for programs.
#include "Emitters.h"
#include "Findings.h"
#include "ppcc/Analysis/Analyses.h"
#include "ppcc/Support/TextTable.h"

using namespace ppcc;

namespace {

/// `27.27 %`.
std::string percent(Rate rate) {
  constexpr Time hundredth = cost::unit / 10'000;
  Time value = (rate.value + hundredth / 2) / hundredth;
  return fmt::format("{}.{:02} %", value / 100, value % 100);
}

Rate share(Time part, Time whole) {
  return {whole == 0 ? 0 : Time(__int128(part) * cost::unit / whole)};
}

std::string plural(uint64_t count, StringRef thing) {
  StringRef ending = count == 1 ? "" : thing.ends_with("ch") ? "es" : "s";
  return fmt::format("{} {}{}", count, thing, ending);
}

/// The word for a cause, of `names` where it is not a rank.
std::string causeName(const BubbleKey &key, ArrayRef<StringRef> names) {
  return key.cause == BubbleCause::Rank
             ? fmt::format("rank {}", key.awaited.value)
             : names[size_t(key.cause)].str();
}

/// What there is to tell.
struct ReportInput {
  const Program &program;
  const TimedRun &timed;
  const EmitOptions &options;
  const Transport &transport = options.transport;
  Report report = reportOf(program, timed);
  Findings findings = findingsOf(program, timed, report, transport);
};

struct ReportText {
  const ReportInput &input;
  raw_ostream &out;
  const Program &program = input.program;
  const Report &report = input.report;
  const Findings &findings = input.findings;

  const Units &units = program.units();

  void print() {
    printHead();
    printFindings();
    printRanks();
    printBubbles();
    printPath();
  }

  void printHead() {
    out << printable(program.name());
    for (const ProgramParam &param : program.params())
      out << ' ' << printable(param.name + "=" + param.value);
    out << ": " << plural(report.ranks.size(), "rank") << ", "
        << plural(report.actions, "action") << ", "
        << plural(report.messages, "message");
    const std::string &transport = input.timed.transport;
    if (transport == "none")
      out << ", by data alone";
    else
      out << ", on " << transport << " (" << input.transport.runtimes << ")";
    out << fmt::format(
        "\n\n"
        "makespan     {}{}\n"
        "bound        {} (this order by data dependences alone; the "
        "makespan is {} above it)\n"
        "resources    {} (lower bound of every order; the makespan is {} "
        "above it)\n"
        "             {}\n"
        "bubble       {} of the longest span\n"
        "             {} of the makespan\n",
        units.time(report.makespan), units.ofTime.empty() ? " units" : "",
        units.time(report.bound),
        percent(share(report.makespan - report.bound, report.bound)),
        units.time(report.resources.time),
        percent({gapOf(report.makespan, report.resources.time)}),
        report.resources.why(units), percent(report.bubbleRate),
        percent(report.globalBubbleRate));
    if (const auto &jitter = findings.jitter)
      out << fmt::format(
          "jitter       {} in the mean of {} runs, at most {} in "
          "95 % of them\n",
          units.time(jitter->mean), jitter->runs, units.time(jitter->high));
    out << '\n';
  }

  /// What limits the run, where time goes, and what would help.
  void printFindings() {
    if (const auto &steadyState = findings.steadyState) {
      std::set<uint32_t> ranks;
      std::vector<std::string> cells;
      for (ActionId row : steadyState->actions) {
        ranks.insert(program.rankOf(row).value);
        cells.push_back(cell(program, row));
      }
      constexpr size_t maxShown = 8;
      if (cells.size() > maxShown) {
        cells.erase(cells.begin() + maxShown / 2, cells.end() - maxShown / 2);
        cells[maxShown / 2 - 1] += " ...";
      }
      out << fmt::format(
          "steady state {}: {}\n             {} for {}",
          ranks.size() == 1
              ? fmt::format("rank {} is never idle", *ranks.begin())
              : fmt::format("ranks {} wait for each other",
                            fmt::join(ranks, ", ")),
          fmt::join(cells, " "), units.time(steadyState->period),
          plural(steadyState->microbatches, "microbatch"));
      if (steadyState->messages != 0)
        out << ", " << units.time(steadyState->messages) << " of it messages";
      out << '\n';
    }
    const IdleTime &idle = findings.idle;
    Time all = idle.ramp + idle.dependence + idle.messages + idle.lanes;
    StringRef before = "idle time    ";
    auto printIdle = [&](Time time, StringRef words) {
      if (time != 0)
        out << std::exchange(before, "             ") << units.time(time)
            << " (" << percent(share(time, all)) << ") " << words << '\n';
    };
    printIdle(idle.ramp,
              "ramp: before a rank's first action and after its last");
    printIdle(idle.dependence,
              "dependence: waiting for another rank to compute");
    printIdle(idle.messages, "messages: waiting for data in flight or queued");
    printIdle(idle.lanes,
              "other lanes: a transfer or a collective has not ended");
    before = "would help   ";
    auto printGain = [&](Time less, StringRef words) {
      if (less > 0)
        out << std::exchange(before, "             ") << words
            << units.time(less) << " (" << percent(share(less, report.makespan))
            << ")\n";
    };
    if (findings.withoutMessages)
      printGain(report.makespan - *findings.withoutMessages,
                "messages in no time: saves exactly ");
    printGain(report.makespan - report.bound,
              "another order of messages, or more queues: saves at most ");
    printGain(report.makespan - report.resources.time,
              "another order of actions (`ppcc synthesize`): saves at most ");
    const MemoryCost &cost = findings.memory;
    // Both are about a bound: a gain that is possible, not one that is sure.
    printGain(cost.oneMore,
              fmt::format("memory for one more activation ({}) "
                          "on rank {}: lowers the bound by ",
                          units.memory(cost.activation), cost.rank.value));
    printGain(cost.limits, "no memory limits: lowers the bound by ");
    if (const auto &order = input.options.synthesized)
      out << "synthesis    "
          << (order->makespan
                  ? fmt::format("finds {} in this memory (the makespan is {} "
                                "above it): {}, with these options\n",
                                units.time(*order->makespan),
                                percent({order->gap}), order->command)
                  : order->refusal + '\n');
    out << '\n';
  }

  void printRanks() {
    bool hasLimit = program.costs().has({Cost::MemoryLimit});
    std::vector<std::string> columns = {"rank", "busy",        "span",
                                        "idle", "activations", "memory",
                                        "at",   "action",      "at the end"};
    if (hasLimit)
      columns.push_back("limit");
    TextTable table(columns);
    for (auto [rank, figures] : llvm::enumerate(report.ranks)) {
      const MemoryPeak &peak = figures.memory;
      std::vector<std::string> cells = {
          fmt::format("{}", rank),
          units.time(figures.times.busy),
          units.time(figures.times.span()),
          units.time(figures.times.span() - figures.times.busy),
          fmt::format("{}", peak.activations),
          units.memory(peak.memory),
          units.time(peak.at),
          peak.row ? cell(program, *peak.row) : "",
          units.memory(peak.last)};
      if (hasLimit)
        cells.push_back(units.memory(*figures.memoryLimit));
      table.add(std::move(cells));
    }
    table.print(out);
  }

  /// The bubbles of all ranks together, the longest first.
  void printBubbles() {
    std::map<BubbleKey, Time> sums;
    Time all = 0;
    for (const RankReport &rank : report.ranks)
      for (auto [key, time] : rank.bubbles) {
        sums[key] += time;
        all += time;
      }
    if (sums.empty())
      return;
    std::vector<std::pair<BubbleKey, Time>> order(sums.begin(), sums.end());
    llvm::stable_sort(order, [](const auto &a, const auto &b) {
      return a.second > b.second;
    });
    constexpr size_t maxShown = 12;
    out << "\nidle time of all ranks: " << units.time(all) << '\n';
    static constexpr StringRef causes[] = {"", "messages",
                                           "nothing: the rank has finished",
                                           "actions on other lanes"};
    TextTable table({"time", "share", "phase", "waiting for"});
    for (auto [key, time] : ArrayRef(order).take_front(maxShown))
      table.add({units.time(time), percent(share(time, all)),
                 program.phases()[key.phase.value], causeName(key, causes)});
    table.print(out);
    if (order.size() > maxShown)
      out << "and " << order.size() - maxShown << " more\n";
  }

  void printPath() {
    Time communication = 0;
    for (const PathSegment &segment : report.criticalPath)
      communication += segment.communication;
    out << "\ncritical path: " << units.time(report.makespan - communication)
        << " of actions, " << units.time(communication) << " of messages\n";
    TextTable table({"from", "to", "rank", "rows", "actions"});
    constexpr size_t maxShown = 16;
    size_t count = report.criticalPath.size();
    for (auto [i, segment] : llvm::enumerate(report.criticalPath)) {
      if (count > maxShown && i == maxShown / 2)
        table.add(
            {"...", "", "", "", fmt::format("{} more rows", count - maxShown)});
      if (count > maxShown && i >= maxShown / 2 && i < count - maxShown / 2)
        continue;
      std::string actions = cell(program, segment.first);
      if (segment.rows > 1)
        actions += fmt::format("{}{}", segment.rows > 2 ? " ... " : " ",
                               cell(program, segment.last));
      table.add({units.time(segment.begin), units.time(segment.end),
                 fmt::format("{}", segment.rank.value),
                 fmt::format("{}", segment.rows), actions});
    }
    table.print(out);
  }
};

void time(JsonFields &fields, StringRef key, Time value) {
  fields.raw(key, cost::format(value));
}
void memory(JsonFields &fields, StringRef key, decimal::Sum value) {
  fields.raw(key, amount::format(value));
}

struct ReportJson {
  const ReportInput &input;
  raw_ostream &out;
  const Program &program = input.program;
  const Report &report = input.report;
  const Findings &findings = input.findings;

  void print() {
    Writer writer(out);
    writer.object([&](JsonFields &fields) { putAll(fields); }, indentedJson);
    writer.put('\n');
  }

  void putAll(JsonFields &fields) {
    const std::string &transport = input.timed.transport;
    fields("format", "ppcc.report");
    fields("version", 1);
    fields("schedule", program.name());
    fields.object("params", [&](JsonFields &params) {
      putParams(params, program.params());
    });
    fields("transport", transport);
    fields("runtimes", transport == "none" ? "" : input.transport.runtimes);
    putUnits(fields, program.units());
    fields("actions", report.actions);
    fields("messages", report.messages);
    time(fields, "makespan", report.makespan);
    time(fields, "bound", report.bound);
    time(fields, "resource_bound", report.resources.time);
    time(fields, "gap", gapOf(report.makespan, report.resources.time));
    fields("why", report.resources.why());
    if (const auto &order = input.options.synthesized)
      putSynthesized(fields, *order);
    time(fields, "bubble_rate", report.bubbleRate.value);
    time(fields, "global_bubble_rate", report.globalBubbleRate.value);
    putFindings(fields);
    fields.objects("ranks", report.ranks,
                   [&](JsonFields &ofRank, const RankReport &rank) {
                     putRank(ofRank, rank);
                   });
    fields.objects("critical_path", report.criticalPath,
                   [&](JsonFields &ofSegment, const PathSegment &segment) {
                     putSegment(ofSegment, segment);
                   });
  }

  void putFindings(JsonFields &fields) {
    if (const auto &steadyState = findings.steadyState)
      fields.object("steady_state", [&](JsonFields &steady) {
        steady.values("actions",
                      llvm::map_range(steadyState->actions, [&](ActionId row) {
                        return cell(program, row);
                      }));
        steady("microbatches", steadyState->microbatches);
        time(steady, "time", steadyState->period);
        time(steady, "messages", steadyState->messages);
      });
    fields.object("idle", [&](JsonFields &idle) {
      time(idle, "ramp", findings.idle.ramp);
      time(idle, "dependence", findings.idle.dependence);
      time(idle, "messages", findings.idle.messages);
      time(idle, "lanes", findings.idle.lanes);
    });
    if (const auto &jitter = findings.jitter) {
      time(fields, "jitter_mean", jitter->mean);
      time(fields, "jitter_p95", jitter->high);
      fields("jitter_runs", jitter->runs);
    }
    if (findings.withoutMessages)
      time(fields, "makespan_without_messages", *findings.withoutMessages);
    if (findings.memory.limits != 0)
      time(fields, "limits_cost", findings.memory.limits);
    if (findings.memory.oneMore != 0)
      time(fields, "one_more_activation", findings.memory.oneMore);
  }

  void putRank(JsonFields &fields, const RankReport &rank) {
    fields("rank", &rank - report.ranks.data());
    time(fields, "begin", rank.times.begin);
    time(fields, "end", rank.times.end);
    time(fields, "span", rank.times.span());
    time(fields, "busy", rank.times.busy);
    time(fields, "idle", rank.times.span() - rank.times.busy);
    fields("actions", rank.actions);
    fields("sends", rank.sends);
    fields("peak_activations", rank.memory.activations);
    memory(fields, "peak_memory", rank.memory.memory);
    time(fields, "peak_at", rank.memory.at);
    if (rank.memory.row)
      fields("peak_action", cell(program, *rank.memory.row));
    fields.objects("peak_held", rank.heldAtPeak,
                   [&](JsonFields &ofHeld, const HeldMemory &held) {
                     putHeld(ofHeld, held);
                   });
    memory(fields, "static_memory", rank.staticMemory);
    memory(fields, "final_memory", rank.memory.last);
    if (rank.memoryLimit)
      memory(fields, "memory_limit", *rank.memoryLimit);
    fields.objects("bubbles", rank.bubbles,
                   [&](JsonFields &ofBubble, const auto &bubble) {
                     auto [key, length] = bubble;
                     static constexpr StringRef causes[] = {"", "communication",
                                                            "end", "lane"};
                     ofBubble("phase", program.phases()[key.phase.value]);
                     ofBubble("waits_for", causeName(key, causes));
                     time(ofBubble, "time", length);
                   });
  }

  void putHeld(JsonFields &fields, const HeldMemory &held) {
    fields("pipe", program.pipe(held.pipe).name);
    fields("stage", held.stage);
    fields("microbatches", held.count);
    fields("first", held.first);
    fields("last", held.last);
    memory(fields, "memory", held.amount);
  }

  void putSegment(JsonFields &fields, const PathSegment &segment) {
    fields("rank", segment.rank);
    time(fields, "begin", segment.begin);
    time(fields, "end", segment.end);
    time(fields, "communication", segment.communication);
    fields("rows", segment.rows);
    fields("first", cell(program, segment.first));
    fields("last", cell(program, segment.last));
  }
};

} // namespace

/// Runs the program and prints what `Printer` makes of that.
template <class Printer>
static void emitTimed(const Program &program, raw_ostream &out,
                      EmitContext &context) {
  const EmitOptions &options = context.options;
  if (auto *timed =
          Analyses(program).timedRun(options.transport, context.diags))
    Printer{ReportInput{program, *timed, options}, out}.print();
}

void ppcc::emitReport(const Program &program, raw_ostream &out,
                      EmitContext &context) {
  emitTimed<ReportText>(program, out, context);
}

void ppcc::emitReportJson(const Program &program, raw_ostream &out,
                          EmitContext &context) {
  emitTimed<ReportJson>(program, out, context);
}
