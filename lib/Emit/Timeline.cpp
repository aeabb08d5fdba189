// Draws a program with characters: a few lines a rank, a column a span of time.
#include "Emitters.h"
#include "Picture.h"
#include "ppcc/Support/Printable.h"

#include "llvm/ADT/SmallString.h"

#include <fmt/format.h>

#include <bitset>
#include <numeric>

using namespace ppcc;

namespace {

/// The characters of a timeline.
struct Glyphs {
  llvm::StringRef idle, fill, edge, corner, line, tick, gap;
};
constexpr Glyphs asciiGlyphs{".", "-", "|", "+", "-", "+", "..."};
constexpr Glyphs unicodeGlyphs{"·", "─", "│", "└", "─", "┬", "⋮"};

/// One place of the drawing. `glyph` is an ASCII character, or one of those
/// below.
struct Cell {
  char glyph = idle;
  uint8_t color = 0; ///< In the colours of terminals; 0 for none.

  static constexpr char idle = 1, fill = 2;
};

/// How the span of a picture falls on columns, and what fits there.
struct Layout {
  uint64_t columns = 0; ///< Of the drawing, without the names of the ranks.
  bool exact = false;   ///< Every action begins and ends between two columns.
  uint32_t lines = 1;   ///< Of each rank.
  bool numbersBelow = false; ///< Labels do not fit in one line.
  bool downwards = false;    ///< Numbers have a line for each digit.
  uint32_t margin = 0;       ///< Columns of the names of the ranks.
};

/// What decides on the layout.
struct Extent {
  Time unit = 0;     ///< Divides all times at which boxes begin and end.
  Time shortest = 0; ///< Of the boxes.
  uint32_t members = 1, label = 1; ///< The most of a box; the longest.
  uint32_t digits = 1;             ///< Of the largest microbatch.
};

class Timeline {
public:
  Timeline(const Picture &picture, const PictureOptions &options,
           llvm::raw_ostream &out)
      : picture(picture), options(options), program(picture.program),
        glyphs(options.unicode ? unicodeGlyphs : asciiGlyphs), writer(out) {
    for (const std::string &lane : picture.lanes())
      lanes.push_back(printable(lane));
    layout = layOut(extent());
    canvas.resize(layout.lines * layout.columns);
  }

  void emit() {
    writer.put(printable(picture.title()));
    writer.put('\n');
    // More ranks than anybody reads: the first and the last of them.
    size_t count = picture.ranks.size();
    for (size_t i = 0; i != count; ++i) {
      if (count > maxRanks && i == maxRanks / 2) {
        size_t left = count - maxRanks;
        writer.put(fmt::format("{} {} ranks left out, `--print-rank` shows "
                               "them\n",
                               glyphs.gap, left));
        i += left;
      }
      rank(picture.ranks[i]);
    }
    axis();
    legend();
  }

private:
  static constexpr size_t maxRanks = 64;
  static constexpr uint32_t defaultWidth = 120, minColumns = 8;

  Extent extent() const {
    Extent extent;
    auto divide = [&](Time time) {
      if (extent.unit == 0 || time % extent.unit != 0)
        extent.unit = std::gcd(extent.unit, time);
    };
    divide(picture.to - picture.from);
    extent.shortest = picture.to - picture.from;
    uint32_t microbatch = 0;
    for (RankId rank : picture.ranks)
      forEachBox(rank, [&](const Box &box) {
        divide(std::max(box.from, picture.from) - picture.from);
        divide(std::min(box.to, picture.to) - picture.from);
        extent.shortest = std::min(extent.shortest, box.to - box.from);
        extent.members = std::max<uint32_t>(extent.members, box.rows.size());
        for (ActionId row : box.rows)
          if (Action action = program[row]; action.hasMicrobatch())
            microbatch = std::max(microbatch, action.microbatch);
        picture.forEachNode(box, [&](const NodeBox &node) {
          divide(std::max(node.from, picture.from) - picture.from);
          divide(std::min(node.to, picture.to) - picture.from);
          extent.shortest = std::min(extent.shortest, node.to - node.from);
        });
      });
    size_t letters = 0;
    for (const KindInfo &info : program.kinds().rows())
      if (info.isCompute())
        letters = std::max(letters, info.letters.size());
    extent.digits = uint32_t(fmt::formatted_size("{}", microbatch));
    extent.label = letters + extent.digits;
    return extent;
  }

  /// All boxes of a rank, those of its lanes too.
  template <class Visit> void forEachBox(RankId rank, Visit visit) const {
    picture.forEachBox(rank, visit);
    picture.forEachBoxBeside(rank,
                             [&](const Box &box, uint8_t) { visit(box); });
  }

