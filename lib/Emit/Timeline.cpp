// Draws a program with characters: a few lines a rank, a column a span of time.
#include "Emitters.h"
#include "Picture.h"
#include "ppcc/Analysis/MemoryCurve.h"
#include "ppcc/Support/Printable.h"

#include <bitset>

using namespace ppcc;

namespace {

/// The characters of a timeline.
struct Glyphs {
  StringRef idle, fill, edge, corner, line, tick, gap;
  std::array<StringRef, 9> levels; ///< From nothing to a full column.
};
constexpr Glyphs asciiGlyphs{
    ".", "-", "|",   "+",
    "-", "+", "...", {" ", "1", "2", "3", "4", "5", "6", "7", "8"}};
constexpr Glyphs unicodeGlyphs{
    "·", "─", "│", "└",
    "─", "┬", "⋮", {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}};

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
  bool chunksBelow = false;  ///< The letters of chunks have a line.
  uint32_t margin = 0;       ///< Columns of the names of the ranks.
};

/// What decides on the layout.
struct Extent {
  Time unit = 0;     ///< Divides all times at which boxes begin and end.
  Time shortest = 0; ///< Of the boxes.
  uint32_t members = 1, label = 1; ///< The most of a box; the longest.
  uint32_t letters = 1;            ///< The most, with that of the chunk.
  uint32_t digits = 1;             ///< Of the largest microbatch.
};

