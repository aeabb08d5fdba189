// What the pictures of a program share: its times, what of it is shown, colours
// and words.
#include "Picture.h"
#include "ppcc/Basic/Diagnostics/Pictures.h"

#include "llvm/ADT/SmallBitVector.h"

using namespace ppcc;

/// From `color` to white: `part` of `whole` steps of the way.
static Color lightened(Color color, uint32_t part, uint32_t whole) {
  for (int channel : {0, 8, 16}) {
    uint64_t darkness = 255 - (color >> channel & 255);
    color += static_cast<Color>(darkness * part / whole) << channel;
  }
  return color;
}

/// How the built-in kinds that fill some slots look, and the words for them.
struct SlotStyle {
  uint8_t defines;
  StringRef words;
  Color color;
  Hatch hatch;
};

// Of the colours that Okabe and Ito chose for all kinds of colour vision
// (https://jfly.uni-koeln.de/color/) those that black text stands out on; the
// four of the built-in kinds also differ in lightness.
static constexpr SlotStyle slotStyles[] = {
    {slot::Output, "forward", 0x56b4e9, Hatch::None},
    {slot::InputGrad | slot::WeightGrad, "backward", 0xd55e00, Hatch::Rising},
    {slot::InputGrad, "backward for the input", 0xcc79a7, Hatch::Falling},
    {slot::WeightGrad, "backward for the weights", 0xf0e442, Hatch::Dots}};

// Declared kinds have these in turn: twenty that differ.
static constexpr Color declaredColors[] = {0x009e73, 0xe69f00, 0xb0b0b0,
                                           0x9a8cd8, 0x8dc63f};
static constexpr Hatch declaredHatches[] = {Hatch::Cross, Hatch::Across,
                                            Hatch::Down, Hatch::Grid};

static const SlotStyle *styleOfSlots(const KindInfo &info) {
  return findBy(slotStyles, info.defines, &SlotStyle::defines);
}

/// A name of two letters for each name, which no other and none of `taken` has;
/// names that short keep theirs.
static std::vector<std::string> shortNames(ArrayRef<std::string> names,
                                           std::set<std::string> taken = {}) {
  for (const std::string &name : names)
    if (name.size() <= 2)
      taken.insert(name);
  std::vector<std::string> result;
  for (const std::string &name : names) {
    std::string label = name;
    if (name.size() > 2) {
      // The letters of two words, else its first and one after it, the first
      // that is free; else a digit.
      StringRef rest = StringRef(name).split('_').second;
      std::string seconds = rest.take_front(1).str();
      for (char c : name.substr(1))
        if (c != '_')
          seconds += c;
      seconds += "0123456789";
      for (char second : seconds)
        if (taken.insert(label = {name[0], second}).second)
          break;
    }
    result.push_back(label);
  }
  return result;
}

void Picture::chooseStyles() {
  std::set<std::string> taken;
  std::vector<std::string> declared;
  for (const KindInfo &info : program.kinds().rows())
    if (info.isDeclared())
      declared.push_back(info.mnemonic);
    else
      taken.insert(info.mnemonic);
  declared = shortNames(declared, std::move(taken));
  size_t next = 0;
  for (const KindInfo &info : program.kinds().rows()) {
    const SlotStyle *look = styleOfSlots(info);
    if (!info.isDeclared() && look) {
      styles.push_back({info.mnemonic, look->color, look->hatch});
      continue;
    }
    size_t i = info.isDeclared() ? next++ : 0;
    styles.push_back({info.isDeclared() ? declared[i] : info.mnemonic,
                      declaredColors[i % std::size(declaredColors)],
                      declaredHatches[i % std::size(declaredHatches)]});
  }
  nodeLabels = shortNames(program.nodes().names);
}

std::string Picture::kindDescription(KindId kind) const {
  const KindTable &kinds = program.kinds();
  const KindInfo &info = kinds[kind];
  if (info.isDeclared())
    return info.lane == lane::None ? "on no lane"
                                   : "on " + kinds.lanes()[info.lane];
  if (!info.isCompute())
    return fmt::format("{} of {}", kindClassName(info.kindClass),
                       info.defines == slot::Output ? "an output"
                                                    : "a gradient");
  const SlotStyle *look = styleOfSlots(info);
  return look ? look->words.str() : info.mnemonic;
}

std::string Picture::legendOf(KindId kind) const {
  const KindInfo &info = program.kinds()[kind];
  return styleOf(kind).label + " " +
         (info.isDeclared() ? info.mnemonic + " " : "") + kindDescription(kind);
}

