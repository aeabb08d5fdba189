// What the pictures of a program share: its times, what of it is shown, colours
// and words.
#include "Picture.h"
#include "ppcc/Basic/Diagnostics/Pictures.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"

#include <fmt/format.h>

using namespace ppcc;
using llvm::StringRef;

std::string Color::hex() const {
  return fmt::format("#{:02x}{:02x}{:02x}", red, green, blue);
}

/// From `color` to white: `part` of `whole` steps of the way.
static Color lightened(Color color, uint32_t part, uint32_t whole) {
  auto channel = [&](uint8_t value) {
    return static_cast<uint8_t>(value + uint64_t(255 - value) * part / whole);
  };
  return {channel(color.red), channel(color.green), channel(color.blue)};
}

// Of the colours that Okabe and Ito chose for all kinds of colour vision
// (https://jfly.uni-koeln.de/color/) those that black text stands out on; the
// four of the built-in kinds also differ in lightness.
static constexpr KindLook looks[] = {
    {slot::Output, "forward", {0x56, 0xb4, 0xe9}, Hatch::None},
    {slot::InputGrad | slot::WeightGrad,
     "backward",
     {0xd5, 0x5e, 0x00},
     Hatch::Rising},
    {slot::InputGrad,
     "backward for the input",
     {0xcc, 0x79, 0xa7},
     Hatch::Falling},
    {slot::WeightGrad,
     "backward for the weights",
     {0xf0, 0xe4, 0x42},
     Hatch::Dots},
    {0, "", {0x00, 0x9e, 0x73}, Hatch::Dots}};

const KindLook &ppcc::lookOf(const KindInfo &info) {
  const KindLook *look = looks;
  while (look->defines != 0 && look->defines != info.defines)
    ++look;
  return *look;
}

std::string ppcc::kindWords(const KindTable &kinds, const KindInfo &info) {
  if (info.isDeclared())
    return info.lane == lane::None ? "on no lane"
                                   : "on " + kinds.lanes()[info.lane];
  if (!info.isCompute())
    return fmt::format("{} of {}", kindClassName(info.kindClass),
                       info.defines == slot::Output ? "an output"
                                                    : "a gradient");
  StringRef words = lookOf(info).words;
  return words.empty() ? info.letters : words.str();
}

void ppcc::appendLabel(const Program &program, const Action &action,
                       llvm::SmallVectorImpl<char> &out) {
  StringRef letters = program.kindOf(action).letters;
  out.append(letters.begin(), letters.end());
  if (!action.hasMicrobatch())
    return;
  char digits[20];
  out.append(digits,
             std::to_chars(digits, std::end(digits), action.microbatch).ptr);
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

Time ppcc::tickStep(Time span, uint64_t count) {
  Time step = 1;
  for (unsigned i = 0; span / step > Time(count); ++i)
    step = i % 3 == 1 ? step / 2 * 5 : step * 2;
  return step;
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
  findLanesBeside();
  if (numParts() != 0)
    return true;
  context.diags.report<diag::EmptyPicture>(Place(program.name()));
  return false;
}

size_t Picture::numParts() const {
  size_t count = 0;
  for (RankId rank : ranks) {
    forEachBox(rank, [&](const Box &box) {
      const NodeOrder *order = orderOf(box);
      count += order ? order->timed : 1;
    });
    forEachBoxBeside(rank, [&](const Box &, uint8_t) { ++count; });
  }
  return count;
}

void Picture::findLanesBeside() {
  std::vector<bool> isUsed(program.kinds().lanes().size());
  for (RankId rank : ranks)
    forEachBoxBeside(rank,
                     [&](const Box &, uint8_t lane) { isUsed[lane] = true; });
  for (size_t lane = 0; lane != isUsed.size(); ++lane)
    if (isUsed[lane])
      lanesBeside.push_back(lane);
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
  return lightened(lookOf(program.kinds()[kind]).color, percent * chunk,
                   100 * steps);
}

std::string Picture::chunkWords(uint32_t chunk) const {
  return chunksArePipes ? program.pipes()[chunk].name
                        : fmt::format("chunk {}", chunk);
}

std::string Picture::title() const {
  std::string text = program.name().empty() ? "program" : program.name();
  for (const ProgramParam &param : program.params())
    text += " " + param.name + "=" + param.value;
  return text + ": " + cost::format(times.makespan) +
         (transport == "none" ? " by its data alone" : " on " + transport);
}
