// Draws a program for papers: a row a rank, an axis of time, a legend.
#include "Emitters.h"
#include "Svg.h"
#include "ppcc/Analysis/Index/Dependences.h"
#include "ppcc/Basic/Diagnostics/Pictures.h"

using namespace ppcc;

namespace {

struct Figure {
  static constexpr Px stripHeight = px(3), edge = px(6), swatch = px(16),
                      axisHeight = px(24), legendHeight = px(18),
                      laneHeight = px(14), laneStep = laneHeight + px(2),
                      memoryHeight = px(26), memoryStep = memoryHeight + px(6);
  /// Beyond this, labels give way.
  static constexpr Px maxDefault = px(6000);

  /// A node, a member of a group or an action, and where it is drawn.
  struct Part {
    Action action;
    BoxLabel label;
    Time from, to;
    size_t line;  ///< Of those of its row, or of the lanes below it.
    size_t lines; ///< That share the row; none for one on a lane below.
    Area area{};

    bool isAsync() const { return lines == 0; }
  };

  /// Boxes of one phase, from the first to the last of them.
  struct Span {
    PhaseId phase;
    Time from, to;
  };

  /// The row of a rank.
  struct Row {
    RankId rank;
    std::vector<uint8_t> beside; ///< Its lanes below the compute actions.
    std::vector<Part> parts;
    std::vector<Span> spans;
    Px y = 0;
  };

  using Swatch = std::function<void(Px x, Px y)>;

  /// An entry of the legend.
  struct Entry {
    Px x, row;
    std::string text;
    Swatch draw; ///< At its place; may be null.

    Px swatchWidth() const { return draw ? swatch + px(4) : 0; }
  };

  /// All labels of a figure stand in one way.
  struct LabelStyle {
    Px size;
    bool isStacked; ///< The number below the letters.
  };

  const Picture &picture;
  const PictureOptions &options;
  Svg &svg;
  const Program &program = picture.program;
  const Px fontSize = px(options.fontSize);
  const std::string title =
      options.title.empty() ? picture.title() : options.title;
  std::vector<Row> rows{};
  std::vector<std::string> titleLines{};
  std::vector<Entry> entries{};
  /// Those that are shown.
  BitVector kinds{unsigned(program.kinds().size())},
      phases{unsigned(program.phases().size())},
      nodes{unsigned(program.nodes().names.size())};
  std::vector<size_t> firstFill{}; ///< By kind.
  std::optional<MemoryCurve> memory{};
  decimal::Sum maxMemory = 0;
  bool hasGroups = false;
  Time shortest = picture.to - picture.from; ///< Of the boxes.
  Px longest = 0;                            ///< Of the labels.
  LabelStyle style = {fontSize, false};
  Px rowHeight = 0, rankNamesEnd = 0;
  Px left = 0, plotWidth = 0, width = 0, bottom = 0;

  void draw() {
    for (RankId rank : picture.ranks)
      collect(rank);
    if (options.memory) {
      memory.emplace(program, picture.times);
      maxMemory = picture.maxMemory(*memory);
    }
    layOutWidth();
    layOutHeight();
    if (!options.hidesLegend)
      layOutLegend();
    chooseLabels();
    Px legendRows = entries.empty() ? 0 : entries.back().row + 1;
    Px height = bottom + axisHeight + legendRows * legendHeight + edge;
    Sheet sheet{width, height, fontSize, title, {}};
    for (KindId kind : program.kinds().ids()) {
      firstFill.push_back(sheet.fills.size());
      for (uint32_t chunk = 0; kinds[kind.value] && chunk != picture.maxChunks;
           ++chunk)
        sheet.fills.push_back(
            {picture.fill(kind, chunk), picture.styleOf(kind).hatch});
    }
    svg.begin(sheet);
    for (auto [i, line] : llvm::enumerate(titleLines))
      svg.text({edge, px(4) + Px(i + 1) * titleHeight() - px(3)}, line,
               Anchor::Begin, ColorRole::Text, titleSize());
    for (const Row &row : rows)
      draw(row);
    if (options.arrows)
      arrows();
    axis();
    legend();
    svg.end();
  }

  // ---- What there is to draw ----

