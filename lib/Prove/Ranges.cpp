#include "Ranges.h"

#include "llvm/ADT/Hashing.h"

using namespace ppcc;

/// Whether the same is said of the numbers of two ranges.
static bool haveEqualResults(const ProvenRange &a, const ProvenRange &b) {
  auto said = [](const ProvenRange &range) {
    return std::tuple(range.modulus, range.verdict, range.makespan,
                      range.place.range.begin.raw, range.reason);
  };
  auto metrics = [](const Metrics &of) {
    return std::tuple(of.bubble, of.work, of.activations, of.memory,
                      of.messages, of.bytes);
  };
  return said(a) == said(b) && a.metrics.has_value() == b.metrics.has_value() &&
         (!a.metrics || metrics(*a.metrics) == metrics(*b.metrics));
}

void ppcc::mergeResidues(std::vector<ProvenRange> &ranges) {
  std::vector<std::vector<ProvenRange *>> same;
  for (ProvenRange &range : ranges) {
    if (range.to || range.modulus == 1)
      continue;
    auto said = llvm::find_if(same, [&](const auto &parts) {
      return haveEqualResults(*parts[0], range);
    });
    (said == same.end() ? same.emplace_back() : *said).push_back(&range);
  }
  for (const auto &parts : same) {
    auto [least, most] = std::ranges::minmax(parts, {}, &ProvenRange::from);
    int64_t modulus = least->modulus, first = least->from;
    if (int64_t(parts.size()) != modulus || most->from - first >= modulus)
      continue;
    for (ProvenRange *part : parts)
      part->modulus = 0; // It is gone.
    ProvenRange &all = *parts.front();
    std::tie(all.modulus, all.residue, all.from) = std::tuple(1, 0, first);
    // An example of one remainder is none of the others.
    if (all.metrics && llvm::any_of(parts, [&](const ProvenRange *part) {
          return part->metrics->bottleneck != all.metrics->bottleneck;
        }))
      all.metrics->bottleneck.clear();
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

size_t ppcc::tailHash(const Program &program) {
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
