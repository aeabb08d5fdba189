// Reads cells such as `0F3`, `(0F3;7B1)OVERLAP_F_B` and
// `send_forward[0SEND_F3]` into the rows of a program whose placement is not
// known yet.
#pragma once

#include "ppcc/IR/HeadChecks.h"
#include "ppcc/Import/Importer.h"

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
  CellReader(ImportContext &context, CellRules rules);

  /// Begins the list of the next rank; false, and a report, when there are too
  /// many.
  bool beginRank(StringRef at);
  /// Calls `visit` for each line of the file, with its number, until that is
  /// false or no more errors are shown.
  void forEachLine(function_ref<bool(uint32_t number, StringRef line)> visit);
  /// Reads one cell, a part of the file's text without blanks around it.
  void read(StringRef cell);

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
  bool readAction(StringRef cell, bool joined);
  void readGroup(StringRef cell);
  void readCall(StringRef cell);
  bool readMembers(StringRef members);
  void noGroup(StringRef cell, StringRef why);
  void checkGroup(StringRef cell, StringRef suffix, uint32_t firstRow);
  std::optional<uint32_t> number(StringRef digits, StringRef what,
                                 uint32_t max);
  bool notAnAction(StringRef cell, std::string mnemonic = "");
  RowRange rowsFrom(uint32_t first) const {
    return {ActionId(first), ActionId(program.size())};
  }
  std::string nameOfRows(ArrayRef<ActionId> rows) const;
  bool append(Action action, StringRef cell);

  ImportContext &context;
  CellRules rules;
  CellSites sites;
  StringRef text;
  const char *lineStart;
  uint32_t line = 1;
  bool full = false; ///< The limit of actions was reported.
};

} // namespace ppcc