  void collect(RankId rank) {
    Row &row = rows.emplace_back();
    row.rank = rank;
    row.beside = picture.asyncLanesOf(rank);
    auto add = [&](const Action &action, const BoxLabel &label, const auto &box,
                   size_t line, size_t lines) {
      row.parts.push_back({action, label, box.from, box.to, line, lines});
      kinds[action.kind.value] = true;
      shortest = std::min(shortest, box.to - box.from);
      longest = std::max(longest, textWidth(label.letters, fontSize) +
                                      textWidth(label.number, fontSize));
    };
    picture.forEachBox(rank, [&](const Box &box) {
      addPhase(box, row.spans);
      if (picture.forEachNode(box, [&](const NodeBox &node) {
            nodes[node.node->name] = true;
            add(node.action, picture.labelOf(node), node,
                picture.lineOf(*node.node), picture.nodeLanes.size());
          }))
        return;
      hasGroups |= box.rows.size() > 1;
      for (auto [i, id] : llvm::enumerate(box.rows))
        add(program[id], picture.labelOf(program[id]), box, i, box.rows.size());
    });
    picture.forEachAsyncBox(rank, [&](const Box &box) {
      Action action = program[box.rows.from];
      kinds[action.kind.value] = true;
      size_t lane = llvm::lower_bound(row.beside, picture.laneOf(box)) -
                    row.beside.begin();
      row.parts.push_back(
          {action, picture.labelOf(action), box.from, box.to, lane, 0});
    });
  }

  void addPhase(const Box &box, std::vector<Span> &spans) {
    PhaseId phase = program[box.rows.from].phase;
    phases[phase.value] = true;
    if (spans.empty() || spans.back().phase != phase)
      spans.push_back({phase, box.from, box.to});
    spans.back().to = box.to;
  }

  // ---- Where it is drawn ----

  void layOutWidth() {
    Px names =
        textWidth(fmt::format("rank {}", picture.ranks.back().value), fontSize);
    Px nodeNames = 0;
    for (uint32_t lane : picture.nodeLanes)
      nodeNames = std::max(
          nodeNames, textWidth(program.nodes().lanes[lane], fontSize) + edge);
    names += nodeNames;
    for (uint8_t lane : picture.asyncLanes)
      names =
          std::max(names, textWidth(program.kinds().lanes()[lane], fontSize));
    if (memory)
      names = std::max(names,
                       textWidth(memoryText(maxMemory), smallSize()) + px(2));
    rankNamesEnd = edge + names - nodeNames;
    left = edge + names + edge;
    // Wide enough for the longest label in the shortest box.
    __int128 wanted =
        __int128(longest + px(4)) * (picture.to - picture.from) / shortest;
    plotWidth =
        std::clamp(wanted, __int128(px(240)), __int128(maxDefault)) / 100 * 100;
    Px right = edge + px(4); // Half of the last number of the axis.
    if (options.width)
      plotWidth = std::max(px(options.width) - left - right, px(10));
    width = left + plotWidth + right;
  }

  void layOutHeight() {
    titleLines = wrapped(title, titleSize(), width - 2 * edge);
    bottom = px(6) + Px(titleLines.size()) * titleHeight() + px(4);
    // Room for two lines of text.
    rowHeight = std::max({px(24), 2 * fontSize + px(4),
                          Px(picture.nodeLanes.size()) * laneHeight});
    for (Row &row : rows) {
      row.y = bottom;
      for (Part &part : row.parts) {
        auto [y, height] =
            part.isAsync() ? std::pair(yOfAsyncLane(row, part.line), laneHeight)
                           : lineAt(row, part.line, part.lines);
        part.area = {x(part.from), y, x(part.to) - x(part.from), height};
      }
      bottom += rowHeight + stripHeight + Px(row.beside.size()) * laneStep +
                (memory ? memoryStep : 0) +
                (options.arrows                  ? px(14)
                 : row.beside.empty() && !memory ? px(5)
                                                 : px(9));
    }
  }

  Px smallSize() const { return fontSize * 8 / 10; }
  Px titleSize() const { return fontSize + px(2); }
  Px titleHeight() const { return fontSize + px(5); }

  /// About as wide as the usual fonts make it.
  static Px textWidth(StringRef text, Px size) {
    Px sum = 0;
    for (char c : text)
      sum += size *
             (StringRef("MWmw").contains(c)       ? 92
              : StringRef("iIjl.,: ").contains(c) ? 36
              : StringRef("frt()").contains(c)    ? 44
                                                  : 62) /
             100;
    return sum;
  }

  /// The text in lines of words.
  static std::vector<std::string> wrapped(StringRef text, Px size, Px room) {
    std::vector<std::string> lines(1);
    SmallVector<StringRef> words;
    text.split(words, ' ', -1, /*KeepEmpty=*/false);
    for (StringRef word : words) {
      std::string longer =
          lines.back() + (lines.back().empty() ? "" : " ") + word.str();
      if (!lines.back().empty() && textWidth(longer, size) > room)
        lines.push_back(word.str());
      else
        lines.back() = longer;
    }
    return lines;
  }