  Layout layOut(const Extent &extent) const {
    Layout result;
    result.margin = fmt::formatted_size("rank {} ", picture.ranks.back().value);
    size_t laneNames = 0;
    for (const std::string &lane : lanes)
      laneNames = std::max(laneNames, columnsOf(lane) + 1);
    result.margin += laneNames;
    for (uint8_t lane : picture.lanesBeside)
      result.margin = std::max<uint32_t>(
          result.margin, program.kinds().lanes()[lane].size() + 3);
    uint32_t width = options.width ? options.width : defaultWidth;
    uint64_t room =
        width > result.margin + 1 ? width - (result.margin + 1) : minColumns;
    room = std::max<uint64_t>(room, minColumns);
    uint64_t units = (picture.to - picture.from) / extent.unit;
    result.exact = units <= room;
    result.columns = room;
    uint64_t shortest = 0; // Columns of the shortest box.
    if (result.exact) {
      // No wider than every label with a gap behind it takes.
      uint64_t lengths = extent.shortest / extent.unit;
      uint64_t most = (extent.label + 1 + lengths - 1) / lengths;
      uint64_t each = std::min(room / units, most);
      result.columns = units * each;
      shortest = lengths * each;
    }
    result.numbersBelow = result.exact && shortest < extent.label;
    // Numbers side by side without a gap would read as one.
    result.downwards =
        result.numbersBelow && extent.digits > 1 && shortest <= extent.digits;
    result.lines = std::clamp(extent.members,
                              !result.numbersBelow ? 1u
                              : result.downwards   ? 1 + extent.digits
                                                   : 2u,
                              maxLines);
    if (!lanes.empty()) {
      result.numbersBelow = false;
      result.lines = static_cast<uint32_t>(lanes.size());
    }
    return result;
  }

  /// The columns whose middle lies before `time`.
  uint64_t column(Time time) const {
    time = std::clamp(time, picture.from, picture.to) - picture.from;
    __int128 span = picture.to - picture.from;
    return uint64_t((__int128(time) * 2 * layout.columns + span - 1) /
                    (2 * span));
  }

  /// The compute actions of a rank, and below them its lanes.
  void rank(RankId rank) {
    std::fill(canvas.begin(), canvas.end(), Cell());
    picture.forEachBox(rank, [&](const Box &box) { draw(box); });
    put(fmt::format("rank {}", rank.value), lanes, layout.lines);
    // Where each node has a line, one is enough for a lane beside.
    uint32_t lines = lanes.empty() ? layout.lines : 1;
    for (uint8_t lane : picture.lanesBeside) {
      std::fill(canvas.begin(), canvas.end(), Cell());
      picture.forEachBoxBeside(rank, [&](const Box &box, uint8_t ofBox) {
        if (ofBox == lane)
          draw(box);
      });
      put("  " + program.kinds().lanes()[lane], {}, lines);
    }
  }

  /// Writes the first `lines` of the canvas, with the names of their lanes if
  /// they are lanes of nodes.
  void put(const std::string &title, llvm::ArrayRef<std::string> lanes,
           uint32_t lines) {
    for (uint32_t line = 0; line != lines; ++line) {
      std::string name = line == 0 ? title : std::string();
      if (!lanes.empty())
        name = fmt::format(
            "{:{}}{}", name,
            fmt::formatted_size("rank {} ", picture.ranks.back().value),
            lanes[line]);
      writer.put(fmt::format("{:{}}{}", name, layout.margin, glyphs.edge));
      put(llvm::ArrayRef(canvas).slice(line * layout.columns, layout.columns));
      writer.put('\n');
    }
  }

  /// An action by itself fills all lines, its number below its letters where it
  /// does not fit beside them; each member of a group has a line.
  void draw(const Box &box) {
    if (picture.forEachNode(box, [&](const NodeBox &node) { draw(node); }))
      return;
    uint64_t first = column(box.from), width = column(box.to) - first;
    if (width == 0) {
      first = std::min(first, layout.columns - 1);
      width = canvas[first].glyph == Cell::idle;
      hasHidden = true;
    }
    for (uint32_t line = 0; width && line != layout.lines; ++line) {
      uint32_t member = std::min<uint32_t>(line, box.rows.size() - 1);
      Action action = program[ActionId(box.rows.from.value + member)];
      shownKinds[action.kind.value] = true;
      Cell *cells = canvas.data() + line * layout.columns + first;
      bool isBelow = box.rows.size() == 1 && line != 0;
      std::fill_n(cells, width,
                  Cell{isBelow ? ' ' : Cell::fill, color(action)});
      if (box.rows.size() == 1 && layout.numbersBelow)
        label(action, line, width, cells);
      else if (line < box.rows.size())
        label(action, width, cells);
    }
  }

  /// A node has the line of its lane.
  void draw(const NodeBox &node) {
    uint64_t first = column(node.from), width = column(node.to) - first;
    hasHidden |= width == 0;
    if (width == 0)
      return;
    shownKinds[node.action.kind.value] = true;
    Cell *cells = canvas.data() + node.node->lane * layout.columns + first;
    std::fill_n(cells, width, Cell{Cell::fill, color(node.action)});
    label(node.action, width, cells);
  }

