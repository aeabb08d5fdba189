// Draws a program as a vector graphic for papers.
#include "Emitters.h"
#include "Picture.h"
#include "ppcc/Analysis/Dependences.h"
#include "ppcc/Basic/Diagnostics/Pictures.h"

#include "llvm/ADT/SmallString.h"

#include <fmt/format.h>

#include <functional>

using namespace ppcc;
using llvm::StringRef;

namespace {

/// A length in hundredths of a pixel: exact sums, and the same text everywhere.
using Px = int64_t;
constexpr Px px(int64_t pixels) { return pixels * 100; }

class Svg {
public:
  Svg(const Picture &picture, const PictureOptions &options,
      llvm::raw_ostream &out)
      : picture(picture), options(options), program(picture.program),
        fontSize(px(options.fontSize)), writer(out) {
    survey();
    layOut();
  }

  void emit() {
    head();
    patterns();
    for (size_t row = 0; row != picture.ranks.size(); ++row)
      rank(row);
    if (options.arrows)
      arrows();
    axis();
    legend();
    writer.put("</svg>\n");
  }

private:
  static constexpr Px stripHeight = px(3), top = px(26), edge = px(6),
                      swatch = px(16), axisHeight = px(22),
                      legendHeight = px(20), laneHeight = px(14),
                      laneStep = laneHeight + px(2);
  /// Beyond this, labels give way.
  static constexpr Px maxDefault = px(6000);

  /// What there is to draw: the kinds and phases, the shortest box, the longest
  /// label.
  void survey() {
    shortest = picture.to - picture.from;
    kinds.resize(program.kinds().size());
    phases.resize(program.phases().size());
    for (RankId rank : picture.ranks)
      picture.forEachBox(rank, [&](const Box &box) {
        shortest = std::min(shortest, box.to - box.from);
        if (picture.forEachNode(box,
                                [&](const NodeBox &node) { survey(node); }))
          return void(phases[program[box.rows.from].phase.value] = true);
        hasGroups |= box.rows.size() > 1;
        for (ActionId row : box.rows) {
          Action action = program[row];
          kinds[action.kind.value] = true;
          phases[action.phase.value] = true;
          longest = std::max(longest, textWidth(label(action)));
        }
      });
    for (RankId rank : picture.ranks)
      picture.forEachBoxBeside(rank, [&](const Box &box, uint8_t) {
        kinds[program[box.rows.from].kind.value] = true;
      });
  }

  void survey(const NodeBox &node) {
    shortest = std::min(shortest, node.to - node.from);
    kinds[node.action.kind.value] = true;
    longest = std::max(longest, textWidth(label(node.action)));
  }

  void layOut() {
    left = edge +
           textWidth(fmt::format("rank {}", picture.ranks.back().value)) + edge;
    for (const std::string &lane : picture.lanes())
      laneNames = std::max(laneNames, textWidth(lane) + edge);
    for (uint8_t lane : picture.lanesBeside)
      laneNames =
          std::max(laneNames, textWidth(program.kinds().lanes()[lane]) + edge);
    left += laneNames;
    // Room for two lines of text.
    rowHeight = std::max({rowHeight, 2 * fontSize + px(4),
                          Px(picture.lanes().size()) * laneHeight});
    // Wide enough for the longest label in the shortest box.
    __int128 wanted =
        __int128(longest + px(4)) * (picture.to - picture.from) / shortest;
    plotWidth =
        std::clamp(wanted, __int128(px(240)), __int128(maxDefault)) / 100 * 100;
    if (options.width)
      plotWidth = std::max(px(options.width) - left - edge, px(10));
    rowStep = rowHeight + stripHeight +
              Px(picture.lanesBeside.size()) * laneStep +
              (options.arrows                ? px(14)
               : picture.lanesBeside.empty() ? px(5)
                                             : px(9));
    bottom = top + Px(picture.ranks.size()) * rowStep;
    width = left + plotWidth + edge;
  }

  /// About as wide as the fonts of `head` make it.
  Px textWidth(StringRef text) const {
    Px sum = 0;
    for (char c : text)
      sum += fontSize * (StringRef("MWmw").contains(c) ? 100 : 62) / 100;
    return sum;
  }

  llvm::SmallString<16> label(const Action &action) const {
    llvm::SmallString<16> text;
    appendLabel(program, action, text);
    return text;
  }

  Px x(Time time) const {
    time = std::clamp(time, picture.from, picture.to) - picture.from;
    __int128 span = picture.to - picture.from;
    return left + Px((__int128(time) * plotWidth * 2 + span) / (2 * span));
  }
  Px y(size_t row) const { return top + Px(row) * rowStep; }

