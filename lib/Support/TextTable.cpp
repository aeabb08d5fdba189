#include "ppcc/Support/TextTable.h"
#include "ppcc/Support/Printable.h"

using namespace ppcc;

void TextTable::add(std::vector<std::string> cells) {
  assert(rows.empty() || cells.size() == rows.front().size());
  for (std::string &cell : cells)
    cell = printable(cell);
  rows.push_back(std::move(cells));
}

/// Quotes what would end a cell early.
static std::string csvCell(StringRef cell) {
  if (cell.find_first_of(",\"") == StringRef::npos)
    return cell.str();
  return '"' + llvm::join(llvm::split(cell, '"'), "\"\"") + '"';
}

void TextTable::print(raw_ostream &out, TableStyle style) const {
  if (style == TableStyle::Text)
    return printAligned(out, false);
  if (style == TableStyle::Markdown) {
    TextTable escaped = *this;
    for (std::vector<std::string> &row : escaped.rows)
      for (std::string &cell : row)
        cell = llvm::join(llvm::split(cell, '|'), "\\|");
    return escaped.printAligned(out, true);
  }
  for (const std::vector<std::string> &row : rows)
    out << llvm::join(llvm::map_range(row, csvCell), ",") << '\n';
}

/// Numbers, perhaps with a sign for percent or a unit, stand at the right of
/// their column, all else at its left.
static bool isNumeric(StringRef cell) {
  for (StringRef unit :
       {" %", " s", " ms", " us", " ns", " TiB", " GiB", " MiB", " KiB", " B"})
    if (cell.consume_back(unit))
      break;
  cell.consume_front("-");
  return !cell.empty() && llvm::all_of(cell, [](char c) {
    return llvm::isDigit(c) || c == '.';
  });
}

void TextTable::printAligned(raw_ostream &out, bool isMarkdown) const {
  // The line below the head of a column has a dash and a colon.
  std::vector<size_t> widths(rows.front().size(), isMarkdown ? 2 : 0);
  std::vector<char> numeric(widths.size(), true);
  for (const std::vector<std::string> &row : rows)
    for (size_t i = 0; i != row.size(); ++i) {
      widths[i] = std::max(widths[i], columnsOf(row[i]));
      numeric[i] &=
          &row == &rows.front() || isNumeric(row[i]) || row[i].empty();
    }
  StringRef before = isMarkdown ? "| " : "",
            between = isMarkdown ? " | " : "  ", after = isMarkdown ? " |" : "";
  auto line = [&](auto cellOf) {
    std::string text = before.str();
    for (size_t i = 0; i != widths.size(); ++i) {
      std::string cell = cellOf(i);
      std::string blanks(widths[i] - columnsOf(cell), ' ');
      text += numeric[i] ? blanks + cell : cell + blanks;
      if (i + 1 != widths.size())
        text += between;
    }
    out << StringRef(text + after.str()).rtrim() << '\n';
  };
  for (const std::vector<std::string> &row : rows) {
    line([&](size_t i) { return row[i]; });
    if (isMarkdown && &row == &rows.front())
      line([&](size_t i) {
        std::string dashes(widths[i], '-');
        if (numeric[i])
          dashes.back() = ':';
        return dashes;
      });
  }
}
