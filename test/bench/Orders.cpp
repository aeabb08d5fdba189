// Compares the orders of inject-comm: the makespan with one stream a rank over
// the bound by data dependences alone, for the schedules of the library. With
// --details also for each schedule by itself; with --prefetch=N when no more
// receives of an edge are posted ahead.
#include "ppcc/Analysis/Run/Simulation.h"
#include "ppcc/Compiler/Compiler.h"
#include "ppcc/Compiler/ScheduleLibrary.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Path.h"

#include <array>
#include <cmath>
#include <map>

using namespace ppcc;

namespace {

/// The costs of a run.
struct Costs {
  const char *name;
  double forward, inputGrad, weightGrad, latency;
  bool uneven = false; ///< Every third stage takes half as long again.
};

/// Costs to plan with and costs to run with.
struct Scenario {
  const char *name;
  Costs plan, run;
};

constexpr Costs even{"", 1, 1, 1, 0.05}, light{"", 1, 1.2, 0.8, 0.1},
    heavy{"", 1, 1, 1, 0.3}, measured{"", 1, 1.3, 0.9, 0.1},
    other{"", 1, 1.5, 1.1, 0.2}, skewed{"", 1, 2, 0.5, 0.1},
    uneven{"", 1, 1, 1, 0.05, true}, unevenHeavy{"", 1, 1.2, 0.8, 0.2, true};
constexpr Scenario scenarios[] = {
    {"1 1 1 0.05", even, even},
    {"1 1.2 0.8 0.1", light, light},
    {"1 1 1 0.3", heavy, heavy},
    {"1 1.3 0.9 0.1", measured, measured},
    {"1 2 0.5 0.1", skewed, skewed},
    {"uneven 1 1 1 0.05", uneven, uneven},
    {"uneven 1 1.2 0.8 0.2", unevenHeavy, unevenHeavy},
    {"1 1 1 0.05, run with 1 1.5 1.1 0.2", even, other},
    {"1 1 1 0.05, run with 1 1 1 0.3", even, heavy},
    {"1 1 1 0.05, run with 1 2 0.5 0.1", even, skewed},
    {"1 1 1 0.05, run with uneven 1 1.2 0.8 0.2", even, unevenHeavy},
};

Time timeOf(double value) { return *fromDouble(value, cost::scale); }

CostModel modelOf(const Costs &costs, const Program &program) {
  CostModel model;
  auto add = [&](uint8_t slotBit, double value) {
    KindId kind = *program.kinds().find(KindClass::Compute, slotBit);
    if (!costs.uneven) {
      model.add(Cost::Action, kind, timeOf(value));
      return;
    }
    for (auto [i, pipe] : llvm::enumerate(program.pipes())) {
      CostSetting setting{Cost::Action, kind, {}, PipeId(i), {}};
      for (uint32_t stage = 0; stage != pipe.numStages(); ++stage)
        setting.values.push_back(timeOf(stage % 3 == 1 ? 1.5 * value : value));
      model.settings.push_back(std::move(setting));
    }
  };
  add(slot::Output, costs.forward);
  add(slot::InputGrad, costs.inputGrad);
  add(slot::WeightGrad, costs.weightGrad);
  model.add(Cost::Latency, timeOf(costs.latency));
  return model;
}

/// What the ratios of one order come to.
struct Summary {
  double sum = 0, max = 0;
  size_t count = 0, hangs = 0;

  void add(std::optional<double> ratio) {
    hangs += !ratio;
    if (!ratio)
      return;
    sum += *ratio;
    max = std::max(max, *ratio);
    ++count;
  }

  std::string text() const {
    if (count == 0)
      return fmt::format("{:>28}", "hangs");
    std::string text = fmt::format("{:6.4f}, {:6.4f}", sum / count, max);
    if (hangs)
      text += fmt::format(", {} hang", hangs);
    return fmt::format("{:>28}", text);
  }
};

class Comparison {
public:
  Comparison(bool details, std::optional<uint32_t> prefetch)
      : details(details), prefetch(prefetch),
        session(llvm::vfs::getRealFileSystem()) {}

