// Reads cells such as `0F3`, `(0F3;7B1)OVERLAP_F_B` and
// `send_forward[0SEND_F3]` into the rows of a program whose placement is not
// known yet.
#pragma once

#include "Importers.h"
#include "ppcc/Basic/Diagnostics/Import.h"
#include "ppcc/IR/HeadChecks.h"

#include "llvm/Support/Path.h"

namespace ppcc {

/// A word that stands where a kind does, for work that programs do not hold.
struct ForeignWord {
  StringRef mnemonic;
  bool isSilent; ///< Nothing is lost: the emitter writes it by itself.
  bool hasMicrobatch = false;
};

/// What the cells of a format may hold.
struct CellRules {
  bool peers;          ///< `0SEND_F0>3`: messages along skip edges.
  StringRef onlyGroup; ///< The one group there is; empty for any.
  ArrayRef<ForeignWord> foreign;
  bool calls = false; ///< `send_forward[0SEND_F0]`: calls with their names.
};

/// Collects the actions of a file of cells.
class CellReader {
public:
  CellReader(ImportContext &context, CellRules rules)
      : context(context), rules(rules),
        sites(program, context.sources.name(context.file)),
        text(context.sources.text(context.file)), lineStart(text.begin()) {
    Head &head = program.editHead();
    head.name = llvm::sys::path::stem(context.sources.name(context.file)).str();
    // A cell takes three bytes and a separator at least.
    size_t rows =
        std::min<uint64_t>(text.size() / 4, context.options.maxActions);
    program.editRows().reserve(rows);
    head.sites.reserve(rows + 1);
  }

  /// Begins the list of the next rank; false, and a report, when there are too
  /// many.
  bool beginRank(StringRef at) {
    if (program.numRanks() == Program::maxRanks)
      return context.diags.report<diag::ImportTooMany>(
          range(at), Program::maxRanks, "ranks");
    ++program.editHead().numRanks;
    program.editRows().beginRank();
    return true;
  }
  /// Calls `visit` for each line of the file, with its number, until that is
  /// false or no more errors are shown.
  void forEachLine(function_ref<bool(uint32_t number, StringRef line)> visit) {
    StringRef rest = text;
    rest.consume_front("\xEF\xBB\xBF");
    // Columns count from the mark.
    lineStart = text.begin();
    for (line = 1; !rest.empty() && !context.diags.saturated(); ++line) {
      auto [first, others] = rest.split('\n');
      if (!visit(line, first))
        return;
      rest = others;
      lineStart = rest.begin();
    }
  }
  /// Reads one cell, a part of the file's text without blanks around it.
  void read(StringRef cell) {
    if (cell.starts_with("("))
      readGroup(cell);
    else if (rules.calls && cell.contains('['))
      readCall(cell);
    else
      readAction(cell, /*joined=*/false);
  }

  /// The range of a part of the file's text.
  SourceRange range(StringRef part) const {
    return {context.sources.loc(context.file, part.begin() - text.begin()),
            context.sources.loc(context.file, part.end() - text.begin())};
  }

  /// What has been read. Each row has the pipe 0, and a peer only if its cell
  /// names one; row i has site i + 1.
  Program program;
  /// The calls that have names, in the order of their rows.
  struct Call {
    uint32_t row; ///< The first of the call.
    StringRef name;
  };
  std::vector<Call> calls;
  /// The cells of foreign words that were lost.
  StringRef firstDropped;
  size_t dropped = 0;

private:
  static StringRef takeDigits(StringRef &text) {
    StringRef digits = text.take_while(llvm::isDigit);
    text = text.drop_front(digits.size());
    return digits;
  }

