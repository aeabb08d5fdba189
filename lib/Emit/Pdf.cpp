// Writes figures as PDF 1.4: a page as large as the figure, so that papers
// can include it.
#include "Canvas.h"

#include "llvm/Support/ConvertUTF.h"

using namespace ppcc;

/// Of Helvetica's characters from the blank to the tilde, in thousandths of the
/// size of the font; from Adobe's metrics of the standard fonts.
static constexpr uint16_t helvetica[] = {
    278, 278, 355, 556, 556,  889, 667, 191, 333, 333, 389, 584, 278, 333,
    278, 278, 556, 556, 556,  556, 556, 556, 556, 556, 556, 556, 278, 278,
    584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278,
    500, 667, 556, 833, 722,  778, 667, 778, 722, 667, 611, 722, 667, 944,
    667, 667, 611, 278, 278,  278, 469, 556, 333, 556, 556, 500, 556, 556,
    278, 556, 556, 222, 222,  500, 222, 833, 556, 556, 556, 556, 333, 500,
    278, 556, 500, 722, 500,  500, 500, 334, 260, 334, 584};

/// The characters that Latin 1 has; the font has no others.
static std::string latin1(StringRef text) {
  std::string result;
  const auto *at = reinterpret_cast<const llvm::UTF8 *>(text.bytes_begin()),
             *end = reinterpret_cast<const llvm::UTF8 *>(text.bytes_end());
  while (at != end) {
    llvm::UTF32 point = '?', *to = &point;
    if (llvm::ConvertUTF8toUTF32(&at, end, &to, to + 1,
                                 llvm::lenientConversion) ==
            llvm::sourceExhausted &&
        to == &point)
      break;
    bool isKnown =
        (point >= ' ' && point <= '~') || (point >= 0xA0 && point <= 0xFF);
    result += isKnown ? char(point) : '?';
  }
  return result;
}

static std::string quoted(StringRef latin) {
  std::string result = "(";
  for (char c : latin) {
    if (StringRef("()\\").contains(c))
      result += '\\';
    result += c;
  }
  return result + ")";
}

namespace {

class Pdf final : public Canvas {
public:
  explicit Pdf(raw_ostream &out) : out(out) {}

  void begin(const Sheet &from) override {
    sheet = from;
    // From pixels, of which 96 make an inch, and down from the top.
    put(".75 0 0 -.75 0 {} cm\n", points(sheet.height));
    area({0, 0, sheet.width, sheet.height}, ColorRole::Paper);
  }

  void box(Area area, size_t fill) override {
    put("/Pattern cs /k{} scn .2 G .5 w {} B\n", fill, rect(area));
  }
  void area(Area area, ColorRole ink) override {
    put("{} rg {} f\n", colour(ink), rect(area));
  }
  void lines(ArrayRef<Line> lines, ColorRole ink, Stroke stroke) override {
    if (lines.empty())
      return;
    if (stroke == Stroke::Arrow)
      return arrow(lines.front(), ink);
    bool isDashed = stroke == Stroke::Dashed;
    put("{} RG 1 w{}", colour(ink), isDashed ? " [4 2] 0 d" : "");
    for (const Line &line : lines)
      put(" {}", path(line));
    put(" S{}\n", isDashed ? " [] 0 d" : "");
  }
  void curve(ArrayRef<Point> points, Px bottom, ColorRole ink) override {
    std::string path;
    for (Point point : points)
      path += at(point) + " l ";
    put("q /thin gs {} rg {} m {} {} l f Q\n", colour(ink),
        at({points.front().x, bottom}), path, at({points.back().x, bottom}));
    put("{} RG 1 w {} m {}S\n", colour(ink), at(points.front()), path);
  }
  void text(Point place, StringRef content, Anchor anchor, ColorRole ink,
            Px size) override {
    std::string latin = latin1(content);
    Px width = 0;
    for (unsigned char c : latin)
      width += size * (c <= '~' ? helvetica[c - ' '] : 556) / 1000;
    place.x -= width * int(anchor) / 2;
    put("BT {} rg /F {} Tf 1 0 0 -1 {} Tm {} Tj ET\n", colour(ink),
        number(size), at(place), quoted(latin));
  }

