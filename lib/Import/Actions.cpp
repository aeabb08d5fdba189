// Reads the text of `--emit=actions`: `rank 0: 0F0 0B0`, a line for each rank.
#include "Cells.h"

#include "ppcc/IR/Calls.h"
#include "ppcc/IR/Location.h"

using namespace ppcc;

namespace {

struct ActionsReader {
  ImportContext &context;
  CellReader cells{context, {/*peers=*/true, "", {}, /*calls=*/true}};

  std::optional<Program> read() {
    size_t errorsBefore = context.diags.errorCount();
    cells.forEachLine([&](uint32_t, StringRef line) {
      line = line.take_front(line.find("//")).trim();
      return line.empty() || readLine(line);
    });
    if (context.diags.errorCount() != errorsBefore ||
        !inferPlacement(cells.program, /*severalPipes=*/true, context) ||
        !findStyle())
      return std::nullopt;
    return std::move(cells.program);
  }

  /// False when the lines after this one cannot be understood.
  bool readLine(StringRef line) {
    StringRef rest = line;
    uint32_t expected = cells.program.numRanks();
    if (takeRank(rest) != expected) {
      size_t length = line.size() - rest.size();
      return context.diags.report<diag::ImportExpected>(
          cells.range(line.take_front(std::max<size_t>(length, 1))),
          fmt::format("`rank {}:`", expected));
    }
    if (!cells.beginRank(line))
      return false;
    readCells(rest);
    return true;
  }

  /// The number of `rank N:`, which is taken off the line; nothing when the
  /// line begins otherwise.
  static std::optional<uint32_t> takeRank(StringRef &line) {
    uint32_t rank;
    if (!line.consume_front("rank"))
      return std::nullopt;
    line = line.ltrim();
    if (line.consumeInteger(10, rank))
      return std::nullopt;
    line = line.ltrim();
    return line.consume_front(":") ? std::optional(rank) : std::nullopt;
  }

  void readCells(StringRef rest) {
    while (!(rest = rest.ltrim()).empty() && !context.diags.saturated()) {
      // Blanks may stand inside the parentheses of a group or call.
      size_t open = rest.find_first_of("[ \t\r\v\f");
      size_t close = rest.starts_with("(") ? rest.find(')')
                     : open != StringRef::npos && rest[open] == '['
                         ? rest.find(']')
                         : 0;
      size_t end = close == StringRef::npos
                       ? StringRef::npos
                       : rest.find_first_of(" \t\r\v\f", close);
      cells.read(rest.take_front(end));
      rest = rest.drop_front(std::min(end, rest.size()));
    }
  }

  /// A call that is not named as a style has it.
  struct Misnomer {
    uint32_t row = 0;
    StringRef given, right; ///< Empty for a message that is no call.
  };

  /// The first call that `style` has under another name.
  std::optional<Misnomer> misnomer(CallStyle style) const {
    const Program &program = cells.program;
    ArrayRef<CellReader::Call> calls = cells.calls;
    for (RankId rank : program.ranks()) {
      CallNames names(program, rank, style);
      for (RowRange item : program.items(rank)) {
        StringRef right = names.of(item.from, item.to), given;
        if (!calls.empty() && calls.front().row == item.from.value) {
          given = calls.front().name;
          calls = calls.drop_front();
          if (given == "batch") // A call without a name.
            given = right;
        } else if (item.size() > 1) {
          given = right; // Written as a group.
        }
        if (given != right)
          return Misnomer{item.from.value, given, right};
      }
    }
    return std::nullopt;
  }

  /// Finds the style that gives the calls their names; false, and a report,
  /// when none does.
  bool findStyle() {
    Misnomer latest;
    if (cells.calls.empty())
      return true;
    for (CallStyle style :
         {CallStyle::None, CallStyle::Exchange, CallStyle::Ring}) {
      auto found = misnomer(style);
      if (!found) {
        cells.program.editHead().calls = style;
        return true;
      }
      if (found->row > latest.row || latest.right.empty())
        latest = *found;
    }
    const Program &program = cells.program;
    ActionId row(latest.row);
    return context.diags.report<diag::ImportCallName>(
        locationOf(program, row, context.sources),
        latest.given.empty() ? cell(program, row) : quote(latest.given),
        latest.right.empty() ? "no call" : fmt::format("`{}`", latest.right));
  }
};

} // namespace

bool ppcc::beginsActions(StringRef text) {
  if (!text.consume_front("rank") || text.ltrim(" \t").size() == text.size())
    return false;
  text = text.ltrim(" \t");
  return !text.empty() && llvm::isDigit(text[0]);
}

std::optional<Program> ppcc::importActions(ImportContext &context) {
  return ActionsReader{context}.read();
}
