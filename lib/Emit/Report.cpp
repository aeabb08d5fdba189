// Writes what a program's run amounts to, for people and for programs.
#include "ppcc/Analysis/Report/Report.h"
#include "Emitters.h"
#include "Findings.h"
#include "JsonParts.h"
#include "ppcc/Analysis/Analyses.h"
#include "ppcc/Support/Printable.h"
#include "ppcc/Support/TextTable.h"

#include "llvm/Support/JSON.h"

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
  const Transport &transport;
  Report report = reportOf(program, timed);
  Findings findings = findingsOf(program, timed, report, transport);
};

struct ReportText : ReportInput {
  raw_ostream &out;

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
    if (timed.transport == "none")
      out << ", by data alone";
    else
      out << ", on " << timed.transport << " (" << transport.runtimes << ")";
    out << fmt::format(
        "\n\n"
        "makespan     {}\n"
        "bound        {} (this order by data dependences alone; the "
        "makespan is {} above it)\n"
        "resources    {} (lower bound of every order; the makespan is {} "
        "above it)\n"
        "             {}\n"
        "bubble       {} of the longest span\n"
        "             {} of the makespan\n\n",
        cost::format(report.makespan), cost::format(report.bound),
        percent(share(report.makespan - report.bound, report.bound)),
        cost::format(report.resources.time),
        percent({gapOf(report.makespan, report.resources)}),
        report.resources.why(), percent(report.bubbleRate),
        percent(report.globalBubbleRate));
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
          fmt::join(cells, " "), cost::format(steadyState->period),
          plural(steadyState->microbatches, "microbatch"));
      if (steadyState->messages != 0)
        out << ", " << cost::format(steadyState->messages) << " of it messages";
      out << '\n';
    }
    const IdleTime &idle = findings.idle;
    Time all = idle.ramp + idle.dependence + idle.messages + idle.lanes;
    StringRef before = "idle time    ";
    auto printIdle = [&](Time time, StringRef words) {
      if (time != 0)
        out << std::exchange(before, "             ") << cost::format(time)
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
            << cost::format(less) << " ("
            << percent(share(less, report.makespan)) << ")\n";
    };
    if (findings.withoutMessages)
      printGain(report.makespan - *findings.withoutMessages,
                "messages in no time: exactly ");
    printGain(report.makespan - report.bound,
              "another order of messages, or more queues: at most ");
    printGain(report.makespan - report.resources.time,
              "another order of actions (`ppcc synthesize`): at most ");
    const MemoryCost &memory = findings.memory;
    // Both are about a bound: a gain that is possible, not one that is sure.
    printGain(memory.oneMore, fmt::format("memory for one more activation ({}) "
                                          "on rank {}: lowers the bound by ",
                                          amount::format(memory.activation),
                                          memory.rank.value));
    printGain(memory.limits, "no memory limits: lowers the bound by ");
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
      const MemoryPeak &memory = figures.memory;
      std::vector<std::string> cells = {
          fmt::format("{}", rank),
          cost::format(figures.times.busy),
          cost::format(figures.times.span()),
          cost::format(figures.times.span() - figures.times.busy),
          fmt::format("{}", memory.activations),
          amount::format(memory.memory),
          cost::format(memory.at),
          memory.row ? cell(program, *memory.row) : "",
          amount::format(memory.last)};
      if (hasLimit)
        cells.push_back(amount::format(*figures.memoryLimit));
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
    out << "\ntime without work, of all ranks: " << cost::format(all) << '\n';
    static constexpr StringRef causes[] = {"", "messages",
                                           "nothing: the rank has finished",
                                           "actions on other lanes"};
    TextTable table({"time", "share", "phase", "waiting for"});
    for (auto [key, time] : ArrayRef(order).take_front(maxShown))
      table.add({cost::format(time), percent(share(time, all)),
                 program.phases()[key.phase.value], causeName(key, causes)});
    table.print(out);
    if (order.size() > maxShown)
      out << "and " << order.size() - maxShown << " more\n";
  }

  void printPath() {
    Time communication = 0;
    for (const PathSegment &segment : report.criticalPath)
      communication += segment.communication;
    out << "\ncritical path: " << cost::format(report.makespan - communication)
        << " of actions, " << cost::format(communication) << " of messages\n";
    TextTable table({"from", "to", "rank", "rows", "actions"});
    constexpr size_t maxShown = 16;
    size_t count = report.criticalPath.size();
    for (auto [i, segment] : llvm::enumerate(report.criticalPath)) {
      if (count > maxShown && i == maxShown / 2)
        table.add({"...", "", "", "",
                   fmt::format("{} more ranks", count - maxShown)});
      if (count > maxShown && i >= maxShown / 2 && i < count - maxShown / 2)
        continue;
      std::string actions = cell(program, segment.first);
      if (segment.rows > 1)
        actions += fmt::format("{}{}", segment.rows > 2 ? " ... " : " ",
                               cell(program, segment.last));
      table.add({cost::format(segment.begin), cost::format(segment.end),
                 fmt::format("{}", segment.rank.value),
                 fmt::format("{}", segment.rows), actions});
    }
    table.print(out);
  }
};

struct ReportJson : ReportInput {
  raw_ostream &out;
  llvm::json::OStream json{out, 1};

