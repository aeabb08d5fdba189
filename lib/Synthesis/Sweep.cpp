// Memory against time.
#include "ppcc/Synthesis/Sweep.h"
#include "ppcc/Basic/Diagnostics/Synthesis.h"

using namespace ppcc;

/// Marks the point that is farthest below the line from the first to the last.
static void markKnee(MutableArrayRef<SweepPoint> points) {
  points = points.drop_while([](const SweepPoint &one) { return !one.fits; });
  if (points.size() < 3)
    return;
  const SweepPoint &first = points.front(), &last = points.back();
  SweepPoint *knee = nullptr;
  decimal::Sum largest = 0;
  for (SweepPoint &point : points) {
    decimal::Sum below =
        decimal::Sum(first.value - point.value) * (last.limit - first.limit) -
        decimal::Sum(first.value - last.value) * (point.limit - first.limit);
    if (below > largest) {
      largest = below;
      knee = &point;
    }
  }
  if (knee)
    knee->isKnee = true;
}

std::optional<std::vector<SweepPoint>>
ppcc::sweepLimits(const SynthesisRequest &request, ArrayRef<Amount> limits,
                  Session &session, function_ref<void(Amount)> note) {
  std::vector<SweepPoint> points;
  std::optional<SweepPoint> best;
  SynthesisRequest userRequest = request;
  for (Amount limit : limits) {
    note(limit);
    Session own(&session.sources.fileSystem());
    userRequest.request.costs.settings = request.request.costs.settings;
    userRequest.request.costs.settings.push_back("memory.limit=" +
                                                 amount::format(limit));
    auto found = synthesize(userRequest, own);
    bool isTooSmall =
        !found && llvm::all_of(own.found, [](const Diagnostic &one) {
          return one.id == diag::LimitTooSmall;
        });
    if (!found && !isTooSmall) {
      // As if it had been asked for by itself.
      synthesize(userRequest, session);
      return std::nullopt;
    }
    SweepPoint &point = points.emplace_back();
    point.limit = limit;
    if (isTooSmall)
      continue;
    point.fits = true;
    point.value = found->value;
    for (decimal::Sum memory : found->peakMemory)
      point.peakMemory = std::max(point.peakMemory, memory);
    // What fits with less memory fits with more.
    if (best && best->value < point.value) {
      point.value = best->value;
      point.peakMemory = best->peakMemory;
    } else {
      userRequest.initialOrders = {std::move(found->order)};
    }
    best = point;
    point.bound = found->bound.time;
    point.gap = gapOf(point.value, found->bound);
  }
  markKnee(points);
  return points;
}

TextTable ppcc::tableOf(ArrayRef<SweepPoint> points) {
  TextTable table({"limit", "time", "bound", "gap", "memory", ""});
  for (const SweepPoint &point : points)
    if (point.fits)
      table.add({amount::format(point.limit), cost::format(point.value),
                 cost::format(point.bound),
                 fmt::format("{:.2f} %", point.gap / 1e7),
                 amount::format(point.peakMemory),
                 point.isKnee        ? "knee"
                 : point.isOptimal() ? "optimal"
                                     : ""});
    else
      table.add({amount::format(point.limit), "", "", "", "", "too small"});
  return table;
}