  /// The whole label in one line, or as much of it as its letters.
  void label(const Action &action, uint64_t width, Cell *cells) {
    llvm::SmallString<16> text;
    appendLabel(program, action, text);
    if (text.size() > width)
      text.truncate(
          std::min<size_t>(width, program.kindOf(action).letters.size()));
    write(text, cells);
  }

  /// The letters above the number, or above its digits.
  void label(const Action &action, uint32_t line, uint64_t width, Cell *cells) {
    if (line == 0)
      return write(
          llvm::StringRef(program.kindOf(action).letters).take_front(width),
          cells);
    std::string number =
        action.hasMicrobatch() ? fmt::format("{}", action.microbatch) : "";
    if (!layout.downwards)
      return write(line == 1 ? number : "", cells);
    if (line <= number.size())
      cells->glyph = number[line - 1];
  }

  static void write(llvm::StringRef text, Cell *cells) {
    for (char c : text)
      (cells++)->glyph = c;
  }

  /// The nearest of the 6 * 6 * 6 colours that terminals have.
  uint8_t color(const Action &action) const {
    if (!options.color)
      return 0;
    auto level = [](uint8_t value) {
      return value < 48 ? 0 : value < 115 ? 1 : (value - 35) / 40;
    };
    Color fill = picture.fill(action);
    return 16 + 36 * level(fill.red) + 6 * level(fill.green) + level(fill.blue);
  }

  void put(llvm::ArrayRef<Cell> cells) {
    uint8_t color = 0;
    for (Cell cell : cells) {
      if (cell.color != color)
        setColor(color = cell.color);
      if (cell.glyph == Cell::idle)
        writer.put(glyphs.idle);
      else if (cell.glyph != Cell::fill)
        writer.put(cell.glyph);
      else if (color)
        writer.put(' ');
      else
        writer.put(glyphs.fill);
    }
    if (color)
      setColor(0);
  }

  /// Black on `color`, or the terminal's own colours.
  void setColor(uint8_t color) {
    writer.put(color ? fmt::format("\x1b[38;5;16;48;5;{}m", color)
                     : std::string("\x1b[0m"));
  }

  void axis() {
    Time step = tickStep(picture.to - picture.from,
                         std::max<uint64_t>(layout.columns / 10, 1));
    std::string numbers;
    std::vector<bool> ticks(layout.columns + 1);
    Time first = (picture.from + step - 1) / step * step;
    for (Time time = first; time <= picture.to; time += step) {
      uint64_t at = column(time);
      std::string number = cost::format(time);
      // Only where it fits behind the number before it.
      if (at < numbers.size() + !numbers.empty() ||
          at + number.size() > layout.columns + 1)
        continue;
      ticks[at] = true;
      numbers.resize(at, ' ');
      numbers += number;
    }
    writer.put(fmt::format("{:{}}{}", "", layout.margin,
                           ticks[0] ? glyphs.tick : glyphs.corner));
    for (uint64_t i = 1; i <= layout.columns; ++i)
      writer.put(ticks[i] ? glyphs.tick : glyphs.line);
    writer.put(fmt::format("\n{:{}}{}\n", "", layout.margin, numbers));
  }

  void legend() {
    for (KindId i : program.kinds().ids()) {
      if (!shownKinds[i.value])
        continue;
      const KindInfo &info = program.kinds()[i];
      writer.put(fmt::format("{} {}, ", info.letters,
                             kindWords(program.kinds(), info)));
    }
    writer.put(
        fmt::format("{} idle; a column is {}\n", glyphs.idle, columnTime()));
    if (layout.downwards)
      writer.put("the digits of a microbatch stand below each other\n");
    if (hasHidden)
      writer.put("actions shorter than a column may not show; "
                 "`--time-range=A..B` and `--width=N` show more\n");
  }

  std::string columnTime() const {
    Time span = picture.to - picture.from, columns = Time(layout.columns);
    if (span % columns == 0)
      return cost::format(span / columns);
    return fmt::format("{:.3g}", double(span) / double(columns) / cost::unit);
  }

  static constexpr uint32_t maxLines = 8;

  const Picture &picture;
  const PictureOptions &options;
  const Program &program;
  const Glyphs &glyphs;
  Writer writer;
  std::vector<std::string> lanes; ///< Of nodes; may be empty.
  Layout layout;
  std::vector<Cell> canvas; ///< The lines of one rank, one after another.
  std::bitset<256> shownKinds;
  bool hasHidden = false;
};

} // namespace

bool ppcc::emitTimeline(const Program &program, llvm::raw_ostream &out,
                        EmitContext &context) {
  auto picture = Picture::make(program, context);
  if (!picture)
    return false;
  Timeline(*picture, context.options.picture, out).emit();
  return true;
}
