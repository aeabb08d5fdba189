#include "Figures.h"

#include "Fit.h"
#include "Memory.h"
#include "ppcc/Analysis/Analyses.h"
#include "ppcc/Analysis/MemoryCurve.h"

using namespace ppcc;
using family::Family;
using proof::Affine;

/// What stands between two turns of a window on the way of times that leads
/// to the end of a run.
static std::vector<std::string> limitOf(const proof::Template &program,
                                        const Program &second,
                                        const Simulation &run) {
  std::vector<Origin> origins = originsOf(program, 2);
  std::vector<ActionId> path = criticalPath(run);
  std::map<std::pair<uint32_t, uint32_t>, size_t> seen;
  for (size_t i = 0; i != path.size(); ++i) {
    const Origin &origin = origins[path[i].value];
    if (program.ranks[origin.rank][origin.row].window == proof::noWindow)
      continue;
    auto [known, isNew] = seen.try_emplace({origin.rank, origin.row}, i);
    if (isNew)
      continue;
    std::vector<std::string> limit;
    for (size_t k = known->second; k != i; ++k) {
      Action action = second[path[k]];
      limit.push_back(fmt::format("rank {} {}{}", second.rankOf(path[k]).value,
                                  action.stage.value,
                                  second.kindOf(action).letters));
    }
    for (size_t period = 1; period != limit.size(); ++period)
      if (limit.size() % period == 0 &&
          std::equal(limit.begin() + period, limit.end(), limit.begin())) {
        limit.resize(period);
        break;
      }
    return limit;
  }
  return {};
}

Figures ppcc::figuresOf(const Family &family, const proof::Template &program,
                        const std::vector<std::vector<Time>> &durations,
                        const Program &second, const Simulation *run) {
  Affine work, messages, bytes;
  bool isTold = true;
  for (uint32_t rank = 0; rank != program.ranks.size(); ++rank)
    for (auto [i, row] : llvm::enumerate(program.ranks[rank])) {
      Affine turns{1, row.window != proof::noWindow, 0};
      if (program.head->kinds[row.kind].isSend()) {
        messages = messages + turns;
        auto size = bytesOf(second, row.pipe, row.stage, row.peer);
        isTold &= size.has_value();
        bytes = bytes + size.value_or(0) * turns;
      } else if (program.head->kinds[row.kind].occupiesRank() && !row.joined)
        work = work + durations[rank][i] * turns;
    }
  Figures figures{std::nullopt,
                  formula(family, work, cost::unit),
                  {},
                  {},
                  formula(family, messages, 1),
                  {},
                  run ? limitOf(program, second, *run)
                      : std::vector<std::string>()};
  if (isTold)
    figures.bytes = formula(family, bytes, amount::unit);
  auto largest = [&](const proof::Holdings &holdings, auto atRest,
                     int64_t unit) -> std::optional<Formula> {
    std::vector<Affine> peaks;
    for (uint32_t rank = 0; rank != program.ranks.size(); ++rank)
      for (Affine peak : proof::peaksOf(program.ranks[rank], holdings[rank]))
        peaks.push_back(peak + atRest(RankId(rank)));
    auto peak = proof::largestOf(peaks, family.last);
    return peak ? std::optional(formula(family, *peak, unit)) : std::nullopt;
  };
  figures.activations = largest(
      proof::activationsOf(program), [](RankId) { return int64_t(0); }, 1);
  if (auto holdings = holdingsOf(program, second)) {
    MemoryModel model(second);
    figures.memory = largest(
        *holdings,
        [&](RankId rank) {
          return static_cast<int64_t>(
              std::min<decimal::Sum>(model.staticOf(rank), 4 * amount::max));
        },
        amount::unit);
  }
  return figures;
}

Figures ppcc::figuresOf(int64_t m, const Program &program) {
  proof::Template one = templateOf(program, program.head());
  return figuresOf({0, m, 1, 0}, one,
                   durationsOf(one, program, Durations(program)), program,
                   nullptr);
}