  void end() override {
    std::string fills;
    for (size_t i = 0; i != sheet.fills.size(); ++i)
      fills += fmt::format("/k{} {} 0 R ", i, firstFill + i);
    StringRef header = "%PDF-1.4\n%\xE2\xE3\xCF\xD3\n";
    out << header;
    size = header.size();
    object("<</Type/Catalog/Pages 2 0 R/ViewerPreferences<</DisplayDocTitle "
           "true>>>>");
    object("<</Type/Pages/Kids[3 0 R]/Count 1>>");
    object(fmt::format(
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 {} {}]/Contents 4 0 R"
        "/Resources<</Font<</F 5 0 R>>/ExtGState<</thin<</ca .2>>>>"
        "/Pattern<<{}>>>>>>",
        points(sheet.width), points(sheet.height), fills));
    stream("", content);
    object("<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/"
           "WinAnsiEncoding>>");
    object("<</Title" + quoted(latin1(sheet.title)) + "/Creator(ppcc)>>");
    for (const Fill &fill : sheet.fills)
      pattern(fill);
    std::string table =
        fmt::format("xref\n0 {}\n0000000000 65535 f \n", places.size() + 1);
    for (size_t place : places)
      table += fmt::format("{:010} 00000 n \n", place);
    out << table
        << fmt::format("trailer\n<</Size {}/Root 1 0 R/Info 6 0 "
                       "R>>\nstartxref\n{}\n%%EOF\n",
                       places.size() + 1, size);
  }

private:
  static constexpr size_t firstFill = 7;

  void arrow(const Line &line, ColorRole ink) {
    double dx = double(line.to.x - line.from.x),
           dy = double(line.to.y - line.from.y);
    double scale = 350 / std::max(std::sqrt(dx * dx + dy * dy), 1.0);
    dx *= scale;
    dy *= scale;
    auto corner = [&](double side) {
      return at({line.to.x - Px(dx + side * dy / 2),
                 line.to.y - Px(dy - side * dx / 2)});
    };
    put("{0} RG {0} rg .7 w {1} S {2} m {3} l {4} l f\n", colour(ink),
        path(line), at(line.to), corner(1), corner(-1));
  }

  static std::string colour(Color color) {
    auto part = [&](int shift) {
      return fmt::format("{:.3g}", (color >> shift & 0xFF) / 255.0);
    };
    return part(16) + " " + part(8) + " " + part(0);
  }
  static std::string colour(ColorRole ink) {
    return colour(styleOf(ink).light);
  }
  static std::string number(Px length) {
    return fmt::format("{}{}.{:02}", length < 0 ? "-" : "",
                       std::abs(length) / 100, std::abs(length) % 100);
  }
  static std::string points(Px length) { return number(length * 3 / 4); }
  static std::string at(Point point) {
    return number(point.x) + " " + number(point.y);
  }
  static std::string path(const Line &line) {
    return fmt::format("{} m {} l", at(line.from), at(line.to));
  }
  static std::string rect(Area area) {
    return fmt::format("{} {} {} re", at({area.x, area.y}), number(area.width),
                       number(area.height));
  }
  template <class... Parts>
  void put(fmt::format_string<Parts...> format, Parts &&...parts) {
    fmt::format_to(std::back_inserter(content), format,
                   std::forward<Parts>(parts)...);
  }

  void object(StringRef text) {
    places.push_back(size);
    std::string whole =
        fmt::format("{} 0 obj\n{}\nendobj\n", places.size(), text);
    out << whole;
    size += whole.size();
  }
  void stream(StringRef keys, StringRef text) {
    object(fmt::format("<<{}/Length {}>>\nstream\n{}\nendstream", keys,
                       text.size(), text));
  }

  void pattern(const Fill &fill) {
    std::string text = colour(fill.color) + " rg 0 0 6 6 re f ";
    if (fill.hatch == Hatch::Dots)
      text += "/thin gs 0 g 2.3 2.3 1.4 1.4 re f ";
    text += "/thin gs 0 G .8 w ";
    for (const Line &line : hatchLines(fill.hatch))
      text += path(line) + " S ";
    stream(
        fmt::format("/Type/Pattern/PatternType 1/PaintType 1/TilingType 1"
                    "/BBox[0 0 6 6]/XStep 6/YStep 6/Matrix[.75 0 0 -.75 0 {}]"
                    "/Resources<</ExtGState<</thin<</ca .3/CA .25>>>>>>",
                    points(sheet.height)),
        text);
  }

  raw_ostream &out;
  Sheet sheet;
  std::string content;
  size_t size = 0;            ///< Of what is written.
  std::vector<size_t> places; ///< Of the objects.
};

} // namespace

std::unique_ptr<Canvas> ppcc::makePdf(raw_ostream &out) {
  return std::make_unique<Pdf>(out);
}