  Px x(Time time) const {
    time = std::clamp(time, picture.from, picture.to) - picture.from;
    __int128 span = picture.to - picture.from;
    return left + Px((__int128(time) * plotWidth * 2 + span) / (2 * span));
  }

  /// The top and height of one of the lines that share a row.
  std::pair<Px, Px> lineAt(const Row &row, size_t line, size_t lines) const {
    Px above = rowHeight * line / lines;
    return {row.y + above, Px(rowHeight * (line + 1) / lines) - above};
  }
  /// The top of the i-th lane beside the compute actions of a row.
  Px yOfAsyncLane(const Row &row, size_t i) const {
    return row.y + rowHeight + stripHeight + px(3) + Px(i) * laneStep;
  }

  // ---- Boxes ----

  size_t fillOf(KindId kind, uint32_t chunk) const {
    return firstFill[kind.value] + chunk;
  }

  void draw(const Row &row) {
    text({rankNamesEnd, middle(row.y, rowHeight)},
         fmt::format("rank {}", row.rank.value), Anchor::End);
    svg.area({left, row.y, plotWidth, rowHeight}, ColorRole::Ground);
    size_t lanes = picture.nodeLanes.size();
    for (auto [line, lane] : llvm::enumerate(picture.nodeLanes)) {
      auto [y, height] = lineAt(row, line, lanes);
      laneName(program.nodes().lanes[lane], y, height);
    }
    for (auto [i, lane] : llvm::enumerate(row.beside)) {
      svg.area({left, yOfAsyncLane(row, i), plotWidth, laneHeight},
               ColorRole::Ground);
      laneName(program.kinds().lanes()[lane], yOfAsyncLane(row, i), laneHeight);
    }
    std::vector<Line> marks;
    for (const Part &part : row.parts) {
      uint32_t chunk = picture.chunk(part.action.pipe, part.action.stage);
      svg.box(part.area, fillOf(part.action.kind, chunk));
      addMarks(part.area, chunk, marks);
    }
    svg.lines(marks, ColorRole::Mark);
    for (const Part &part : row.parts)
      label(part);
    for (auto [phase, from, to] : row.spans)
      if (phase != PhaseId())
        strip(x(from), row.y + rowHeight + px(1), x(to) - x(from), phase);
    if (memory)
      drawMemory(row);
  }

  /// Ticks from the upper edge, one for chunk 1, two for chunk 2, as far as
  /// they have room.
  static void addMarks(const Area &area, uint32_t chunk,
                       std::vector<Line> &marks) {
    constexpr uint32_t maxMarks = 7;
    if (chunk > maxMarks || area.width < px(2 * chunk + 1))
      return;
    for (uint32_t i = 0; i != chunk; ++i) {
      Px x = area.x + px(2 * i) + 150;
      marks.push_back({{x, area.y}, {x, area.y + px(4)}});
    }
  }

  void laneName(StringRef name, Px y, Px height) {
    text({left - edge, middle(y, height)}, name, Anchor::End);
  }

  // ---- Labels ----

  bool isTall(const Area &area) const { return area.height >= 2 * fontSize; }

  bool fits(const Part &part, LabelStyle style) const {
    Px letters = textWidth(part.label.letters, style.size),
       number = textWidth(part.label.number, style.size);
    constexpr Px gap = 100;
    letters += gap;
    number += gap;
    // Only a box of a whole row has the height for two lines.
    if (style.isStacked && isTall(part.area))
      return std::max(letters, number) <= part.area.width;
    return part.area.height >= style.size &&
           letters + number - gap <= part.area.width;
  }

  /// The first in which all labels fit, else that in which most do.
  void chooseLabels() {
    std::vector<LabelStyle> styles;
    for (Px tenths : {10, 8, 6})
      for (bool isStacked : {false, true})
        styles.push_back({fontSize * tenths / 10, isStacked});
    std::vector<size_t> counts(styles.size());
    for (const Row &row : rows)
      for (const Part &part : row.parts)
        for (size_t i = 0; i != styles.size(); ++i)
          counts[i] += !part.isAsync() && fits(part, styles[i]);
    style = styles[llvm::max_element(counts) - counts.begin()];
  }