class Timeline {
public:
  Timeline(const Picture &picture, const PictureOptions &options,
           raw_ostream &out)
      : picture(picture), options(options), program(picture.program),
        glyphs(options.unicode ? unicodeGlyphs : asciiGlyphs), writer(out) {
    for (uint32_t lane : picture.nodeLanes)
      lanes.push_back(printable(program.nodes().lanes[lane]));
    if (options.memory) {
      curve.emplace(program, picture.times);
      for (RankId rank : picture.ranks)
        mostMemory =
            std::max({mostMemory, curve->peak(rank).memory,
                      decimal::Sum(curve->model().limitOf(rank).value_or(0))});
    }
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
        extent.shortest = std::min(extent.shortest, shown(box.from, box.to));
        extent.members = std::max<uint32_t>(extent.members, box.rows.size());
        for (ActionId row : box.rows)
          if (Action action = program[row]; action.hasMicrobatch())
            microbatch = std::max(microbatch, action.microbatch);
        picture.forEachNode(box, [&](const NodeBox &node) {
          divide(std::max(node.from, picture.from) - picture.from);
          divide(std::min(node.to, picture.to) - picture.from);
          extent.shortest =
              std::min(extent.shortest, shown(node.from, node.to));
          extent.letters = 3;
        });
      });
    for (KindId kind : program.kinds().ids())
      if (program.kinds()[kind].isCompute())
        extent.letters = std::max<uint32_t>(extent.letters,
                                            picture.lookOf(kind).label.size());
    extent.letters += marksChunks();
    extent.digits = uint32_t(fmt::formatted_size("{}", microbatch));
    extent.label = extent.letters + extent.digits;
    return extent;
  }

  /// What of a time lies in the picture.
  Time shown(Time from, Time to) const {
    return std::min(to, picture.to) - std::max(from, picture.from);
  }

  /// Where no shade tells the chunks of a rank, a letter does.
  bool marksChunks() const { return !options.color && picture.maxChunks > 1; }

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
    result.chunksBelow =
        marksChunks() && lanes.empty() && shortest < extent.letters;
    uint32_t perBox = 1 + result.chunksBelow +
                      (result.downwards ? extent.digits : result.numbersBelow);
    result.lines =
        std::clamp(extent.members, std::min(perBox, maxLines), maxLines);
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
    for (uint8_t lane : picture.lanesBesideOf(rank)) {
      std::fill(canvas.begin(), canvas.end(), Cell());
      picture.forEachBoxBeside(rank, [&](const Box &box, uint8_t ofBox) {
        if (ofBox == lane)
          draw(box);
      });
      put("  " + program.kinds().lanes()[lane], {}, lines);
    }
    if (curve)
      memory(rank);
  }

  /// The most that a rank holds in each column.
  void memory(RankId rank) {
    std::vector<decimal::Sum> most(layout.columns);
    decimal::Sum held = curve->model().staticOf(rank);
    uint64_t at = 0;
    auto holdUntil = [&](uint64_t end) {
      for (; at < end; ++at)
        most[at] = std::max(most[at], held);
    };
    curve->walk(rank, [&](const MemoryStep &step) {
      uint64_t next = std::min(column(step.at), layout.columns - 1);
      holdUntil(next);
      held = step.memory;
      most[next] = std::max(most[next], held);
      return step.at < picture.to;
    });
    holdUntil(layout.columns);
    writer.put(fmt::format("{:{}}{}", "  held", layout.margin, glyphs.edge));
    for (decimal::Sum memory : most)
      writer.put(glyphs.levels[size_t((__int128(memory) * 8 + mostMemory - 1) /
                                      mostMemory)]);
    auto limit = curve->model().limitOf(rank);
    writer.put(fmt::format(
        " at most {}{}\n", amount::format(Amount(curve->peak(rank).memory)),
        limit ? " of " + amount::format(*limit) : std::string()));
  }

  /// Writes the first `lines` of the canvas, with the names of their lanes if
  /// they are lanes of nodes.
  void put(const std::string &title, ArrayRef<std::string> lanes,
           uint32_t lines) {
    for (uint32_t line = 0; line != lines; ++line) {
      std::string name = line == 0 ? title : std::string();
      if (!lanes.empty())
        name = fmt::format(
            "{:{}}{}", name,
            fmt::formatted_size("rank {} ", picture.ranks.back().value),
            lanes[line]);
      writer.put(fmt::format("{:{}}{}", name, layout.margin, glyphs.edge));
      put(ArrayRef(canvas).slice(line * layout.columns, layout.columns));
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
      if (box.rows.size() == 1 && (layout.numbersBelow || layout.chunksBelow))
        labelBelow(action, line, width, cells);
      else if (line < box.rows.size())
        label(labelOf(picture, action), chunkOf(action), width, cells);
    }
  }

  /// A node has the line of its lane.
  void draw(const NodeBox &node) {
    uint64_t first = column(node.from), width = column(node.to) - first;
    hasHidden |= width == 0;
    if (width == 0)
      return;
    shownKinds[node.action.kind.value] = true;
    Cell *cells =
        canvas.data() + picture.lineOf(*node.node) * layout.columns + first;
    std::fill_n(cells, width, Cell{Cell::fill, color(node.action)});
    shownNodes.insert(node.node->name);
    // Hatchings, which tell the kind elsewhere, are not to be had here.
    BoxLabel text = labelOf(picture, node);
    text.letters =
        picture.lookOf(node.action.kind).label + text.letters.str().str();
    label(text, chunkOf(node.action), width, cells);
  }

  /// `b` for chunk 1 and so on; nothing where it needs none.
  std::string chunkOf(const Action &action) const {
    uint32_t chunk = picture.chunk(action.pipe, action.stage);
    return marksChunks() && chunk != 0 && chunk < 26
               ? std::string(1, 'a' + chunk)
               : std::string();
  }

  /// The whole label in one line, or its letters, or nothing: a part of either
  /// would be another's.
  static void label(const BoxLabel &label, const std::string &chunk,
                    uint64_t width, Cell *cells) {
    std::string letters = label.letters.str().str() + chunk;
    if (letters.size() + label.number.size() <= width)
      return write(letters + label.number.str().str(), cells);
    if (letters.size() <= width)
      write(letters, cells);
  }

  /// The letters above those of the chunk, and the number, or its digits.
  void labelBelow(const Action &action, uint32_t line, uint64_t width,
                  Cell *cells) {
    BoxLabel label = labelOf(picture, action);
    std::string chunk = chunkOf(action);
    if (!layout.chunksBelow) {
      label.letters += chunk;
    } else if (line == 1) {
      return write(chunk, cells);
    } else if (line != 0) {
      --line;
    }
    if (line == 0 && !layout.numbersBelow)
      return this->label(label, "", width, cells);
    if (line == 0) {
      if (label.letters.size() <= width)
        write(label.letters, cells);
    } else if (!layout.numbersBelow) {
      return;
    } else if (!layout.downwards) {
      if (line == 1 && label.number.size() <= width)
        write(label.number, cells);
    } else if (line <= label.number.size() &&
               label.number.size() < layout.lines - layout.chunksBelow) {
      cells->glyph = label.number[line - 1];
    }
  }

  static void write(StringRef text, Cell *cells) {
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

  void put(ArrayRef<Cell> cells) {
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
      writer.put(fmt::format("{} {}{}, ", picture.lookOf(i).label,
                             info.isDeclared() ? info.letters + " " : "",
                             kindWords(program.kinds(), info)));
    }
    for (uint32_t name : shownNodes)
      if (picture.nodeLabels[name] != program.nodes().names[name])
        writer.put(fmt::format("{} {}, ", picture.nodeLabels[name],
                               printable(program.nodes().names[name])));
    for (uint32_t chunk = 1;
         marksChunks() && chunk != std::min(picture.maxChunks, 26u); ++chunk)
      writer.put(fmt::format("{} {}, ", char('a' + chunk),
                             printable(picture.chunkWords(chunk))));
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

  static constexpr uint32_t maxLines = 10;

  const Picture &picture;
  const PictureOptions &options;
  const Program &program;
  const Glyphs &glyphs;
  Writer writer;
  std::vector<std::string> lanes; ///< Of nodes; may be empty.
  Layout layout;
  std::vector<Cell> canvas; ///< The lines of one rank, one after another.
  std::bitset<256> shownKinds;
  std::set<uint32_t> shownNodes; ///< By name.
  std::optional<MemoryCurve> curve;
  decimal::Sum mostMemory = 1;
  bool hasHidden = false;
};

} // namespace

void ppcc::emitTimeline(const Program &program, raw_ostream &out,
                        EmitContext &context) {
  auto picture = Picture::make(program, context);
  if (!picture)
    return;
  Timeline(*picture, context.options.picture, out).emit();
}
