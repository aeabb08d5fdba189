#include "Ranges.h"

#include "llvm/ADT/Hashing.h"

using namespace ppcc;

void ppcc::joinRemainders(std::vector<ProvenRange> &ranges) {
  using Said = std::tuple<int64_t, Verdict, std::string, std::string>;
  std::map<Said, std::vector<ProvenRange *>> same;
  for (ProvenRange &range : ranges)
    if (!range.to && range.modulus != 1)
      same[{range.modulus, range.verdict,
            fmt::format("{}:{}", range.place.range.begin.raw, range.reason),
            range.makespan ? range.makespan->slope.text() + " " +
                                 range.makespan->intercept.text() +
                                 (range.makespan->isExact ? "" : "?")
                           : ""}]
          .push_back(&range);
  for (const auto &[said, parts] : same) {
    auto [least, most] = std::ranges::minmax(parts, {}, &ProvenRange::from);
    int64_t modulus = least->modulus, first = least->from;
    if (int64_t(parts.size()) != modulus || most->from - first >= modulus)
      continue;
    for (ProvenRange *part : parts)
      part->modulus = 0; // It is gone.
    ProvenRange &all = *parts.front();
    std::tie(all.modulus, all.residue, all.from) = std::tuple(1, 0, first);
  }
  llvm::erase_if(ranges,
                 [](const ProvenRange &range) { return range.modulus == 0; });
}

int64_t ppcc::periodOf(ArrayRef<ProvenRange> ranges, int64_t end) {
  std::vector<Rational> ends; // From the last on.
  for (const ProvenRange &one : llvm::reverse(ranges)) {
    if (one.from != --end || one.to != one.from || !one.makespan)
      break;
    ends.push_back(one.makespan->intercept);
  }
  auto growth = [&](size_t i) { return ends[i] - ends[i + 1]; };
  for (size_t period = 1; 3 * period < ends.size(); ++period) {
    bool repeats = true;
    for (size_t i = 0; repeats && i != 2 * period; ++i)
      repeats = growth(i) == growth(i + period);
    if (repeats)
      return period;
  }
  return 1;
}

size_t ppcc::endOf(const Program &program) {
  llvm::hash_code all = 0;
  for (RankId rank : program.ranks()) {
    uint32_t end = program.end(rank).value,
             begin = end - std::min<size_t>(program.size(rank),
                                            6 * program.numRanks());
    for (uint32_t row = begin; row != end; ++row) {
      Action action = program[ActionId(row)];
      all = llvm::hash_combine(all, action.kind.value, action.stage.value,
                               action.peer.value);
    }
  }
  return all;
}

int64_t ppcc::periodOf(const std::map<int64_t, size_t> &ends, int64_t end) {
  std::vector<size_t> last; // From the last on.
  for (auto at = ends.find(end - 1); at != ends.end();
       at = ends.find(--end - 1))
    last.push_back(at->second);
  for (size_t period = 2; 3 * period < last.size(); ++period)
    if (std::equal(last.begin(), last.begin() + 2 * period,
                   last.begin() + period))
      return period;
  return 1;
}