  void addSchedules() {
    for (const LibraryFile &file : scheduleLibrary()) {
      Request request;
      request.input = file.name.str();
      request.until = Request::StopAfter::Checked;
      Compiled checked = compile(request, session);
      if (!checked) // It has no schedule.
        continue;
      bool hasV = llvm::any_of(checked.params, [](const ParameterText &param) {
        return param.name == "V";
      });
      for (int P : {4, 8, 16})
        for (int V : hasV ? std::vector{2, 4} : std::vector{0})
          for (int factor : {2, 4, 8})
            addCase(request, P, V, factor * P);
    }
  }

  void print() {
    fmt::print(
        "makespan under `stream` over the bound by data dependences "
        "alone: mean, max of {} programs\n"
        "(costs of F, I, W and a message; planned and run with the same, "
        "unless it says otherwise)\n\n{:44}",
        cases.size(), "");
    for (llvm::StringRef order : orders)
      fmt::print("{:>28}", order);
    fmt::print("  worse than sweep\n");
    for (const Scenario &scenario : scenarios)
      printScenario(scenario);
  }

private:
  static constexpr llvm::StringRef orders[] = {"ready-time", "sweep", "late"};

  struct Case {
    std::string name;
    Program program;
  };

  void addCase(Request request, int P, int V, int M) {
    std::string name = llvm::sys::path::stem(request.input).str();
    auto give = [&](const char *param, int value) {
      request.params.push_back({param, std::to_string(value)});
      name += fmt::format(" {}={}", param, value);
    };
    give("P", P);
    give("M", M);
    if (V != 0)
      give("V", V);
    request.until = Request::StopAfter::Expanded;
    Compiled compiled = compile(request, session);
    if (compiled) // Not every schedule takes every size.
      cases.push_back({name, std::move(compiled.program)});
  }

  /// Nothing when it never ends.
  std::optional<double> ratio(const Case &c, const Scenario &scenario,
                              llvm::StringRef order) {
    Program program = c.program;
    program.editHead().costs = modelOf(scenario.plan, program);
    program = *injectComm(program, {*findCommOrder(order), {}, prefetch},
                          session.diags, session.sources);
    program.editHead().costs = modelOf(scenario.run, program);
    ProgramIndex index(program);
    Durations durations(program);
    auto run = simulate(program, index, MessageIndex(program, index), durations,
                        *findTransport("stream"));
    if (!run)
      return std::nullopt;
    return double(run->makespan) /
           double(simulate(program, index, durations)->makespan);
  }

  void printScenario(const Scenario &scenario) {
    using Row = std::array<Summary, std::size(orders)>;
    Row all;
    std::map<std::string, Row> bySchedule;
    size_t worse = 0;
    std::string worst;
    for (const Case &c : cases) {
      double ratios[std::size(orders)] = {};
      for (auto [i, order] : llvm::enumerate(orders)) {
        auto r = ratio(c, scenario, order);
        all[i].add(r);
        bySchedule[c.name.substr(0, c.name.find(' '))][i].add(r);
        ratios[i] = r.value_or(HUGE_VAL);
      }
      if (ratios[0] <= ratios[1])
        continue;
      ++worse;
      worst += fmt::format("    {}: {:.4f} against {:.4f}\n", c.name, ratios[0],
                           ratios[1]);
    }
    printRow(scenario.name, all);
    fmt::print("  {}\n", worse);
    if (!details)
      return;
    for (const auto &[name, row] : bySchedule) {
      printRow("  " + name, row);
      fmt::print("\n");
    }
    fmt::print("{}", worst);
  }

  static void printRow(const std::string &name,
                       llvm::ArrayRef<Summary> summaries) {
    fmt::print("{:44}", name);
    for (const Summary &summary : summaries)
      fmt::print("{}", summary.text());
  }

  bool details;
  std::optional<uint32_t> prefetch;
  Session session;
  std::vector<Case> cases;
};

} // namespace

int main(int argc, char **argv) {
  bool details = false;
  std::optional<uint32_t> prefetch;
  for (llvm::StringRef arg : llvm::ArrayRef(argv, argc).drop_front()) {
    uint32_t bound = 0;
    if (arg == "--details") {
      details = true;
    } else if (arg.consume_front("--prefetch=") &&
               !arg.getAsInteger(10, bound) && bound != 0) {
      prefetch = bound;
    } else {
      fmt::print(stderr, "usage: ppcc-orders [--details] [--prefetch=N]\n");
      return 2;
    }
  }
  Comparison comparison(details, prefetch);
  comparison.addSchedules();
  comparison.print();
}