  /// Where it does not fit, the letters alone, else nothing. On a lane beside,
  /// whose name tells more than letters, the number alone.
  void label(const Part &part) {
    const auto &[x, y, width, height] = part.area;
    const auto &[letters, number] = part.label;
    Px center = x + width / 2, size = style.size;
    auto put = [&](Px y, Px height, StringRef content) {
      svg.text({center, middle(y, height, size)}, content, Anchor::Middle,
               ColorRole::Label, size);
    };
    if (height < size)
      return;
    if (fits(part, style)) {
      if (!style.isStacked || !isTall(part.area))
        return put(y, height, (letters.str() + number.str()).str());
      put(y + px(1), height / 2, letters);
      return put(y + height / 2, height / 2, number);
    }
    // Letters as wide as the widest, that narrow ones do not stand alone.
    StringRef first = part.isAsync() ? number.str() : letters.str();
    Px needed = part.isAsync() ? textWidth(first, size)
                               : Px(first.size()) * textWidth("W", size);
    if (needed <= width)
      put(y, height, first);
  }

  /// The baseline of text in the middle of a height.
  Px middle(Px y, Px height, Px size) const {
    return y + height / 2 + size * 35 / 100;
  }
  Px middle(Px y, Px height) const { return middle(y, height, fontSize); }

  void text(Point at, StringRef content, Anchor anchor) {
    svg.text(at, content, anchor, ColorRole::Text, fontSize);
  }

  // ---- Phases and memory ----

  /// A strip under the boxes of a phase.
  void strip(Px x, Px y, Px width, PhaseId phase) {
    svg.area({x, y, width, stripHeight},
             ColorRole(int(ColorRole::Phase0) + (phase.value - 1) % 4));
  }

  static std::string memoryText(decimal::Sum memory) {
    return amount::format(Amount(memory));
  }

  /// What a rank holds over time, over a line at nothing and with one at its
  /// limit.
  void drawMemory(const Row &row) {
    Px high = yOfAsyncLane(row, row.beside.size()) + px(2),
       low = high + memoryHeight;
    auto y = [&](decimal::Sum memory) {
      return low - Px(__int128(memory) * memoryHeight / maxMemory);
    };
    // At each place, where it comes from, the highest, where it goes on.
    decimal::Sum held = memory->model().staticOf(row.rank), highest = held;
    std::vector<Point> points{{left, y(held)}};
    Px at = left;
    auto finish = [&] {
      points.push_back({at, y(highest)});
      if (held != highest)
        points.push_back({at, y(held)});
    };
    memory->walk(row.rank, [&](const MemoryStep &step) {
      if (Px next = x(step.at); next != at) {
        finish();
        at = next;
        points.push_back({at, y(highest = held)});
      } else if (step.at <= picture.from) {
        highest = 0; // What was held before the picture begins.
      }
      highest = std::max(highest, step.memory);
      held = step.memory;
      return step.at < picture.to;
    });
    finish();
    points.push_back({left + plotWidth, y(held)});
    svg.curve(points, low, ColorRole::Memory);
    Line ground = {{left, low}, {left + plotWidth, low}},
         axis = {{left, high}, {left, low}};
    svg.lines({ground, axis}, ColorRole::Line);
    auto limit = memory->model().limitOf(row.rank);
    if (limit)
      svg.lines(Line{{left, y(*limit)}, {left + plotWidth, y(*limit)}},
                ColorRole::Limit, Stroke::Dashed);
    auto number = [&](Px at, decimal::Sum memory, ColorRole ink) {
      svg.text({left - px(3), at + smallSize() * 35 / 100}, memoryText(memory),
               Anchor::End, ink, smallSize());
    };
    // The limit, else the most; they would stand on each other.
    decimal::Sum peak = memory->peak(row.rank).memory;
    Px upper = y(limit ? *limit : peak), below = low - px(2);
    number(upper, limit ? *limit : peak,
           limit ? ColorRole::Limit : ColorRole::Text);
    if (below - upper > smallSize())
      number(below, 0, ColorRole::Text);
  }

  // ---- What goes from rank to rank ----

  /// An arrow from where each action gives its result to where another rank
  /// needs it: from ends to starts, but for hooks.
  void arrows() {
    for (const Row &row : rows)
      picture.forEachBox(row.rank, [&](const Box &box) {
        for (ActionId id : box.rows)
          arrowsFrom(id, row);
      });
  }

  void arrowsFrom(ActionId maker, const Row &row) {
    Action action = program[maker];
    Time end = picture.outputTime(maker);
    forEachReader(program, picture.index, action,
                  [&](uint8_t slotBit, StageId reader, RankId to) {
                    auto id = picture.index.definer(action.pipe, reader,
                                                    action.microbatch, slotBit);
                    auto target = picture.indexOf(to);
                    if (!id || to == row.rank || !target)
                      return;
                    Time start = picture.inputTime(*id);
                    if (start >= picture.to || end < picture.from)
                      return;
                    Px y = rows[*target].y;
                    bool down = y > row.y;
                    svg.lines(Line{{x(end), row.y + (down ? rowHeight : 0)},
                                   {x(start), y + (down ? 0 : rowHeight)}},
                              ColorRole::Line, Stroke::Arrow);
                  });
  }