  void head() {
    Px height = bottom + axisHeight + legendRows() * legendHeight + edge;
    tag("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", width,
        "\" height=\"", height, "\" viewBox=\"0 0 ", width, " ", height,
        "\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"",
        fontSize, "\">\n<title>");
    std::string title =
        escapedMarkup(options.title.empty() ? picture.title() : options.title);
    tag(title, "</title>\n<rect width=\"", width, "\" height=\"", height,
        "\" fill=\"#fff\"/>\n<text x=\"", edge, "\" y=\"", px(15),
        "\" font-size=\"", fontSize + px(2), "\">", title, "</text>\n");
  }

  /// The fills: a colour for each kind and chunk, hatched by kind.
  void patterns() {
    tag("<defs>\n");
    for (KindId kind : program.kinds().ids())
      for (uint32_t chunk = 0; kinds[kind.value] && chunk != picture.maxChunks;
           ++chunk)
        pattern(kind, chunk);
    if (options.arrows)
      tag("<marker id=\"head\" viewBox=\"0 0 6 6\" refX=\"6\" refY=\"3\" "
          "markerWidth=\"5\" markerHeight=\"5\" orient=\"auto\">"
          "<path d=\"M0 0L6 3L0 6z\" fill=\"#333\"/></marker>\n");
    tag("</defs>\n");
  }

  void pattern(KindId kind, uint32_t chunk) {
    tag("<pattern id=\"", fillName(kind, chunk),
        "\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">"
        "<rect width=\"6\" height=\"6\" fill=\"",
        picture.fill(kind, chunk).hex(), "\"/>");
    switch (lookOf(program.kinds()[kind]).hatch) {
    case Hatch::None:
      break;
    case Hatch::Rising:
      tag("<path d=\"M-1 1L1 -1M0 6L6 0M5 7L7 5\" stroke=\"#000\" "
          "stroke-opacity=\".25\" stroke-width=\".8\"/>");
      break;
    case Hatch::Falling:
      tag("<path d=\"M-1 5L1 7M0 0L6 6M5 -1L7 1\" stroke=\"#000\" "
          "stroke-opacity=\".25\" stroke-width=\".8\"/>");
      break;
    case Hatch::Dots:
      tag("<circle cx=\"3\" cy=\"3\" r=\".8\" fill-opacity=\".3\"/>");
      break;
    }
    tag("</pattern>\n");
  }

  static std::string fillName(KindId kind, uint32_t chunk) {
    return fmt::format("k{}c{}", kind.value, chunk);
  }
  std::string fillName(const Action &action) const {
    return fillName(action.kind, picture.chunk(action.pipe, action.stage));
  }

  void rank(size_t row) {
    RankId rank = picture.ranks[row];
    tag("<g>\n<text x=\"", left - laneNames - edge, "\" y=\"",
        middle(y(row), rowHeight), "\" text-anchor=\"end\">rank ",
        fmt::to_string(rank.value), "</text>\n");
    ground(y(row), rowHeight);
    for (size_t lane = 0; lane != picture.lanes().size(); ++lane) {
      auto [y, height] = laneAt(this->y(row), lane);
      laneName(picture.lanes()[lane], y, height);
    }
    for (size_t i = 0; i != picture.lanesBeside.size(); ++i) {
      ground(yBeside(row, i), laneHeight);
      laneName(program.kinds().lanes()[picture.lanesBeside[i]], yBeside(row, i),
               laneHeight);
    }
    tag("<g stroke=\"#333\" stroke-width=\".5\">\n");
    forEachPart(row, [&](const Part &part) {
      fillRect(part.from, part.y, part.to - part.from, part.height,
               fillName(part.action));
    });
    tag("</g>\n<g text-anchor=\"middle\">\n");
    forEachPart(row, [&](const Part &part) { label(part); });
    tag("</g>\n");
    strips(rank, y(row) + rowHeight + px(1));
    tag("</g>\n");
  }

  /// What is behind the boxes of a row or lane.
  void ground(Px y, Px height) {
    tag("<rect x=\"", left, "\" y=\"", y, "\" width=\"", plotWidth,
        "\" height=\"", height, "\" fill=\"#f4f4f4\"/>\n");
  }
  void laneName(StringRef name, Px y, Px height) {
    tag("<text x=\"", left - edge, "\" y=\"", middle(y, height),
        "\" text-anchor=\"end\">", escapedMarkup(name), "</text>\n");
  }
  /// The top of the i-th lane beside the compute actions of a row.
  Px yBeside(size_t row, size_t i) const {
    return y(row) + rowHeight + stripHeight + px(3) + Px(i) * laneStep;
  }

