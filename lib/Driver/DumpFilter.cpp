// The text of --print-rank and --print-microbatches.
#include "ppcc/Driver/DumpFilter.h"

using namespace ppcc;

std::string ppcc::parsePrintRanks(StringRef text, PrintOptions &options) {
  options.ranks.clear();
  for (StringRef part : llvm::split(text, ',')) {
    uint32_t rank;
    if (part.getAsInteger(10, rank))
      return fmt::format("`{}` is no rank; expected `3` or `0,2`", part);
    options.ranks.push_back(RankId(rank));
  }
  return "";
}

std::string ppcc::parsePrintMicrobatches(StringRef text,
                                         PrintOptions &options) {
  uint32_t first, end;
  auto [from, to] = text.split("..");
  if (from.getAsInteger(10, first) || first == UINT32_MAX)
    return fmt::format(
        "`{}` is no range of microbatches; expected `2` or `0..4`", text);
  if (!text.contains(".."))
    end = first + 1;
  else if (to.getAsInteger(10, end) || end < first)
    return fmt::format(
        "`{}` is no range of microbatches; expected `2` or `0..4`", text);
  options.microbatches = {first, end};
  return "";
}
