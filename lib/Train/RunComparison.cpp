#include "RunComparison.h"

#include "ppcc/Runtime/Rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

using namespace ppcc;

namespace {

/// Rounding, and nothing else, may set two runs in double precision apart. Over
/// steps it grows.
constexpr double gradientLimit = 1e-12, lossLimit = 1e-10;

/// Infinite where one of them is no number.
double difference(double a, double b) {
  double result = std::abs(a - b);
  return std::isnan(result) ? HUGE_VAL : result;
}

class RunComparer {
public:
  RunComparer(const rt::Program &program, uint32_t replicas)
      : program(program), replicas(replicas) {}

  void compareGradients(const RunResult &pipelined,
                        const RunResult &reference) {
    std::map<std::string, const Gradient *> expected;
    for (const Gradient &gradient : reference.gradients)
      expected[gradient.name] = &gradient;
    std::set<std::string> seen;
    for (const Gradient &gradient : pipelined.gradients) {
      seen.insert(gradient.name);
      auto found = expected.find(gradient.name);
      if (found == expected.end())
        say("the reference has no weight `{}`", gradient.name);
      else
        compareOne(gradient, *found->second);
    }
    for (const auto &[name, gradient] : expected)
      if (!seen.contains(name))
        say("no rank has the weight `{}`", name);
    if (seen.empty())
      say("there are no gradients");
  }

  void compareLosses(const RunResult &pipelined, const RunResult &reference,
                     uint64_t steps) {
    uint64_t microbatches = countMicrobatches(program) * replicas;
    LossCurve curves[2] = {LossCurve(microbatches), LossCurve(microbatches)};
    for (const StepLosses &losses : pipelined.losses)
      curves[0].add(losses);
    for (const StepLosses &losses : reference.losses)
      curves[1].add(losses);
    for (uint64_t step = 0; step != steps; ++step) {
      std::optional<double> a = curves[0].next(), b = curves[1].next();
      if (!a || !b)
        return say("losses of step {} are missing", step + 1);
      verdict.losses = std::max(verdict.losses, difference(*a, *b));
    }
    if (verdict.losses > lossLimit)
      say("the losses differ by {:.2g}", verdict.losses);
  }

  void comparePeaks(const RunResult &pipelined) {
    for (uint32_t rank = 0; rank != replicas * program.numRanks; ++rank) {
      auto found = pipelined.peaks.find(rank);
      uint32_t held =
          found == pipelined.peaks.end() ? 0 : found->second.activations;
      uint32_t predicted = predictedPeak(rank % program.numRanks);
      if (held != predicted)
        say("rank {} held {} activations, but its list holds {}", rank, held,
            predicted);
    }
  }

  RunComparison verdict;

private:
  template <class... Args>
  void say(fmt::format_string<Args...> text, Args &&...args) {
    verdict.wrong.push_back(fmt::format(text, std::forward<Args>(args)...));
  }

  void compareOne(const Gradient &found, const Gradient &expected) {
    if (found.values.size() != expected.values.size())
      return say("the gradient of `{}` has {} numbers, the reference {}",
                 found.name, found.values.size(), expected.values.size());
    double most = 0;
    for (size_t i = 0; i != found.values.size(); ++i)
      most = std::max(most, difference(found.values[i], expected.values[i]));
    verdict.gradients = std::max(verdict.gradients, most);
    if (most > gradientLimit)
      say("the gradient of `{}` differs by {:.2g}", found.name, most);
  }

  /// The most forwards of a list whose backward has not ended. What a group
  /// ends counts until the group has ended.
  uint32_t predictedPeak(uint32_t rank) const {
    uint32_t alive = 0, ending = 0, peak = 0;
    rt::visitFlatRows(program.ranks[rank], [&](const rt::Row &row) {
      const rt::Kind &kind = program.kinds[row.kind];
      if (!row.joined())
        alive -= std::exchange(ending, 0);
      if (kind.kindClass != rt::KindClass::Compute)
        return;
      alive += (kind.defines & rt::slot::Output) != 0;
      ending += (kind.defines & rt::slot::WeightGrad) != 0;
      peak = std::max(peak, alive);
    });
    return peak;
  }

  const rt::Program &program;
  uint32_t replicas;
};

} // namespace

uint64_t ppcc::countMicrobatches(const rt::Program &program) {
  uint64_t count = 0;
  for (const rt::Pipe &pipe : program.pipes)
    count += pipe.numMicrobatches;
  return count;
}

uint32_t ppcc::microbatchesEnd(const rt::Program &program) {
  uint32_t end = 0;
  for (const rt::Pipe &pipe : program.pipes)
    end = std::max(end, pipe.firstMicrobatch + pipe.numMicrobatches);
  return end;
}

void LossCurve::add(const StepLosses &losses) {
  first = std::min(first.value_or(losses.step), losses.step);
  for (size_t i = 0; i != losses.microbatches.size(); ++i)
    steps[losses.step][losses.microbatches[i]] = losses.values[i];
}

std::optional<double> LossCurve::next() {
  auto found = steps.find(lastStep());
  if (found == steps.end() || found->second.size() != numMicrobatches)
    return std::nullopt;
  double sum = 0;
  for (auto [microbatch, loss] : found->second)
    sum += loss;
  steps.erase(found);
  ++taken;
  return sum / double(numMicrobatches);
}

void RunResult::add(const WorkerMessage &message) {
  if (auto *step = std::get_if<StepLosses>(&message))
    losses.push_back(*step);
  else if (auto *gradient = std::get_if<Gradient>(&message))
    gradients.push_back(*gradient);
  else if (auto *peak = std::get_if<Peak>(&message))
    peaks[peak->rank] = *peak;
}

RunComparison ppcc::compare(const rt::Program &program,
                            const RunResult &pipelined,
                            const RunResult &reference, uint64_t steps,
                            uint32_t replicas) {
  RunComparer comparison(program, replicas);
  comparison.compareGradients(pipelined, reference);
  comparison.compareLosses(pipelined, reference, steps);
  comparison.comparePeaks(pipelined);
  return std::move(comparison.verdict);
}