  // ---- Below the ranks ----

  void axis() {
    uint64_t maxTicks = std::max<Px>(plotWidth / px(60), 1);
    std::vector<Line> lines = {{{left, bottom}, {left + plotWidth, bottom}}};
    picture.forEachTick(maxTicks, [&](Time time) {
      lines.push_back({{x(time), bottom}, {x(time), bottom + px(4)}});
    });
    svg.lines(lines, ColorRole::Line);
    picture.forEachTick(maxTicks, [&](Time time) {
      text({x(time), bottom + px(5) + fontSize}, cost::format(time),
           Anchor::Middle);
    });
  }

  /// Fills rows from the left; from the edge where the names of ranks take much
  /// of the width.
  void layOutLegend() {
    Px begin = width < px(400) ? edge : left, at = begin, row = 0;
    auto add = [&](std::string text, Swatch draw) {
      Entry entry{at, row, std::move(text), std::move(draw)};
      Px needed = entry.swatchWidth() + textWidth(entry.text, fontSize);
      if (at != begin && at + needed > width - edge) {
        entry.x = begin;
        entry.row = ++row;
      }
      at = entry.x + needed + px(12);
      entries.push_back(std::move(entry));
    };
    auto box = [this](KindId kind, uint32_t chunk) {
      return [=, this](Px x, Px y) {
        Area area{x, y, swatch, px(12)};
        svg.box(area, fillOf(kind, chunk));
        std::vector<Line> marks;
        addMarks(area, chunk, marks);
        svg.lines(marks, ColorRole::Mark);
      };
    };
    for (unsigned kind : kinds.set_bits())
      add(picture.legendOf(KindId(kind)), box(KindId(kind), 0));
    const auto &names = program.nodes().names;
    for (unsigned name : nodes.set_bits())
      if (picture.nodeLabels[name] != names[name])
        add(picture.nodeLabels[name] + " " + names[name], nullptr);
    if (hasGroups)
      add("overlapped", [this](Px x, Px y) {
        Px half = px(6), right = x + swatch, low = y + 2 * half;
        Line lines[] = {{{x, y}, {right, y}},
                        {{x, y + half}, {right, y + half}},
                        {{x, low}, {right, low}},
                        {{x, y}, {x, low}},
                        {{right, y}, {right, low}}};
        svg.lines(lines, ColorRole::Line);
      });
    KindId sample(kinds.find_first());
    for (uint32_t chunk = 0;
         picture.maxChunks > 1 && chunk != std::min(picture.maxChunks, 8u);
         ++chunk)
      add(picture.chunkName(chunk), box(sample, chunk));
    phases.reset(0); // No phase.
    for (unsigned phase : phases.set_bits())
      add(program.phases()[phase], [=, this](Px x, Px y) {
        strip(x, y + px(5), swatch, PhaseId(phase));
      });
    if (memory)
      add("memory held", [this](Px x, Px y) {
        Point ends[] = {{x, y + px(3)}, {x + swatch, y + px(3)}};
        svg.curve(ends, y + px(12), ColorRole::Memory);
      });
    if (memory && program.costs().has({Cost::MemoryLimit}))
      add("its limit", [this](Px x, Px y) {
        svg.lines(Line{{x, y + px(6)}, {x + swatch, y + px(6)}},
                  ColorRole::Limit, Stroke::Dashed);
      });
  }

  void legend() {
    for (const Entry &entry : entries) {
      Px y = bottom + axisHeight + entry.row * legendHeight;
      if (entry.draw)
        entry.draw(entry.x, y);
      text({entry.x + entry.swatchWidth(), middle(y, px(12))}, entry.text,
           Anchor::Begin);
    }
  }
};

} // namespace

/// O(boxes).
void ppcc::emitSvg(const Program &program, raw_ostream &out,
                   EmitContext &context) {
  constexpr size_t maxParts = 50'000;
  auto picture = Picture::make(program, context);
  if (!picture)
    return;
  if (size_t parts = picture->numParts(); parts > maxParts)
    return context.diags.refuse<diag::PictureTooLarge>(
        Location(program.name()), parts, "boxes", maxParts, "an svg");
  Svg svg(out);
  Figure{*picture, context.options.picture, svg}.draw();
}