  void print() {
    json.object([&] {
      json.attribute("format", "ppcc.report");
      json.attribute("version", 1);
      json.attribute("schedule", llvm::json::fixUTF8(program.name()));
      writeParams(json, program.params());
      json.attribute("transport", timed.transport);
      json.attribute("runtimes",
                     timed.transport == "none" ? "" : transport.runtimes);
      json.attribute("actions", report.actions);
      json.attribute("messages", report.messages);
      time("makespan", report.makespan);
      time("bound", report.bound);
      time("resource_bound", report.resources.time);
      time("gap", gapOf(report.makespan, report.resources));
      json.attribute("why", report.resources.why());
      time("bubble_rate", report.bubbleRate.value);
      time("global_bubble_rate", report.globalBubbleRate.value);
      printFindings();
      objects("ranks", report.ranks,
              [&](const RankReport &rank) { printRank(rank); });
      objects("critical_path", report.criticalPath,
              [&](const PathSegment &segment) { printSegment(segment); });
    });
    json.flush();
  }

  void raw(StringRef key, const std::string &text) {
    json.attributeBegin(key);
    json.rawValue(text);
    json.attributeEnd();
  }
  /// A list of objects, of each of which `visit` writes the members.
  template <class Range, class Visit>
  void objects(StringRef key, const Range &range, Visit visit) {
    json.attributeArray(key, [&] {
      for (const auto &item : range)
        json.object([&] { visit(item); });
    });
  }
  void time(StringRef key, Time value) { raw(key, cost::format(value)); }
  void memory(StringRef key, decimal::Sum value) {
    raw(key, amount::format(value));
  }

  void printFindings() {
    if (const auto &steadyState = findings.steadyState)
      json.attributeObject("steady_state", [&] {
        json.attributeArray("actions", [&] {
          for (ActionId row : steadyState->actions)
            json.value(cell(program, row));
        });
        json.attribute("microbatches", steadyState->microbatches);
        time("time", steadyState->period);
        time("messages", steadyState->messages);
      });
    json.attributeObject("idle", [&] {
      time("ramp", findings.idle.ramp);
      time("dependence", findings.idle.dependence);
      time("messages", findings.idle.messages);
      time("lanes", findings.idle.lanes);
    });
    if (findings.withoutMessages)
      time("makespan_without_messages", *findings.withoutMessages);
    if (findings.memory.limits != 0)
      time("limits_cost", findings.memory.limits);
    if (findings.memory.oneMore != 0)
      time("one_more_activation", findings.memory.oneMore);
  }

  void printRank(const RankReport &rank) {
    json.attribute("rank", &rank - report.ranks.data());
    time("begin", rank.times.begin);
    time("end", rank.times.end);
    time("span", rank.times.span());
    time("busy", rank.times.busy);
    time("idle", rank.times.span() - rank.times.busy);
    json.attribute("actions", rank.actions);
    json.attribute("sends", rank.sends);
    json.attribute("peak_activations", rank.memory.activations);
    memory("peak_memory", rank.memory.memory);
    time("peak_at", rank.memory.at);
    if (rank.memory.row)
      json.attribute("peak_action", cell(program, *rank.memory.row));
    objects("peak_held", rank.heldAtPeak,
            [&](const HeldMemory &held) { printHeld(held); });
    memory("static_memory", rank.staticMemory);
    memory("final_memory", rank.memory.last);
    if (rank.memoryLimit)
      memory("memory_limit", *rank.memoryLimit);
    objects("bubbles", rank.bubbles, [&](const auto &bubble) {
      auto [key, length] = bubble;
      static constexpr StringRef causes[] = {"", "communication", "end",
                                             "lane"};
      json.attribute("phase",
                     llvm::json::fixUTF8(program.phases()[key.phase.value]));
      json.attribute("waits_for", causeName(key, causes));
      time("time", length);
    });
  }

  void printHeld(const HeldMemory &held) {
    json.attribute("pipe", llvm::json::fixUTF8(program.pipe(held.pipe).name));
    json.attribute("stage", held.stage.value);
    json.attribute("microbatches", held.count);
    json.attribute("first", held.first);
    json.attribute("last", held.last);
    memory("memory", held.amount);
  }

  void printSegment(const PathSegment &segment) {
    json.attribute("rank", segment.rank.value);
    time("begin", segment.begin);
    time("end", segment.end);
    time("communication", segment.communication);
    json.attribute("rows", segment.rows);
    json.attribute("first", cell(program, segment.first));
    json.attribute("last", cell(program, segment.last));
  }
};

} // namespace

/// Runs the program and prints what `Printer` makes of that.
template <class Printer>
static void emitTimed(const Program &program, raw_ostream &out,
                      EmitContext &context) {
  const Transport &transport = context.options.transport;
  if (auto *timed = Analyses(program).timedRun(transport, context.diags))
    Printer{{program, *timed, transport}, out}.print();
}

void ppcc::writeParams(llvm::json::OStream &json,
                       ArrayRef<ProgramParam> params) {
  json.attributeObject("params", [&] {
    for (const ProgramParam &param : params) {
      json.attributeBegin(llvm::json::fixUTF8(param.name));
      if (isJsonLiteral(param))
        json.rawValue(param.value);
      else
        json.value(llvm::json::fixUTF8(param.value));
      json.attributeEnd();
    }
  });
}

void ppcc::emitReport(const Program &program, raw_ostream &out,
                      EmitContext &context) {
  emitTimed<ReportText>(program, out, context);
}

void ppcc::emitReportJson(const Program &program, raw_ostream &out,
                          EmitContext &context) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  emitTimed<ReportJson>(program, stream, context);
  if (!text.empty())
    out << printableJson(text) << '\n';
}
