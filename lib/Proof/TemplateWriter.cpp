// Writes templates as JSON.
#include "ppcc/Proof/TemplateJson.h"

using namespace ppcc;
using namespace ppcc::proof;
namespace json = llvm::json;

void ppcc::proof::writeLists(
    json::OStream &json, StringRef key, size_t count,
    function_ref<std::vector<int64_t>(size_t)> numbers) {
  json.attributeBegin(key);
  json.rawValue([&](raw_ostream &out) {
    out << '[';
    for (size_t i = 0; i != count; ++i) {
      out << (i == 0 ? "[" : ",[");
      llvm::interleave(numbers(i), out, ",");
      out << ']';
    }
    out << ']';
  });
  json.attributeEnd();
}

void ppcc::proof::writeRanges(json::OStream &json, const Template &program) {
  writeLists(json, "microbatches", program.pipes.size(), [&](size_t pipe) {
    const auto &[first, count] = program.pipes[pipe];
    return std::vector<int64_t>{first.c, first.n, count.c, count.n};
  });
}

void ppcc::proof::writeRows(json::OStream &json, const Template &program,
                            bool hasSites) {
  json.attributeBegin("actions");
  json.rawValue([&](raw_ostream &out) {
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
  });
  json.attributeEnd();
}
