// `ppcc diff`: where two programs first differ.
#include "Options.h"
#include "ppcc/Driver/Output.h"
#include "ppcc/IR/Place.h"
#include "ppcc/Support/Printable.h"

using namespace ppcc;

namespace {

struct DiffOptions : Options {
  std::string inputs[2];
};

void declare(OptionParser &parser, DiffOptions &options) {
  parser.positional("A", options.inputs[0],
                    "A schedule or program: a file, or a name of the library",
                    true);
  parser.positional("B", options.inputs[1], "Another one", true);
  addOutput(parser, options.output);
  addCompileOptions(parser, options);
  addMaxErrors(parser, options.console.maxErrors);
}

/// An action as both programs name it, whatever their pipes are called.
struct Deed {
  std::string_view letters;
  uint32_t stage, microbatch, peer;
  bool joined;
  auto operator<=>(const Deed &) const = default;
};

Deed deedAt(const Program &program, ActionId row) {
  Action action = program[row];
  return {program.kinds()[action.kind].letters, action.stage.value,
          action.microbatch, action.peer.value, action.joined};
}

class Difference {
public:
  Difference(const Program &a, const Program &b, StringRef nameA,
             StringRef nameB, SourceManager &sources, raw_ostream &out)
      : programs{&a, &b}, names{nameA, nameB}, sources(sources), out(out) {}

  /// Whether the programs are equal up to the order of independent actions.
  bool print() {
    const Program &a = *programs[0], &b = *programs[1];
    if (a.ranksBegun() != b.ranksBegun()) {
      out << fmt::format("`{}` has {} ranks, `{}` has {}\n",
                         printable(names[0]), a.ranksBegun(),
                         printable(names[1]), b.ranksBegun());
      return false;
    }
    uint32_t reordered = 0, different = 0;
    for (uint32_t rank = 0; rank != a.ranksBegun(); ++rank) {
      auto place = firstDifference(RankId(rank));
      if (!place)
        continue;
      bool isOrder = sameActions(RankId(rank));
      ++(isOrder ? reordered : different);
      printRank(RankId(rank), *place, isOrder);
    }
    if (different)
      out << fmt::format("{} of {} ranks do different work\n", different,
                         a.ranksBegun());
    else if (reordered)
      out << fmt::format("equal up to the order of independent actions; {} of "
                         "{} ranks have another order\n",
                         reordered, a.ranksBegun());
    else
      out << fmt::format("equal: {} on {} ranks\n", counts(a), a.ranksBegun());
    return different == 0;
  }

private:
  /// As reports count: a message is one, though it is sent and received.
  static std::string counts(const Program &program) {
    size_t actions = 0, messages = 0;
    for (RankId rank : program.ranks())
      for (ActionId row : program.rows(rank)) {
        actions += program.kindOf(row).isCompute();
        messages += program.kindOf(row).isSend();
      }
    return messages == 0
               ? fmt::format("{} actions", actions)
               : fmt::format("{} actions and {} messages", actions, messages);
  }

  ActionId rowAt(size_t side, RankId rank, uint32_t number) const {
    return ActionId(programs[side]->begin(rank).value + number);
  }

  /// The number of the first action that differs, on a rank.
  std::optional<uint32_t> firstDifference(RankId rank) const {
    size_t sizes[] = {programs[0]->size(rank), programs[1]->size(rank)};
    for (uint32_t i = 0; i != std::min(sizes[0], sizes[1]); ++i)
      if (deedAt(*programs[0], rowAt(0, rank, i)) !=
          deedAt(*programs[1], rowAt(1, rank, i)))
        return i;
    if (sizes[0] == sizes[1])
      return std::nullopt;
    return std::min(sizes[0], sizes[1]);
  }

  /// Whether the rank has the same actions and groups in both, in any order.
  /// Both programs are verified, so what is in another order does not depend on
  /// each other.
  bool sameActions(RankId rank) const {
    return programs[0]->size(rank) == programs[1]->size(rank) &&
           sortedItems(0, rank) == sortedItems(1, rank);
  }

  std::vector<std::vector<Deed>> sortedItems(size_t side, RankId rank) const {
    std::vector<std::vector<Deed>> items;
    for (uint32_t i = 0; i != programs[side]->size(rank); ++i) {
      Deed deed = deedAt(*programs[side], rowAt(side, rank, i));
      if (!deed.joined)
        items.emplace_back();
      deed.joined = false;
      items.back().push_back(deed);
    }
    for (std::vector<Deed> &item : items)
      llvm::sort(item);
    llvm::sort(items);
    return items;
  }

  void printRank(RankId rank, uint32_t number, bool isOrder) {
    out << fmt::format("rank {}, action {}: {} and {}{}\n", rank.value, number,
                       printable(text(0, rank, number)),
                       printable(text(1, rank, number)),
                       isOrder ? " (another order)" : "");
  }

  /// `0F3` (a.pp:12:3, steady).
  std::string text(size_t side, RankId rank, uint32_t number) {
    const Program &program = *programs[side];
    if (number >= program.size(rank))
      return "the end of `" + names[side].str() + "`";
    ActionId row = rowAt(side, rank, number);
    Action action = program[row];
    Place place = placeOf(program, row, sources);
    std::string where = place.words;
    if (place.range.valid()) {
      Position at = sources.position(place.range.begin);
      where = fmt::format("{}:{}:{}", at.file, at.line, at.column);
    }
    const std::string &phase = program.phases()[action.phase.value];
    if (!phase.empty())
      where += where.empty() ? phase : ", " + phase;
    return fmt::format("`{}`{}{}", cell(program, action),
                       action.joined ? " in a group" : "",
                       where.empty() ? "" : " (" + where + ")");
  }

  const Program *programs[2];
  StringRef names[2];
  SourceManager &sources;
  raw_ostream &out;
};

} // namespace

int ppcc::runDiff(ArrayRef<const char *> args, Session::Files fs,
                  raw_ostream &out, raw_ostream &err) {
  DiffOptions options;
  OptionParser parser(
      "ppcc diff", "Says where the programs of two schedules first differ, "
                   "rank by rank; the exit status is 1 when they do different "
                   "work");
  declare(parser, options);
  if (std::optional<int> code = parser.parse(args, out, err))
    return *code;
  auto session = consoleSession(std::move(fs), options.console, err);
  std::optional<Compiled> sides[2];
  ExitCode code = Success;
  options.request.sharesParams = true;
  for (size_t side : {0, 1}) {
    options.request.input = options.inputs[side];
    sides[side] = compile(options.request, *session);
    code = std::max(code, exitCodeOf(*sides[side], err));
  }
  if (code != Success)
    return code;
  bool same = false;
  code = writeOutput(options.output, out, *session, [&](raw_ostream &s) {
    same = Difference(sides[0]->program, sides[1]->program, options.inputs[0],
                      options.inputs[1], session->sources, s)
               .print();
  });
  return same ? code : Errors;
}
