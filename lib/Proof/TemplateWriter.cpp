// Writes templates as JSON.
#include "ppcc/Proof/TemplateJson.h"

using namespace ppcc;
using namespace ppcc::proof;

void ppcc::proof::writeRows(raw_ostream &out, const Template &program,
                            bool hasSites) {
  StringRef before = "[\n";
  for (const auto &rows : program.ranks) {
    out << std::exchange(before, ",\n") << '[';
    int64_t groups = 0;
    for (size_t i = 0; i != rows.size(); ++i) {
      const Row &row = rows[i];
      bool last = i + 1 == rows.size() || !rows[i + 1].joined;
      bool grouped = row.joined || !last;
      bool isPerStageOrRank = row.microbatch == noMicrobatch;
      out << (i == 0 ? "[" : ",[") << row.kind.value << ',' << row.pipe.value
          << ',' << row.stage.value << ','
          << (isPerStageOrRank ? -1 : row.microbatch.c) << ','
          << (row.peer.value == noPeer ? -1 : int64_t(row.peer.value)) << ',';
      if (hasSites)
        out << row.phase.value << ',';
      out << (grouped ? groups : -1) << ',';
      if (hasSites)
        out << row.site.value << ',';
      out << row.microbatch.n << ',' << row.microbatch.j << ','
          << (row.loop == noLoop ? -1 : int64_t(row.loop)) << ']';
      groups += grouped && last;
    }
    out << ']';
  }
  out << (program.ranks.empty() ? "[]" : "\n]");
}
