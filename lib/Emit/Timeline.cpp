// Draws a program with characters: a few lines a rank, a column a span of time.
#include "Emitters.h"
#include "Picture.h"

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

/// What decides on the layout.
struct Extent {
  Time unit = 0;        ///< Divides all times at which boxes begin and end.
  Time shortest = 0;    ///< Of the boxes.
  uint32_t members = 1; ///< The most of a box.
  uint32_t letters = 1; ///< The most, with that of the chunk.
  uint32_t digits = 1;  ///< Of the largest microbatch.
};

struct Timeline {
  const Picture &picture;
  const PictureOptions &options;
  raw_ostream &out;
  const Program &program = picture.program;
  const Glyphs &glyphs = options.unicode ? unicodeGlyphs : asciiGlyphs;
  Writer writer{out};
  std::vector<std::string> lanes = {}; ///< Of nodes; may be empty.
  uint64_t columns = 0; ///< Of the drawing, without the names of the ranks.
  uint32_t margin = 0;  ///< Columns of the names of the ranks.
  uint32_t height = 1;  ///< Lines of each rank.
  bool numbersBelow = false;     ///< Labels do not fit in one line.
  bool downwards = false;        ///< Numbers have a line for each digit.
  bool chunksBelow = false;      ///< The letters of chunks have a line.
  std::vector<Cell> canvas = {}; ///< The lines of one rank, one after another.
  std::bitset<256> shownKinds{};
  std::set<uint32_t> shownNodes{}; ///< By name.
  std::optional<MemoryCurve> curve{};
  decimal::Sum maxMemory = 1;
  bool hasHidden = false;

  static constexpr size_t maxRanks = 64;
  static constexpr uint32_t defaultWidth = 120, minColumns = 8, maxLines = 10;

  void emit() {
    for (uint32_t lane : picture.nodeLanes)
      lanes.push_back(printable(program.nodes().lanes[lane]));
    if (options.memory) {
      curve.emplace(program, picture.times);
      maxMemory = picture.maxMemory(*curve);
    }
    layOut(extent());
    canvas.resize(height * columns);
    writer.put(printable(picture.title()), '\n');
    // More ranks than anybody reads: the first and the last of them.
    size_t count = picture.ranks.size();
    for (size_t i = 0; i != count; ++i) {
      if (count > maxRanks && i == maxRanks / 2) {
        writer.put(glyphs.gap, ' ', count - maxRanks,
                   " ranks left out, `--print-rank` shows them\n");
        i += count - maxRanks;
      }
      rank(picture.ranks[i]);
    }
    axis();
    legend();
  }

  Extent extent() const {
    Extent extent;
    extent.shortest = picture.to - picture.from;
    auto measure = [&](Time from, Time to) {
      from = std::max(from, picture.from) - picture.from;
      to = std::min(to, picture.to) - picture.from;
      for (Time time : {from, to})
        if (extent.unit == 0 || time % extent.unit != 0)
          extent.unit = std::gcd(extent.unit, time);
      extent.shortest = std::min(extent.shortest, to - from);
    };
    measure(picture.from, picture.to);
    uint32_t microbatch = 0;
    for (RankId rank : picture.ranks)
      forEachBox(rank, [&](const Box &box) {
        measure(box.from, box.to);
        extent.members = std::max<uint32_t>(extent.members, box.rows.size());
        for (ActionId row : box.rows)
          if (Action action = program[row]; action.hasMicrobatch())
            microbatch = std::max(microbatch, action.microbatch);
        picture.forEachNode(box, [&](const NodeBox &node) {
          measure(node.from, node.to);
          extent.letters = 3;
        });
      });
    for (KindId kind : program.kinds().ids())
      if (program.kinds()[kind].isCompute())
        extent.letters = std::max<uint32_t>(extent.letters,
                                            picture.styleOf(kind).label.size());
    extent.letters += marksChunks();
    extent.digits = uint32_t(fmt::formatted_size("{}", microbatch));
    return extent;
  }

  /// Where no shade tells the chunks of a rank, a letter does.
  bool marksChunks() const { return !options.color && picture.maxChunks > 1; }

  /// All boxes of a rank, those of its lanes too.
  template <class Visit> void forEachBox(RankId rank, Visit visit) const {
    picture.forEachBox(rank, visit);
    picture.forEachAsyncBox(rank, visit);
  }

