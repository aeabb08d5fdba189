// Draws a program for papers: a row a rank, an axis of time, a legend.
#include "Canvas.h"
#include "ppcc/Analysis/Dependences.h"
#include "ppcc/Analysis/MemoryCurve.h"
#include "ppcc/Basic/Diagnostics/Pictures.h"

using namespace ppcc;

ArrayRef<Line> ppcc::hatchLines(Hatch hatch) {
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

namespace {

class Figure {
public:
  Figure(const Picture &picture, const PictureOptions &options, Canvas &canvas)
      : picture(picture), options(options), program(picture.program),
        fontSize(px(options.fontSize)), canvas(canvas) {
    survey();
    if (options.memory)
      surveyMemory();
    layOut();
    chooseLabels();
  }

  void draw() {
    Sheet sheet;
    sheet.title = options.title.empty() ? picture.title() : options.title;
    sheet.fontSize = fontSize;
    std::vector<std::string> title =
        wrapped(sheet.title, fontSize + px(2), width - 2 * edge);
    top = px(6) + Px(title.size()) * (fontSize + px(5)) + px(4);
    for (Row &row : rows)
      row.y += top;
    bottom += top;
    sheet.width = width;
    sheet.height = bottom + axisHeight + legendRows() * legendHeight + edge;
    for (KindId kind : program.kinds().ids()) {
      firstFill.push_back(sheet.fills.size());
      for (uint32_t chunk = 0; kinds[kind.value] && chunk != picture.maxChunks;
           ++chunk)
        sheet.fills.push_back(
            {picture.fill(kind, chunk), picture.lookOf(kind).hatch});
    }
    canvas.begin(sheet);
    for (auto [i, line] : llvm::enumerate(title))
      canvas.text({edge, px(4) + Px(i + 1) * (fontSize + px(5)) - px(3)}, line,
                  Anchor::Begin, Ink::Text, fontSize + px(2));
    for (const Row &row : rows)
      draw(row);
    if (options.arrows)
      arrows();
    axis();
    legend();
    canvas.end();
  }

private:
  static constexpr Px stripHeight = px(3), edge = px(6), swatch = px(16),
                      axisHeight = px(24), legendHeight = px(18),
                      laneHeight = px(14), laneStep = laneHeight + px(2),
                      memoryHeight = px(26), memoryStep = memoryHeight + px(6);
  /// Beyond this, labels give way.
  static constexpr Px maxDefault = px(6000);

  /// The row of a rank.
  struct Row {
    RankId rank;
    Px y;
    std::vector<uint8_t> beside; ///< Its lanes below the compute actions.
  };

  // ---- What there is to draw ----

  /// The kinds, phases and nodes, the shortest box, the longest label.
  void survey() {
    shortest = picture.to - picture.from;
    kinds.resize(program.kinds().size());
    phases.resize(program.phases().size());
    nodes.resize(program.nodes().names.size());
    auto add = [&](const Action &action, const BoxLabel &label, Time time) {
      shortest = std::min(shortest, time);
      kinds[action.kind.value] = true;
      longest = std::max(longest, textWidth(label.letters, fontSize) +
                                      textWidth(label.number, fontSize));
    };
    for (RankId rank : picture.ranks) {
      picture.forEachBox(rank, [&](const Box &box) {
        phases[program[box.rows.from].phase.value] = true;
        if (picture.forEachNode(box, [&](const NodeBox &node) {
              nodes[node.node->name] = true;
              add(node.action, labelOf(picture, node), node.to - node.from);
            }))
          return;
        hasGroups |= box.rows.size() > 1;
        for (ActionId row : box.rows)
          add(program[row], labelOf(picture, program[row]), box.to - box.from);
      });
      picture.forEachBoxBeside(rank, [&](const Box &box, uint8_t) {
        kinds[program[box.rows.from].kind.value] = true;
      });
    }
  }

  /// What the scale of memory reaches to.
  void surveyMemory() {
    memory.emplace(program, picture.times);
    for (RankId rank : picture.ranks) {
      mostMemory = std::max(mostMemory, memory->peak(rank).memory);
      if (auto limit = memory->model().limitOf(rank))
        mostMemory = std::max<decimal::Sum>(mostMemory, *limit);
    }
    mostMemory = std::max<decimal::Sum>(mostMemory, 1);
  }

  void layOut() {
    Px names =
        textWidth(fmt::format("rank {}", picture.ranks.back().value), fontSize);
    Px nodeNames = 0;
    for (uint32_t lane : picture.nodeLanes)
      nodeNames = std::max(
          nodeNames, textWidth(program.nodes().lanes[lane], fontSize) + edge);
    names += nodeNames;
    for (uint8_t lane : picture.lanesBeside)
      names =
          std::max(names, textWidth(program.kinds().lanes()[lane], fontSize));
    if (memory)
      names = std::max(names,
                       textWidth(memoryText(mostMemory), smallSize()) + px(2));
    rankNamesEnd = edge + names - nodeNames;
    left = edge + names + edge;
    // Room for two lines of text.
    rowHeight = std::max({rowHeight, 2 * fontSize + px(4),
                          Px(picture.nodeLanes.size()) * laneHeight});
    // Wide enough for the longest label in the shortest box.
    __int128 wanted =
        __int128(longest + px(4)) * (picture.to - picture.from) / shortest;
    plotWidth =
        std::clamp(wanted, __int128(px(240)), __int128(maxDefault)) / 100 * 100;
    Px right = edge + px(4); // Half of the last number of the axis.
    if (options.width)
      plotWidth = std::max(px(options.width) - left - right, px(10));
    for (RankId rank : picture.ranks) {
      rows.push_back({rank, bottom, picture.lanesBesideOf(rank)});
      bottom += rowHeight + stripHeight +
                Px(rows.back().beside.size()) * laneStep +
                (memory ? memoryStep : 0) +
                (options.arrows                          ? px(14)
                 : rows.back().beside.empty() && !memory ? px(5)
                                                         : px(9));
    }
    width = left + plotWidth + right;
  }

  Px smallSize() const { return fontSize * 8 / 10; }

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

  // ---- Boxes ----

  /// A node, a member of a group or an action, and where it is drawn.
  struct Part {
    Action action;
    BoxLabel label;
    Area area;
    bool isBeside = false;
  };

  size_t fillOf(KindId kind, uint32_t chunk) const {
    return firstFill[kind.value] + chunk;
  }

  void draw(const Row &row) {
    text({rankNamesEnd, middle(row.y, rowHeight)},
         fmt::format("rank {}", row.rank.value), Anchor::End);
    canvas.area({left, row.y, plotWidth, rowHeight}, Ink::Ground);
    for (size_t line = 0; line != picture.nodeLanes.size(); ++line) {
      auto [y, height] = laneAt(row.y, line);
      laneName(program.nodes().lanes[picture.nodeLanes[line]], y, height);
    }
    for (auto [i, lane] : llvm::enumerate(row.beside)) {
      canvas.area({left, yBeside(row, i), plotWidth, laneHeight}, Ink::Ground);
      laneName(program.kinds().lanes()[lane], yBeside(row, i), laneHeight);
    }
    std::vector<Line> marks;
    forEachPart(row, [&](const Part &part) {
      uint32_t chunk = picture.chunk(part.action.pipe, part.action.stage);
      canvas.box(part.area, fillOf(part.action.kind, chunk));
      addMarks(part.area, chunk, marks);
    });
    canvas.lines(marks, Ink::Mark);
    forEachPart(row, [&](const Part &part) { label(part); });
    strips(row);
    if (memory)
      drawMemory(row);
  }

  /// Ticks from the upper edge, one for chunk 1, two for chunk 2, as far as
  /// they have room.
  static void addMarks(const Area &area, uint32_t chunk,
                       std::vector<Line> &marks) {
    constexpr uint32_t most = 7;
    if (chunk > most || area.width < px(2 * chunk + 1))
      return;
    for (uint32_t i = 0; i != chunk; ++i) {
      Px x = area.x + px(2 * i) + 150;
      marks.push_back({{x, area.y}, {x, area.y + px(4)}});
    }
  }

  void laneName(StringRef name, Px y, Px height) {
    text({left - edge, middle(y, height)}, name, Anchor::End);
  }
  /// The top of the i-th lane beside the compute actions of a row.
  Px yBeside(const Row &row, size_t i) const {
    return row.y + rowHeight + stripHeight + px(3) + Px(i) * laneStep;
  }

  /// The top and height of a lane of nodes in a row.
  std::pair<Px, Px> laneAt(Px top, size_t line) const {
    Px lanes = Px(picture.nodeLanes.size()), above = rowHeight * line / lanes;
    return {top + above, rowHeight * (line + 1) / lanes - above};
  }

  /// Calls `visit(Part)` for all that is in a row.
  template <class Visit> void forEachPart(const Row &row, Visit visit) const {
    auto add = [&](const Action &action, BoxLabel label, Time from, Time to,
                   Px y, Px height, bool isBeside = false) {
      Px left = x(from);
      visit(Part{
          action, std::move(label), {left, y, x(to) - left, height}, isBeside});
    };
    picture.forEachBox(row.rank, [&](const Box &box) {
      if (picture.forEachNode(box, [&](const NodeBox &node) {
            auto [y, height] = laneAt(row.y, picture.lineOf(*node.node));
            add(node.action, labelOf(picture, node), node.from, node.to, y,
                height);
          }))
        return;
      Px members = box.rows.size();
      for (auto [i, id] : llvm::enumerate(box.rows)) {
        Px above = rowHeight * i / members,
           below = rowHeight * (i + 1) / members;
        add(program[id], labelOf(picture, program[id]), box.from, box.to,
            row.y + above, below - above);
      }
    });
    picture.forEachBoxBeside(row.rank, [&](const Box &box, uint8_t lane) {
      size_t i = llvm::lower_bound(row.beside, lane) - row.beside.begin();
      const Action &action = program[box.rows.from];
      add(action, labelOf(picture, action), box.from, box.to, yBeside(row, i),
          laneHeight, /*isBeside=*/true);
    });
  }

  // ---- Labels ----

  /// All labels of a figure stand in one way.
  struct LabelStyle {
    Px size = 0;
    bool isStacked = false; ///< The number below the letters.
  };

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
      forEachPart(row, [&](const Part &part) {
        for (size_t i = 0; i != styles.size(); ++i)
          counts[i] += !part.isBeside && fits(part, styles[i]);
      });
    style = styles[llvm::max_element(counts) - counts.begin()];
  }

  /// Where it does not fit, the letters alone, else nothing. On a lane beside,
  /// whose name tells more than letters, the number alone.
  void label(const Part &part) {
    const auto &[x, y, width, height] = part.area;
    const auto &[letters, number] = part.label;
    Px center = x + width / 2, size = style.size;
    auto put = [&](Px y, Px height, StringRef content) {
      canvas.text({center, middle(y, height, size)}, content, Anchor::Middle,
                  Ink::Label, size);
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
    StringRef first = part.isBeside ? number.str() : letters.str();
    Px needed = part.isBeside ? textWidth(first, size)
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
    canvas.text(at, content, anchor, Ink::Text, fontSize);
  }

  // ---- Phases and memory ----

  /// A strip under the boxes of a phase, from the first to the last of them.
  void strips(const Row &row) {
    PhaseId phase;
    Time from = 0, to = 0;
    auto finish = [&] {
      if (phase != PhaseId())
        strip(x(from), row.y + rowHeight + px(1), x(to) - x(from), phase);
    };
    picture.forEachBox(row.rank, [&](const Box &box) {
      PhaseId next = program[box.rows.from].phase;
      if (next != phase) {
        finish();
        phase = next;
        from = box.from;
      }
      to = box.to;
    });
    finish();
  }

  void strip(Px x, Px y, Px width, PhaseId phase) {
    canvas.area({x, y, width, stripHeight},
                Ink(int(Ink::Phase0) + (phase.value - 1) % 4));
  }

  static std::string memoryText(decimal::Sum memory) {
    return amount::format(Amount(memory));
  }

  /// What a rank holds over time, over a line at nothing and with one at its
  /// limit.
  void drawMemory(const Row &row) {
    Px high = yBeside(row, row.beside.size()) + px(2),
       low = high + memoryHeight;
    auto y = [&](decimal::Sum memory) {
      return low - Px(__int128(memory) * memoryHeight / mostMemory);
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
    canvas.curve(points, low, Ink::Memory);
    Line ground = {{left, low}, {left + plotWidth, low}},
         axis = {{left, high}, {left, low}};
    canvas.lines({ground, axis}, Ink::Line);
    auto limit = memory->model().limitOf(row.rank);
    if (limit)
      canvas.dashes({{left, y(*limit)}, {left + plotWidth, y(*limit)}},
                    Ink::Limit);
    auto number = [&](Px at, decimal::Sum memory, Ink ink) {
      canvas.text({left - px(3), at + smallSize() * 35 / 100},
                  memoryText(memory), Anchor::End, ink, smallSize());
    };
    // The limit, else the most; they would stand on each other.
    decimal::Sum peak = memory->peak(row.rank).memory;
    Px upper = y(limit ? *limit : peak), below = low - px(2);
    number(upper, limit ? *limit : peak, limit ? Ink::Limit : Ink::Text);
    if (below - upper > smallSize())
      number(below, 0, Ink::Text);
  }

  // ---- What goes from rank to rank ----

  /// An arrow from where each action gives its result to where another rank
  /// needs it: from ends to starts, but for hooks.
  void arrows() {
    std::vector<uint32_t> rowOfRank(program.numRanks(), Simulation::none);
    for (size_t row = 0; row != rows.size(); ++row)
      rowOfRank[rows[row].rank.value] = static_cast<uint32_t>(row);
    for (size_t row = 0; row != rows.size(); ++row)
      picture.forEachBox(rows[row].rank, [&](const Box &box) {
        for (ActionId id : box.rows)
          arrowsFrom(id, row, rowOfRank);
      });
  }

  void arrowsFrom(ActionId maker, size_t row, ArrayRef<uint32_t> rowOfRank) {
    Action action = program[maker];
    Time end = picture.givenAt(maker);
    forEachReader(program, picture.index, action,
                  [&](uint8_t slotBit, StageId reader, RankId to) {
                    auto id = picture.index.definer(action.pipe, reader,
                                                    action.microbatch, slotBit);
                    uint32_t target = rowOfRank[to.value];
                    if (!id || target == Simulation::none || target == row)
                      return;
                    Time start = picture.neededAt(*id);
                    if (start >= picture.to || end < picture.from)
                      return;
                    bool down = target > row;
                    canvas.arrow(
                        {{x(end), rows[row].y + (down ? rowHeight : 0)},
                         {x(start), rows[target].y + (down ? 0 : rowHeight)}});
                  });
  }

  // ---- Below the ranks ----

  void axis() {
    Time step = tickStep(picture.to - picture.from,
                         std::max<Px>(plotWidth / px(60), 1));
    std::vector<Line> lines = {{{left, bottom}, {left + plotWidth, bottom}}};
    Time first = (picture.from + step - 1) / step * step;
    for (Time time = first; time <= picture.to; time += step)
      lines.push_back({{x(time), bottom}, {x(time), bottom + px(4)}});
    canvas.lines(lines, Ink::Line);
    for (Time time = first; time <= picture.to; time += step)
      text({x(time), bottom + px(5) + fontSize}, cost::format(time),
           Anchor::Middle);
  }

  /// An entry of the legend: draws its swatch at a place.
  struct Entry {
    std::function<void(Px x, Px y)> draw;
    std::string text;
  };

  std::vector<Entry> entries() {
    std::vector<Entry> result;
    if (options.hidesLegend)
      return result;
    auto box = [this](KindId kind, uint32_t chunk) {
      return [=, this](Px x, Px y) {
        Area area{x, y, swatch, px(12)};
        canvas.box(area, fillOf(kind, chunk));
        std::vector<Line> marks;
        addMarks(area, chunk, marks);
        canvas.lines(marks, Ink::Mark);
      };
    };
    std::optional<KindId> sample;
    for (KindId kind : program.kinds().ids())
      if (kinds[kind.value]) {
        sample = sample.value_or(kind);
        const KindInfo &info = program.kinds()[kind];
        std::string words = kindWords(program.kinds(), info);
        if (info.isDeclared())
          words = info.letters + " " + words;
        result.push_back(
            {box(kind, 0), picture.lookOf(kind).label + " " + words});
      }
    for (size_t name = 0; name != nodes.size(); ++name)
      if (nodes[name] &&
          picture.nodeLabels[name] != program.nodes().names[name])
        result.push_back({nullptr, picture.nodeLabels[name] + " " +
                                       program.nodes().names[name]});
    if (hasGroups)
      result.push_back({[this](Px x, Px y) {
                          Px half = px(6);
                          Line lines[] = {
                              {{x, y}, {x + swatch, y}},
                              {{x, y + half}, {x + swatch, y + half}},
                              {{x, y + 2 * half}, {x + swatch, y + 2 * half}},
                              {{x, y}, {x, y + 2 * half}},
                              {{x + swatch, y}, {x + swatch, y + 2 * half}}};
                          canvas.lines(lines, Ink::Line);
                        },
                        "overlapped"});
    for (uint32_t chunk = 0;
         picture.maxChunks > 1 && chunk != std::min(picture.maxChunks, 8u);
         ++chunk)
      result.push_back({box(*sample, chunk), picture.chunkWords(chunk)});
    for (uint32_t phase = 1; phase < phases.size(); ++phase)
      if (phases[phase])
        result.push_back({[=, this](Px x, Px y) {
                            strip(x, y + px(5), swatch, PhaseId(phase));
                          },
                          program.phases()[phase]});
    if (memory)
      result.push_back({[this](Px x, Px y) {
                          Point ends[] = {{x, y + px(3)},
                                          {x + swatch, y + px(3)}};
                          canvas.curve(ends, y + px(12), Ink::Memory);
                        },
                        "memory held"});
    if (memory && program.costs().has({Cost::MemoryLimit}))
      result.push_back({[this](Px x, Px y) {
                          canvas.dashes(
                              {{x, y + px(6)}, {x + swatch, y + px(6)}},
                              Ink::Limit);
                        },
                        "its limit"});
    return result;
  }

  /// Calls `visit(entry, x, row)` for each entry, filling rows from the left;
  /// from the edge where the names of ranks take much of the width.
  template <class Visit> void forEachEntry(Visit visit) {
    Px begin = width < px(400) ? edge : left, at = begin, row = 0;
    for (Entry &entry : entries()) {
      Px shown = entry.draw ? swatch + px(4) : 0;
      Px needed = shown + textWidth(entry.text, fontSize);
      if (at != begin && at + needed > width - edge) {
        at = begin;
        ++row;
      }
      visit(entry, at, row);
      at += needed + px(12);
    }
  }

  Px legendRows() {
    Px rows = 0;
    forEachEntry([&](Entry &, Px, Px row) { rows = row + 1; });
    return rows;
  }

  void legend() {
    forEachEntry([&](Entry &entry, Px x, Px row) {
      Px y = bottom + axisHeight + row * legendHeight;
      if (entry.draw)
        entry.draw(x, y);
      text({x + (entry.draw ? swatch + px(4) : 0), middle(y, px(12))},
           entry.text, Anchor::Begin);
    });
  }

  const Picture &picture;
  const PictureOptions &options;
  const Program &program;
  const Px fontSize;
  Canvas &canvas;
  std::vector<Row> rows;
  std::vector<bool> kinds, phases, nodes; ///< Those that are shown.
  std::vector<size_t> firstFill;          ///< By kind.
  std::optional<MemoryCurve> memory;
  decimal::Sum mostMemory = 0;
  bool hasGroups = false;
  Time shortest = 0; ///< Of the boxes.
  Px longest = 0;    ///< Of the labels.
  LabelStyle style;
  Px rowHeight = px(24), rankNamesEnd = 0;
  Px left = 0, top = 0, plotWidth = 0, width = 0, bottom = 0;
};

} // namespace

void ppcc::emitFigure(const Program &program, EmitContext &context,
                      Canvas &canvas, StringRef noun) {
  constexpr size_t maxParts = 50'000;
  auto picture = Picture::make(program, context);
  if (!picture)
    return;
  if (size_t parts = picture->numParts(); parts > maxParts)
    return context.diags.refuse<diag::PictureTooLarge>(
        Place(program.name()), parts, "boxes", maxParts, noun.str());
  Figure(*picture, context.options.picture, canvas).draw();
}
