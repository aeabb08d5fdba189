// Draws figures as scalable vector graphics.
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
inline ArrayRef<Line> hatchLines(Hatch hatch) {
  static constexpr Line rising[] = {{{-100, 100}, {100, -100}},
                                    {{0, 600}, {600, 0}},
                                    {{500, 700}, {700, 500}}},
                        falling[] = {{{-100, 500}, {100, 700}},
                                     {{0, 0}, {600, 600}},
                                     {{500, -100}, {700, 100}}},
                        cross[] = {{{0, 600}, {600, 0}}, {{0, 0}, {600, 600}}},
                        across[] = {{{0, 150}, {600, 150}},
                                    {{0, 450}, {600, 450}}},
                        down[] = {{{150, 0}, {150, 600}},
                                  {{450, 0}, {450, 600}}},
                        grid[] = {{{0, 300}, {600, 300}},
                                  {{300, 0}, {300, 600}}};
  static const ArrayRef<Line> byHatch[] = {{},    rising, falling, {},
                                           cross, across, down,    grid};
  return byHatch[size_t(hatch)];
}

/// What has a colour of its own beside the boxes, by day and on dark pages.
enum class ColorRole : uint8_t {
#define THEME_COLOR(Name, Day, Dark) Name,
#include "Theme.def"
};
struct ThemeColor {
  StringRef name;
  Color light, dark;
};
inline constexpr ThemeColor themeColors[] = {
#define THEME_COLOR(Name, Day, Dark) {#Name, Day, Dark},
#include "Theme.def"
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
class Svg {
public:
  explicit Svg(raw_ostream &out) : writer(out) {}

  void begin(const Sheet &sheet) {
    fontSize = sheet.fontSize;
    tag("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", sheet.width,
        "\" height=\"", sheet.height, "\" viewBox=\"0 0 ", sheet.width, " ",
        sheet.height,
        "\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"",
        sheet.fontSize, "\" role=\"img\">\n<title>", escapedMarkup(sheet.title),
        "</title>\n");
    darkTheme();
    tag("<defs>\n");
    for (auto [i, fill] : llvm::enumerate(sheet.fills))
      pattern(i, fill);
    tag("<marker id=\"head\" viewBox=\"0 0 6 6\" refX=\"6\" refY=\"3\" "
        "markerWidth=\"5\" markerHeight=\"5\" orient=\"auto\">"
        "<path d=\"M0 0L6 3L0 6z\"",
        fillOf(ColorRole::Line),
        "/></marker>\n</defs>\n"
        "<rect width=\"",
        sheet.width, "\" height=\"", sheet.height, "\"",
        fillOf(ColorRole::Paper), "/>\n");
  }
  void end() {
    within("");
    writer.put("</svg>\n");
  }
  /// With a thin border; `fill` is the number of one of the sheet.
  void box(Area area, size_t fill) {
    within(" stroke=\"#333\" stroke-width=\".5\"");
    rect(area);
    tag(" fill=\"url(#k", fmt::to_string(fill), ")\"/>\n");
  }
  void area(Area area, ColorRole ink) {
    within("");
    rect(area);
    tag(fillOf(ink), "/>\n");
  }
  void lines(ArrayRef<Line> lines, ColorRole ink,
             Stroke stroke = Stroke::Solid) {
    static constexpr StringRef strokes[] = {
        " fill=\"none\" stroke-width=\"1\"",
        " fill=\"none\" stroke-dasharray=\"4 2\"",
        " stroke-width=\".7\" fill=\"none\""};
    if (lines.empty())
      return;
    within(strokes[size_t(stroke)].str() + strokeOf(ink));
    path(lines);
    tag(stroke == Stroke::Arrow ? " marker-end=\"url(#head)\"/>\n" : "/>\n");
  }
  /// The area below a curve, and the curve.
  void curve(ArrayRef<Point> points, Px bottom, ColorRole ink) {
    within(fillOf(ink) + " fill-opacity=\".2\"");
    tag("<path d=\"");
    point('M', {points.front().x, bottom});
    for (Point at : points)
      point('L', at);
    point('L', {points.back().x, bottom});
    tag("\"/>\n");
    within(" fill=\"none\"" + strokeOf(ink));
    tag("<path d=\"");
    for (char command = 'M'; Point at : points)
      point(std::exchange(command, 'L'), at);
    tag("\"/>\n");
  }
  void text(Point at, StringRef content, Anchor anchor, ColorRole ink,
            Px size) {
    constexpr StringRef anchors[] = {"", " text-anchor=\"middle\"",
                                     " text-anchor=\"end\""};
    std::string group = fillOf(ink) + anchors[size_t(anchor)].str();
    if (size != fontSize)
      group += fmt::format(" font-size=\"{:g}\"", double(size) / 100);
    within(group);
    tag("<text x=\"", at.x, "\" y=\"", at.y, "\">", escapedMarkup(content),
        "</text>\n");
  }

private:
  static std::string painted(StringRef what, ColorRole ink) {
    return fmt::format(" {}=\"#{:06x}\" class=\"{}\"", what, styleOf(ink).light,
                       styleOf(ink).name);
  }
  static std::string fillOf(ColorRole ink) { return painted("fill", ink); }
  static std::string strokeOf(ColorRole ink) { return painted("stroke", ink); }

  /// Where the page is dark, a figure is, unless it is printed.
  void darkTheme() {
    tag("<style>@media screen and (prefers-color-scheme:dark){");
    for (const ThemeColor &ink : themeColors)
      if (ink.light != ink.dark)
        tag(fmt::format(".{0}[fill^=\"#\"]{{fill:#{1:06x}}}"
                        ".{0}[stroke]{{stroke:#{1:06x}}}",
                        ink.name, ink.dark));
    tag("}</style>\n");
  }

  void pattern(size_t number, const Fill &fill) {
    tag("<pattern id=\"k", fmt::to_string(number),
        "\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">"
        "<rect width=\"6\" height=\"6\" fill=\"",
        hexOf(fill.color), "\"/>");
    if (fill.hatch == Hatch::Dots)
      tag("<circle cx=\"3\" cy=\"3\" r=\".8\" fill-opacity=\".3\"/>");
    if (auto lines = hatchLines(fill.hatch); !lines.empty()) {
      path(lines);
      tag(" stroke=\"#000\" stroke-opacity=\".25\" stroke-width=\".8\"/>");
    }
    tag("</pattern>\n");
  }

  /// What is drawn next has these attributes, in a group of all that have them.
  void within(const std::string &attributes) {
    if (attributes == group)
      return;
    if (!group.empty())
      tag("</g>\n");
    group = attributes;
    if (!group.empty())
      tag("<g", group, ">\n");
  }

  void rect(Area area) {
    tag("<rect x=\"", area.x, "\" y=\"", area.y, "\" width=\"", area.width,
        "\" height=\"", area.height, "\"");
  }
  void point(char command, Point at) {
    writer.put(command);
    tag(at.x, " ", at.y);
  }
  void path(ArrayRef<Line> lines) {
    tag("<path d=\"");
    for (const Line &line : lines) {
      point('M', line.from);
      point('L', line.to);
    }
    tag("\"");
  }

  void put(Px length) {
    if (length < 0) {
      writer.put('-');
      length = -length;
    }
    writer.put(length / 100);
    if (Px part = length % 100) {
      writer.put('.');
      writer.put(static_cast<char>('0' + part / 10));
      if (part % 10)
        writer.put(static_cast<char>('0' + part % 10));
    }
  }
  void put(StringRef text) { writer.put(text); }
  /// Writes texts and lengths one after another.
  template <class... Parts> void tag(const Parts &...parts) {
    (put(parts), ...);
  }

  Writer writer;
  std::string group;
  Px fontSize = 0;
};

} // namespace ppcc
