// Draws times over amounts of memory.
#include "ppcc/Emit/Chart.h"
#include "Svg.h"

using namespace ppcc;

void ppcc::emitChart(ArrayRef<ChartPoint> points, StringRef title,
                     StringRef footer, raw_ostream &out) {
  constexpr Px width = px(640), height = px(400), left = px(70),
               right = width - px(70), top = px(40), bottom = height - px(60),
               size = px(12);
  Svg svg(out);
  svg.begin({width, height, size, title.str(), {}});
  svg.text({left, px(20)}, title, Anchor::Begin, ColorRole::Text, size);
  svg.text({(left + right) / 2, height - px(14)}, footer, Anchor::Middle,
           ColorRole::Text, size);
  Line axes[] = {{{left, top}, {left, bottom}},
                 {{left, bottom}, {right, bottom}}};
  svg.lines(axes, ColorRole::Line);
  if (points.empty())
    return svg.end();
  Time low = points.front().bound, high = points.front().value;
  for (const ChartPoint &point : points) {
    low = std::min(low, point.bound);
    high = std::max(high, point.value);
  }
  Amount first = points.front().at,
         last = std::max(points.back().at, first + 1);
  auto x = [&](Amount at) {
    return left + Px(decimal::Sum(right - left) * (at - first) /
                     (decimal::Sum(last) - first));
  };
  auto y = [&](Time time) {
    return bottom - Px(decimal::Sum(bottom - top) * (time - low) /
                       std::max<decimal::Sum>(decimal::Sum(high) - low, 1));
  };
  std::vector<Point> curve;
  for (const ChartPoint &point : points)
    curve.push_back({x(point.at), y(point.value)});
  svg.curve(curve, bottom, ColorRole::Memory);
  for (size_t i = 1; i < points.size(); ++i)
    svg.lines(Line{{curve[i - 1].x, y(points[i - 1].bound)},
                   {curve[i].x, y(points[i].bound)}},
              ColorRole::Line, Stroke::Dashed);
  // No number over another.
  Px free = 0;
  for (auto [point, at] : llvm::zip(points, curve)) {
    Px half = point.mark.empty() ? px(3) : px(5);
    svg.area({at.x - half, at.y - half, 2 * half, 2 * half},
             point.mark.empty() ? ColorRole::Memory : ColorRole::Limit);
    if (!point.mark.empty())
      svg.text({at.x + px(9), at.y - px(7)}, point.mark, Anchor::Begin,
               ColorRole::Text, size);
    svg.lines(Line{at.x, bottom, at.x, bottom + px(4)}, ColorRole::Line);
    if (at.x < free)
      continue;
    std::string number = amount::format(point.at);
    svg.text({at.x, bottom + px(18)}, number, Anchor::Middle, ColorRole::Text,
             size);
    free = at.x + Px(number.size() + 2) * size * 2 / 3;
  }
  for (Time time : {low, high})
    svg.text({left - px(6), y(time) + px(4)}, cost::format(time), Anchor::End,
             ColorRole::Text, size);
  svg.end();
}