  void layOut(const Extent &extent) {
    margin = fmt::formatted_size("rank {} ", picture.ranks.back().value);
    size_t laneNames = 0;
    for (const std::string &lane : lanes)
      laneNames = std::max(laneNames, columnsOf(lane) + 1);
    margin += laneNames;
    for (uint8_t lane : picture.asyncLanes)
      margin =
          std::max<uint32_t>(margin, program.kinds().lanes()[lane].size() + 3);
    uint32_t width = options.width ? options.width : defaultWidth;
    uint64_t room = width > margin + 1 ? width - (margin + 1) : minColumns;
    room = std::max<uint64_t>(room, minColumns);
    uint64_t units = (picture.to - picture.from) / extent.unit;
    // Every action begins and ends between two columns.
    bool isExact = units <= room;
    columns = room;
    uint32_t label = extent.letters + extent.digits;
    uint64_t shortest = 0; // Columns of the shortest box.
    if (isExact) {
      // No wider than every label with a gap after it takes.
      uint64_t lengths = extent.shortest / extent.unit;
      uint64_t maxColumns = (label + 1 + lengths - 1) / lengths;
      uint64_t each = std::min(room / units, maxColumns);
      columns = units * each;
      shortest = lengths * each;
    }
    numbersBelow = isExact && shortest < label;
    // Numbers side by side without a gap would read as one.
    downwards = numbersBelow && extent.digits > 1 && shortest <= extent.digits;
    chunksBelow = marksChunks() && lanes.empty() && shortest < extent.letters;
    uint32_t perBox =
        1 + chunksBelow + (downwards ? extent.digits : numbersBelow);
    height = std::clamp(extent.members, std::min(perBox, maxLines), maxLines);
    if (!lanes.empty()) {
      numbersBelow = false;
      height = static_cast<uint32_t>(lanes.size());
    }
  }

  /// The columns whose middle lies before `time`.
  uint64_t column(Time time) const {
    time = std::clamp(time, picture.from, picture.to) - picture.from;
    __int128 span = picture.to - picture.from;
    return uint64_t((__int128(time) * 2 * columns + span - 1) / (2 * span));
  }

  /// The compute actions of a rank, and below them its lanes.
  void rank(RankId rank) {
    std::fill(canvas.begin(), canvas.end(), Cell());
    picture.forEachBox(rank, [&](const Box &box) { draw(box); });
    put(fmt::format("rank {}", rank.value), lanes, height);
    // Where each node has a line, one is enough for a lane beside.
    uint32_t lines = lanes.empty() ? height : 1;
    for (uint8_t lane : picture.asyncLanesOf(rank)) {
      std::fill(canvas.begin(), canvas.end(), Cell());
      picture.forEachAsyncBox(rank, [&](const Box &box) {
        if (picture.laneOf(box) == lane)
          draw(box);
      });
      put("  " + program.kinds().lanes()[lane], {}, lines);
    }
    if (curve)
      memory(rank);
  }

