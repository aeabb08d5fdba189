// Memory against time.
#include "ppcc/Synthesis/Sweep.h"
#include "ppcc/Basic/Diagnostics/Synthesis.h"

using namespace ppcc;

/// Marks the point that is farthest below the line from the first to the last.
static void markKnee(llvm::MutableArrayRef<SweepPoint> points) {
  points = points.drop_while([](const SweepPoint &one) { return !one.fits; });
  if (points.size() < 3)
    return;
  const SweepPoint &first = points.front(), &last = points.back();
  SweepPoint *knee = nullptr;
  decimal::Sum most = 0;
  for (SweepPoint &point : points) {
    decimal::Sum below =
        decimal::Sum(first.value - point.value) * (last.limit - first.limit) -
        decimal::Sum(first.value - last.value) * (point.limit - first.limit);
    if (below > most) {
      most = below;
      knee = &point;
    }
  }
  if (knee)
    knee->isKnee = true;
}

std::optional<std::vector<SweepPoint>>
ppcc::sweepLimits(const SynthesisRequest &request,
                  llvm::ArrayRef<Amount> limits, Session &session,
                  llvm::function_ref<void(Amount)> note) {
  std::vector<SweepPoint> points;
  SynthesisRequest asked = request;
  for (Amount limit : limits) {
    note(limit);
    Session own(&session.sources.fileSystem());
    asked.request.costs.settings = request.request.costs.settings;
    asked.request.costs.settings.push_back("memory.limit=" +
                                           amount::format(limit));
    auto found = synthesize(asked, own);
    bool isTooSmall =
        !found && llvm::all_of(own.found, [](const Diagnostic &one) {
          return one.id == diag::LimitTooSmall;
        });
    if (!found && !isTooSmall) {
      // As if it had been asked for by itself.
      synthesize(asked, session);
      return std::nullopt;
    }
    SweepPoint &point = points.emplace_back();
    point.limit = limit;
    if (isTooSmall)
      continue;
    point.fits = true;
    point.value = found->value;
    point.bound = found->bound.time;
    point.gap = gapOf(found->value, found->bound);
    for (decimal::Sum memory : found->peakMemory)
      point.peakMemory = std::max(point.peakMemory, memory);
    asked.known = {std::move(found->order)};
  }
  markKnee(points);
  return points;
}

TextTable ppcc::tableOf(llvm::ArrayRef<SweepPoint> points) {
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

void ppcc::drawSweep(llvm::ArrayRef<SweepPoint> points,
                     llvm::raw_ostream &out) {
  constexpr double width = 640, height = 400, left = 70, right = 20, top = 20,
                   bottom = 50;
  std::vector<SweepPoint> shown;
  for (const SweepPoint &point : points)
    if (point.fits)
      shown.push_back(point);
  Time low = 0, high = 1;
  Amount first = 0, last = 1;
  if (!shown.empty()) {
    low = shown.front().bound;
    first = shown.front().limit;
    last = std::max(shown.back().limit, first + 1);
    for (const SweepPoint &point : shown) {
      low = std::min(low, point.bound);
      high = std::max(high, point.value);
    }
  }
  high = std::max(high, low + 1);
  auto x = [&](Amount limit) {
    return left + (width - left - right) * (limit - first) / double(last - first);
  };
  auto y = [&](Time time) {
    return height - bottom -
           (height - top - bottom) * (time - low) / double(high - low);
  };
  auto text = [&](double atX, double atY, llvm::StringRef anchor,
                  const std::string &content) {
    out << fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}"
                       "</text>\n",
                       atX, atY, anchor, content);
  };
  auto line = [&](llvm::StringRef style, Time SweepPoint::*what) {
    out << "<polyline fill=\"none\" " << style << " points=\"";
    for (const SweepPoint &point : shown)
      out << fmt::format("{:.1f},{:.1f} ", x(point.limit), y(point.*what));
    out << "\"/>\n";
  };
  out << fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" "
                     "height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
                     "font-family=\"sans-serif\" font-size=\"12\">\n"
                     "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
                     width, height);
  line("stroke=\"#888\" stroke-dasharray=\"4 3\"", &SweepPoint::bound);
  line("stroke=\"#2563eb\" stroke-width=\"2\"", &SweepPoint::value);
  for (const SweepPoint &point : shown) {
    out << fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" "
                       "fill=\"{}\"/>\n",
                       x(point.limit), y(point.value), point.isKnee ? 6 : 3,
                       point.isKnee ? "#dc2626" : "#2563eb");
    if (point.isKnee)
      text(x(point.limit) + 8, y(point.value) - 8, "start",
           fmt::format("knee: {} at {}", cost::format(point.value),
                       amount::format(point.limit)));
  }
  if (!shown.empty()) {
    text(x(first), height - 30, "middle", amount::format(first));
    text(x(last), height - 30, "end", amount::format(shown.back().limit));
    text(left - 8, y(high) + 4, "end", cost::format(high));
    text(left - 8, y(low) + 4, "end", cost::format(low));
  }
  text(width / 2, height - 10, "middle",
       "limit of memory; time found, and its bound (dashed)");
  out << "</svg>\n";
}
