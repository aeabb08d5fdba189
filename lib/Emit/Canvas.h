// What figures are drawn on: a format of vector graphics.
#pragma once

#include "Picture.h"

namespace ppcc {

/// A length in hundredths of a pixel: exact sums, and the same text everywhere.
using Px = int64_t;
constexpr Px px(int64_t pixels) { return pixels * 100; }

struct Point {
  Px x, y;
};
struct Area {
  Px x, y, width, height;
};

struct Line {
  Point from, to;
};
/// Those of a tile of 6 by 6 pixels.
ArrayRef<Line> hatchLines(Hatch hatch);

/// What has a colour of its own beside the boxes, by day and on dark pages.
enum class ColorRole : uint8_t {
#define THEME_COLOR(Name, Day, Dark) Name,
#include "Theme.def"
#undef THEME_COLOR
};
struct ThemeColor {
  StringRef name;
  Color light, dark;
};
inline constexpr ThemeColor themeColors[] = {
#define THEME_COLOR(Name, Day, Dark) {#Name, Day, Dark},
#include "Theme.def"
#undef THEME_COLOR
};
inline const ThemeColor &styleOf(ColorRole ink) {
  return themeColors[size_t(ink)];
}

/// A colour with lines or dots over it.
struct Fill {
  Color color;
  Hatch hatch;
};

enum class Anchor : uint8_t { Begin, Middle, End };

/// How lines are drawn; an arrow is one, thinner, with its head at the end.
enum class Stroke : uint8_t { Solid, Dashed, Arrow };

/// What a figure is before anything is drawn.
struct Sheet {
  Px width, height, fontSize;
  std::string title;
  std::vector<Fill> fills;
};

/// Draws what comes later over what came before.
class Canvas {
public:
  virtual ~Canvas() = default;
  virtual void begin(const Sheet &sheet) = 0;
  virtual void end() = 0;
  /// With a thin border; `fill` is the number of one of the sheet.
  virtual void box(Area area, size_t fill) = 0;
  virtual void area(Area area, ColorRole ink) = 0;
  virtual void lines(ArrayRef<Line> lines, ColorRole ink,
                     Stroke stroke = Stroke::Solid) = 0;
  /// The area below a curve, and the curve.
  virtual void curve(ArrayRef<Point> points, Px bottom, ColorRole ink) = 0;
  virtual void text(Point at, StringRef content, Anchor anchor, ColorRole ink,
                    Px size) = 0;
};

std::unique_ptr<Canvas> makeSvg(raw_ostream &out);
std::unique_ptr<Canvas> makePdf(raw_ostream &out);

} // namespace ppcc