std::string ppcc::escapedMarkup(StringRef text) {
  std::string result, valid = llvm::json::fixUTF8(text);
  // XML has no place for control characters, U+FFFE and U+FFFF.
  for (StringRef rest = valid; !rest.empty();) {
    if (rest.consume_front("&"))
      result += "&amp;";
    else if (rest.consume_front("<"))
      result += "&lt;";
    else if (rest.consume_front(">"))
      result += "&gt;";
    else if (rest.consume_front("\xEF\xBF\xBE") ||
             rest.consume_front("\xEF\xBF\xBF"))
      result += "\xEF\xBF\xBD";
    else {
      unsigned char c = rest.front();
      result += c < ' ' || c == 0x7F ? ' ' : char(c);
      rest = rest.drop_front();
    }
  }
  return result;
}

std::optional<Picture> Picture::make(const Program &program,
                                     EmitContext &context) {
  const TimedRun *timed =
      Analyses(program).timedRun(context.options.transport, context.diags);
  if (!timed)
    return std::nullopt;
  Picture picture(program, *timed);
  if (!picture.narrow(context))
    return std::nullopt;
  picture.numberChunks();
  return picture;
}

bool Picture::narrow(EmitContext &context) {
  const PrintOptions &print = context.options.print;
  const PictureOptions &options = context.options.picture;
  microbatches = print.microbatches;
  for (RankId rank : program.ranks())
    if (print.ranks.empty() || llvm::is_contained(print.ranks, rank))
      ranks.push_back(rank);
  to = times.makespan;
  if (options.times) {
    from = options.times->first;
    to = std::min(to, options.times->second);
  }
  findLanes();
  if (numParts() != 0)
    return true;
  return context.diags.report<diag::EmptyPicture>(Location(program.name()));
}

size_t Picture::numParts() const {
  size_t count = 0;
  for (RankId rank : ranks) {
    forEachBox(rank, [&](const Box &box) {
      const NodeOrder *order = orderOf(box);
      count += order ? order->timed : 1;
    });
    forEachAsyncBox(rank, [&](const Box &) { ++count; });
  }
  return count;
}

decimal::Sum Picture::maxMemory(MemoryCurve &curve) const {
  decimal::Sum peak = 1;
  for (RankId rank : ranks)
    peak = std::max({peak, curve.peak(rank).memory,
                     decimal::Sum(curve.model().limitOf(rank).value_or(0))});
  return peak;
}

std::vector<uint8_t> Picture::asyncLanesOf(RankId rank) const {
  llvm::SmallBitVector isUsed(program.kinds().lanes().size());
  forEachAsyncBox(rank, [&](const Box &box) { isUsed.set(laneOf(box)); });
  return {isUsed.set_bits_begin(), isUsed.set_bits_end()};
}

void Picture::findLanes() {
  std::set<uint8_t> beside;
  std::set<uint32_t> ofNodes;
  for (RankId rank : ranks) {
    for (uint8_t lane : asyncLanesOf(rank))
      beside.insert(lane);
    if (nodes)
      forEachBox(rank, [&](const Box &box) {
        forEachNode(
            box, [&](const NodeBox &node) { ofNodes.insert(node.node->lane); });
      });
  }
  asyncLanes.assign(beside.begin(), beside.end());
  nodeLanes.assign(ofNodes.begin(), ofNodes.end());
}

bool Picture::isShown(const Box &box) const {
  return box.from < box.to && box.from < to && box.to > from &&
         (!microbatches || holdsMicrobatch(program, box.rows, *microbatches));
}

bool Picture::isShown(ActionId row) const {
  Box box = boxOf(row);
  // Messages often take no time.
  if (box.from == box.to && !program.kindOf(row).isCompute())
    ++box.to;
  return isShown(box);
}

void Picture::numberChunks() {
  std::vector<uint32_t> hosted(program.numRanks(), 0);
  chunksArePipes = program.pipes().size() > 1;
  for (PipeId pipe : program.pipeIds()) {
    for (RankId rank : program.pipe(pipe).rankOfStage) {
      chunks.push_back(hosted[rank.value]++);
      maxChunks = std::max(maxChunks, hosted[rank.value]);
      chunksArePipes &= chunks.back() == pipe.value;
    }
  }
}

Color Picture::fill(KindId kind, uint32_t chunk) const {
  // Beyond this the hues are hard to tell from each other.
  constexpr uint32_t percent = 60;
  uint32_t steps = std::max(maxChunks - 1, 2u);
  return lightened(styleOf(kind).color, percent * chunk, 100 * steps);
}

std::string Picture::chunkName(uint32_t chunk) const {
  return chunksArePipes ? program.pipes()[chunk].name
                        : fmt::format("chunk {}", chunk);
}

std::string Picture::title() const {
  std::string text = program.name().empty() ? "program" : program.name();
  for (const ProgramParam &param : program.params())
    text += " " + param.name + "=" + param.value;
  return text + ": makespan " + program.units().time(times.makespan) +
         (transport == "none" ? " by its data alone" : " on " + transport);
}