  /// The top and height of a lane in a row.
  std::pair<Px, Px> laneAt(Px top, size_t lane) const {
    Px lanes = Px(picture.lanes().size()), above = rowHeight * lane / lanes;
    return {top + above, rowHeight * (lane + 1) / lanes - above};
  }

  /// A node, a member of a group or an action, and where it is drawn.
  struct Part {
    Action action;
    Px from, to, y, height;
    bool isBeside = false;
  };

  /// Calls `visit(Part)` for all that is in a row.
  template <class Visit> void forEachPart(size_t row, Visit visit) const {
    RankId rank = picture.ranks[row];
    picture.forEachBox(
        rank, [&](const Box &box) { forEachPart(box, y(row), visit); });
    picture.forEachBoxBeside(rank, [&](const Box &box, uint8_t lane) {
      size_t i = llvm::lower_bound(picture.lanesBeside, lane) -
                 picture.lanesBeside.begin();
      visit(Part{program[box.rows.from], x(box.from), x(box.to),
                 yBeside(row, i), laneHeight, /*isBeside=*/true});
    });
  }
  /// For each node of a box, each in its lane, or for each member.
  template <class Visit>
  void forEachPart(const Box &box, Px top, Visit visit) const {
    if (picture.forEachNode(box, [&](const NodeBox &node) {
          auto [y, height] = laneAt(top, node.node->lane);
          visit(Part{node.action, x(node.from), x(node.to), y, height});
        }))
      return;
    Px members = box.rows.size();
    for (auto [i, row] : llvm::enumerate(box.rows)) {
      Px above = rowHeight * i / members, below = rowHeight * (i + 1) / members;
      visit(Part{program[row], x(box.from), x(box.to), top + above,
                 below - above});
    }
  }

  void fillRect(Px x, Px y, Px width, Px height, StringRef fill) {
    tag("<rect x=\"", x, "\" y=\"", y, "\" width=\"", width, "\" height=\"",
        height, "\" fill=\"url(#", fill, ")\"/>\n");
  }

  /// The baseline of text in the middle of a height.
  Px middle(Px y, Px height) const {
    return y + height / 2 + fontSize * 35 / 100;
  }

  /// In one line, else in two, else the letters alone, else nothing. On a lane
  /// beside, whose name tells more than letters, else the number alone.
  void label(const Part &part) {
    auto [action, from, to, y, height, isBeside] = part;
    Px room = to - from, center = (from + to) / 2;
    llvm::SmallString<16> whole = label(action);
    StringRef letters = program.kindOf(action).letters,
              number = StringRef(whole).drop_front(letters.size());
    if (height < fontSize)
      return;
    if (textWidth(whole) <= room)
      return text(center, middle(y, height), whole);
    StringRef first = isBeside ? number : letters;
    if (first.empty() || textWidth(first) > room)
      return;
    bool twoLines =
        !isBeside && height >= 2 * fontSize && textWidth(number) <= room;
    text(center, middle(y, twoLines ? height / 2 : height), first);
    if (twoLines)
      text(center, middle(y + height / 2, height / 2), number);
  }

  void text(Px x, Px y, StringRef content) {
    tag("<text x=\"", x, "\" y=\"", y, "\">", content, "</text>\n");
  }

  /// A strip under the boxes of a phase, from the first to the last of them.
  void strips(RankId rank, Px y) {
    PhaseId phase;
    Time from = 0, to = 0;
    auto finish = [&] {
      if (phase != PhaseId())
        strip(x(from), y, x(to) - x(from), phase);
    };
    picture.forEachBox(rank, [&](const Box &box) {
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
    // Greys that follow each other differ much.
    constexpr StringRef greys[] = {"#222", "#aaa", "#666", "#ddd"};
    tag("<rect x=\"", x, "\" y=\"", y, "\" width=\"", width, "\" height=\"",
        stripHeight, "\" fill=\"", greys[(phase.value - 1) % std::size(greys)],
        "\"/>\n");
  }

  /// An arrow from where each action gives its result to where another rank
  /// needs it: from ends to starts, but for hooks.
  void arrows() {
    std::vector<uint32_t> rowOfRank(program.numRanks(), Simulation::none);
    for (size_t row = 0; row != picture.ranks.size(); ++row)
      rowOfRank[picture.ranks[row].value] = static_cast<uint32_t>(row);
    tag("<g stroke=\"#333\" stroke-width=\".7\" fill=\"none\">\n");
    for (size_t row = 0; row != picture.ranks.size(); ++row)
      picture.forEachBox(picture.ranks[row], [&](const Box &box) {
        for (ActionId id : box.rows)
          arrowsFrom(id, row, rowOfRank);
      });
    tag("</g>\n");
  }

  void arrowsFrom(ActionId maker, size_t row,
                  llvm::ArrayRef<uint32_t> rowOfRank) {
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
                    tag("<path d=\"M", x(end), " ",
                        y(row) + (down ? rowHeight : 0), "L", x(start), " ",
                        y(target) + (down ? 0 : rowHeight),
                        "\" marker-end=\"url(#head)\"/>\n");
                  });
  }