  /// The most that a rank holds in each column.
  void memory(RankId rank) {
    std::vector<decimal::Sum> peaks(columns);
    decimal::Sum held = curve->model().staticOf(rank);
    uint64_t at = 0;
    auto holdUntil = [&](uint64_t end) {
      for (; at < end; ++at)
        peaks[at] = std::max(peaks[at], held);
    };
    curve->walk(rank, [&](const MemoryStep &step) {
      uint64_t next = std::min(column(step.at), columns - 1);
      holdUntil(next);
      held = step.memory;
      peaks[next] = std::max(peaks[next], held);
      return step.at < picture.to;
    });
    holdUntil(columns);
    writer.put(fmt::format("{:{}}{}", "  held", margin, glyphs.edge));
    for (decimal::Sum memory : peaks)
      writer.put(glyphs.levels[size_t((__int128(memory) * 8 + maxMemory - 1) /
                                      maxMemory)]);
    auto limit = curve->model().limitOf(rank);
    writer.put(fmt::format(
        " at most {}{}\n", program.units().memory(curve->peak(rank).memory),
        limit ? " of " + program.units().memory(*limit) : std::string()));
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
      writer.put(fmt::format("{:{}}{}", name, margin, glyphs.edge));
      put(ArrayRef(canvas).slice(line * columns, columns));
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
      first = std::min(first, columns - 1);
      width = canvas[first].glyph == Cell::idle;
      hasHidden = true;
    }
    SmallVector<Text, 4> texts = textsOf(box);
    for (uint32_t line = 0; width && line != height; ++line) {
      uint32_t member = std::min<uint32_t>(line, box.rows.size() - 1);
      Action action = program[ActionId(box.rows.from.value + member)];
      shownKinds[action.kind.value] = true;
      bool isBelow = box.rows.size() == 1 && line != 0;
      Cell *cells = canvas.data() + line * columns + first;
      std::fill_n(cells, width,
                  Cell{isBelow ? ' ' : Cell::fill, color(action)});
      if (line < texts.size())
        write(texts[line], width, cells);
    }
  }

  /// A node has the line of its lane.
  void draw(const NodeBox &node) {
    uint64_t first = column(node.from), width = column(node.to) - first;
    hasHidden |= width == 0;
    if (width == 0)
      return;
    shownKinds[node.action.kind.value] = true;
    Cell *cells = canvas.data() + picture.lineOf(*node.node) * columns + first;
    std::fill_n(cells, width, Cell{Cell::fill, color(node.action)});
    shownNodes.insert(node.node->name);
    // Hatchings, which tell the kind elsewhere, are not to be had here.
    auto [letters, number] = textOf(node.action, picture.labelOf(node));
    write({picture.styleOf(node.action.kind).label + letters, number}, width,
          cells);
  }

  /// `b` for chunk 1 and so on; nothing where it needs none.
  std::string chunkOf(const Action &action) const {
    uint32_t chunk = picture.chunk(action.pipe, action.stage);
    return marksChunks() && chunk != 0 && chunk < 26
               ? std::string(1, 'a' + chunk)
               : std::string();
  }

  /// What stands in a line of a box: letters, and after them the microbatch.
  using Text = std::pair<std::string, std::string>;

  Text textOf(const Action &action, const BoxLabel &label) const {
    return {label.letters.str().str() + chunkOf(action),
            label.number.str().str()};
  }

  /// A member of a group has a line; an action by itself has one for its
  /// letters, and those that its chunk and its number need.
  SmallVector<Text, 4> textsOf(const Box &box) const {
    SmallVector<Text, 4> texts;
    for (ActionId row : box.rows)
      texts.push_back(textOf(program[row], picture.labelOf(program[row])));
    if (texts.size() > 1)
      return texts;
    if (chunksBelow) {
      Action action = program[box.rows.from];
      texts[0].first = picture.labelOf(action).letters.str();
      texts.emplace_back(chunkOf(action), "");
    }
    if (!numbersBelow)
      return texts;
    std::string number = std::exchange(texts[0].second, "");
    if (!downwards)
      texts.emplace_back(number, "");
    else if (number.size() < height - chunksBelow)
      for (char digit : number)
        texts.emplace_back(std::string(1, digit), "");
    return texts;
  }

  /// All of it, or the letters, or nothing: a part of either would be
  /// another's.
  static void write(const Text &text, uint64_t width, Cell *cells) {
    auto [letters, number] = text;
    if (letters.size() + number.size() <= width)
      letters += number;
    if (letters.size() <= width)
      for (char c : letters)
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
    return 16 + 36 * level(fill >> 16) + 6 * level(fill >> 8) + level(fill);
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
    if (color)
      writer.put("\x1b[38;5;16;48;5;", color, 'm');
    else
      writer.put("\x1b[0m");
  }

  void axis() {
    std::string numbers;
    std::vector<bool> ticks(columns + 1);
    uint64_t maxTicks = std::max<uint64_t>(columns / 10, 1);
    picture.forEachTick(maxTicks, [&](Time time) {
      uint64_t at = column(time);
      std::string number = cost::format(time);
      // Only where it fits after the number before it.
      if (at < numbers.size() + !numbers.empty() ||
          at + number.size() > columns + 1)
        return;
      ticks[at] = true;
      numbers.resize(at, ' ');
      numbers += number;
    });
    writer.put(fmt::format("{:{}}{}", "", margin,
                           ticks[0] ? glyphs.tick : glyphs.corner));
    for (uint64_t i = 1; i <= columns; ++i)
      writer.put(ticks[i] ? glyphs.tick : glyphs.line);
    writer.put(fmt::format("\n{:{}}{}\n", "", margin, numbers));
  }

  void legend() {
    for (KindId kind : program.kinds().ids())
      if (shownKinds[kind.value])
        writer.put(picture.legendOf(kind), ", ");
    for (uint32_t name : shownNodes)
      if (picture.nodeLabels[name] != program.nodes().names[name])
        writer.put(picture.nodeLabels[name], ' ',
                   printable(program.nodes().names[name]), ", ");
    for (uint32_t chunk = 1;
         marksChunks() && chunk != std::min(picture.maxChunks, 26u); ++chunk)
      writer.put(char('a' + chunk), ' ', printable(picture.chunkName(chunk)),
                 ", ");
    writer.put(glyphs.idle, " idle; a column is ", columnTime(), '\n');
    if (downwards)
      writer.put("the digits of a microbatch are below each other\n");
    if (hasHidden)
      writer.put("actions shorter than a column may not show; "
                 "`--time-range=A..B` and `--width=N` show more\n");
  }

  std::string columnTime() const {
    Time span = picture.to - picture.from;
    if (span % Time(columns) == 0)
      return program.units().time(span / Time(columns));
    return fmt::format("{:.3g}", double(span) / double(columns) / cost::unit);
  }
};

} // namespace

void ppcc::emitTimeline(const Program &program, raw_ostream &out,
                        EmitContext &context) {
  auto picture = Picture::make(program, context);
  if (!picture)
    return;
  Timeline{*picture, context.options.picture, out}.emit();
}