  /// False when the cell is wrong, after a report, or is left out.
  bool readAction(StringRef cell, bool joined) {
    StringRef rest = cell, stageDigits = takeDigits(rest);
    StringRef mnemonic =
        rest.take_while([](char c) { return llvm::isAlpha(c) || c == '_'; });
    rest = rest.drop_front(mnemonic.size());
    if (stageDigits.empty() || mnemonic.empty())
      return notAnAction(cell);
    auto stage = number(stageDigits, "a stage", Program::maxStages - 1);
    if (!stage)
      return false;
    auto *foreign = findBy(rules.foreign, mnemonic, &ForeignWord::mnemonic);
    if (foreign && !joined && rest.empty() != foreign->hasMicrobatch &&
        llvm::all_of(rest, llvm::isDigit)) {
      if (!foreign->isSilent && dropped++ == 0)
        firstDropped = cell;
      return false;
    }
    auto kindId = program.kinds().find(mnemonic);
    if (!kindId)
      return notAnAction(cell, mnemonic.str());
    const KindInfo &info = program.kinds()[*kindId];

    Action action;
    action.kind = *kindId;
    action.stage = StageId(*stage);
    action.joined = joined;
    StringRef digits = takeDigits(rest);
    if (digits.empty() && rest.empty())
      return context.diags.report<diag::ImportNoMicrobatch>(range(cell),
                                                            quote(cell));
    if (digits.empty())
      return notAnAction(cell);
    auto microbatch =
        number(digits, "a microbatch", Program::maxMicrobatches - 1);
    if (!microbatch)
      return false;
    action.microbatch = *microbatch;
    StringRef peerSign = info.isSend() ? ">" : "<";
    if (rules.peers && !info.isCompute() && rest.consume_front(peerSign)) {
      StringRef peerDigits = takeDigits(rest);
      if (peerDigits.empty())
        return notAnAction(cell);
      auto peer = number(peerDigits, "a stage", Program::maxStages - 1);
      if (!peer)
        return false;
      action.peer = StageId(*peer);
    }
    return rest.empty() ? append(action, cell) : notAnAction(cell);
  }
  void readGroup(StringRef cell) {
    size_t close = cell.find(')');
    if (close == StringRef::npos)
      return noGroup(cell, "it has no `)`");
    StringRef members = cell.slice(1, close), suffix = cell.substr(close + 1);
    uint32_t firstRow = program.size();
    if (!readMembers(members))
      return;
    if (program.size() - firstRow < 2)
      return noGroup(cell, "a group has two actions or more");
    bool isBatch = llvm::none_of(rowsFrom(firstRow), [&](ActionId row) {
      return program.kindOf(row).isCompute();
    });
    if (!isBatch || !suffix.empty())
      checkGroup(cell, suffix, firstRow);
  }
  /// Whether the name fits is for those who know all rows.
  void readCall(StringRef cell) {
    auto [name, members] = cell.split('[');
    if (!members.consume_back("]"))
      return noGroup(cell, "it has no `]` at its end");
    uint32_t firstRow = program.size();
    if (!readMembers(members))
      return;
    for (ActionId row : rowsFrom(firstRow))
      if (program.kindOf(row).isCompute())
        return noGroup(cell, "a call holds sends and receives");
    calls.push_back({firstRow, name});
  }
  /// Reads actions that `;` separates, as a group; false after an error.
  bool readMembers(StringRef members) {
    size_t errorsBefore = context.diags.errorCount();
    uint32_t firstRow = program.size();
    for (StringRef member : llvm::split(members, ';'))
      if (!context.diags.saturated())
        readAction(member.trim(), /*joined=*/program.size() != firstRow);
    return context.diags.errorCount() == errorsBefore;
  }
  void noGroup(StringRef cell, StringRef why) {
    context.diags.report<diag::ImportBadGroup>(range(cell), quote(cell), why);
  }
  /// Reports what is wrong with the rows from `firstRow` on as the group
  /// `suffix`.
  void checkGroup(StringRef cell, StringRef suffix, uint32_t firstRow) {
    SmallVector<ActionId> rows(llvm::to_vector(rowsFrom(firstRow)));
    std::string name = nameOfRows(rows);
    // The two members of a pair may stand in either order.
    bool fits = suffix == name;
    if (!fits && rows.size() == 2) {
      std::swap(rows[0], rows[1]);
      fits = suffix == nameOfRows(rows);
    }
    if (!fits)
      noGroup(cell, fmt::format("its actions are {}", quote(name)));
    else if (!rules.onlyGroup.empty() && suffix != rules.onlyGroup)
      noGroup(cell, fmt::format("the only group of this format is {}",
                                rules.onlyGroup));
  }
  /// The value of digits, or nothing and a report when it is above `max`.
  std::optional<uint32_t> number(StringRef digits, StringRef what,
                                 uint32_t max) {
    uint32_t value;
    if (!digits.getAsInteger(10, value) && value <= max)
      return value;
    return context.diags.report<diag::ImportNumberTooLarge>(
        range(digits), quote(digits), what, max);
  }
  /// Reports a cell, with what its letters may have been meant to be.
  bool notAnAction(StringRef cell, std::string mnemonic = "") {
    return context.diags.report<diag::ImportNotAnAction>(
        range(cell), quote(cell), kindHint(program.kinds(), mnemonic));
  }
  RowRange rowsFrom(uint32_t first) const {
    return {ActionId(first), ActionId(program.size())};
  }
  /// `OVERLAP_F_B` for rows of an F and a B.
  std::string nameOfRows(ArrayRef<ActionId> rows) const {
    std::string name = "OVERLAP";
    for (ActionId row : rows)
      name += "_" + program.kindOf(row).mnemonic;
    return name;
  }
  bool append(Action action, StringRef cell) {
    if (program.size() >= context.options.maxActions) {
      if (program.size() == context.options.maxActions && !full)
        context.diags.report<diag::ImportTooMany>(
            range(cell), context.options.maxActions, "actions");
      full = true;
      return false;
    }
    action.site = sites.add(line, uint32_t(cell.begin() - lineStart + 1));
    program.editRows().append(action);
    return true;
  }

  ImportContext &context;
  CellRules rules;
  CellSites sites;
  StringRef text;
  const char *lineStart;
  uint32_t line = 1;
  bool full = false; ///< The limit of actions was reported.
};

} // namespace ppcc