  void axis() {
    tag("<g text-anchor=\"middle\">\n<path d=\"M", left, " ", bottom, "H",
        left + plotWidth);
    Time step = tickStep(picture.to - picture.from,
                         std::max<Px>(plotWidth / px(60), 1));
    Time first = (picture.from + step - 1) / step * step;
    for (Time time = first; time <= picture.to; time += step)
      tag("M", x(time), " ", bottom, "v4");
    tag("\" stroke=\"#333\" fill=\"none\"/>\n");
    for (Time time = first; time <= picture.to; time += step)
      text(x(time), bottom + px(14), cost::format(time));
    tag("</g>\n");
  }

  /// An entry of the legend: draws its swatch at a place, or nothing for a text
  /// by itself.
  struct Entry {
    std::function<void(Px x, Px y)> draw;
    Px swatchWidth;
    std::string text;
  };

  std::vector<Entry> entries() {
    std::vector<Entry> result;
    if (options.hidesLegend)
      return result;
    auto box = [this](KindId kind, uint32_t chunk) {
      return [=, this](Px x, Px y) {
        tag("<g stroke=\"#333\" stroke-width=\".5\">");
        fillRect(x, y, swatch, px(12), fillName(kind, chunk));
        tag("</g>");
      };
    };
    std::optional<KindId> sample;
    for (KindId kind : program.kinds().ids())
      if (kinds[kind.value]) {
        sample = sample.value_or(kind);
        const KindInfo &info = program.kinds()[kind];
        result.push_back(
            {box(kind, 0), swatch,
             info.letters + " " + kindWords(program.kinds(), info)});
      }
    if (hasGroups)
      result.push_back({[this](Px x, Px y) {
                          tag("<path d=\"M", x, " ", y,
                              "h16v12h-16zm0 6h16\" "
                              "fill=\"#fff\" stroke=\"#333\" "
                              "stroke-width=\".5\"/>\n");
                        },
                        swatch, "overlapped"});
    for (uint32_t chunk = 0;
         picture.maxChunks > 1 && chunk != std::min(picture.maxChunks, 8u);
         ++chunk)
      result.push_back(
          {box(*sample, chunk), swatch, picture.chunkWords(chunk)});
    for (uint32_t phase = 1; phase < phases.size(); ++phase)
      if (phases[phase])
        result.push_back({[=, this](Px x, Px y) {
                            strip(x, y + px(5), swatch, PhaseId(phase));
                          },
                          swatch, program.phases()[phase]});
    return result;
  }

  /// Calls `visit(entry, x, row)` for each entry, filling rows from the left.
  template <class Visit> void forEachEntry(Visit visit) {
    Px at = left, row = 0;
    for (Entry &entry : entries()) {
      Px needed = entry.swatchWidth + px(4) + textWidth(entry.text) + px(12);
      if (at != left && at + needed > width) {
        at = left;
        ++row;
      }
      visit(entry, at, row);
      at += needed;
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
      entry.draw(x, y);
      text(x + entry.swatchWidth + px(4), middle(y, px(12)),
           escapedMarkup(entry.text));
    });
  }

  void put(Px length) {
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

  const Picture &picture;
  const PictureOptions &options;
  const Program &program;
  const Px fontSize;
  Writer writer;
  std::vector<bool> kinds, phases; ///< Those that are shown.
  bool hasGroups = false;
  Time shortest = 0; ///< Of the boxes.
  Px longest = 0;    ///< Of the labels.
  Px rowHeight = px(24), laneNames = 0;
  Px left = 0, plotWidth = 0, width = 0, rowStep = 0, bottom = 0;
};

} // namespace

bool ppcc::emitSvg(const Program &program, llvm::raw_ostream &out,
                   EmitContext &context) {
  constexpr size_t maxParts = 50'000;
  auto picture = Picture::make(program, context);
  if (!picture)
    return false;
  if (size_t parts = picture->numParts(); parts > maxParts) {
    context.diags.report<diag::PictureTooLarge>(Place(program.name()), parts,
                                                "boxes", maxParts, "an svg");
    return false;
  }
  Svg(*picture, context.options.picture, out).emit();
  return true;
}
