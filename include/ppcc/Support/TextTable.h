// Tables for people, for spreadsheets and for documents.
#pragma once

#include "ppcc/Support/LLVM.h"

namespace ppcc {

/// How a table is written.
enum class TableStyle : uint8_t { Text, Csv, Markdown };

/// Rows of cells under names of columns.
class TextTable {
public:
  explicit TextTable(std::vector<std::string> columns) {
    add(std::move(columns));
  }

  /// Adds a row with a cell for each column; what is not printable is escaped.
  void add(std::vector<std::string> cells);
  void print(raw_ostream &out, TableStyle style = TableStyle::Text) const;

private:
  void printAligned(raw_ostream &out, bool isMarkdown) const;

  std::vector<std::vector<std::string>> rows;
};

} // namespace ppcc
