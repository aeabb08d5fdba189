#include "ppcc/Proof/Sequence.h"

using namespace ppcc;
using namespace ppcc::proof;

Finding Sequence::checkExactCover(const MicrobatchRange &range, int64_t last) {
  auto unknown = [](const char *why) {
    return Finding{Finding::Kind::Unknown, why};
  };
  int64_t step = 1;
  for (const Member &member : members)
    step = std::max(step, std::abs(member.number.j));
  for (const Member &member : members)
    if (member.hasIterations && std::abs(member.number.j) != step)
      return unknown(member.number.j == 0
                         ? "a loop repeats one microbatch"
                         : "microbatches advance in several steps");
  Affine missing = range.count - count(), end = range.first + range.count;
  Domain all{0, last, false, {}, {}};
  if (isAtLeast(missing, all, 1) || isAtLeast(-1 * missing, all, 1))
    return {Finding::Kind::Fails,
            missing.at(last == unbounded ? 1 : last) > 0 ? "seldom" : "often"};
  bool fits = range.first.n % step == 0 && end.n % step == 0 &&
              step <= int64_t(members.size());
  for (const Member &member : members)
    fits &= member.number.n % step == 0;
  if (!fits)
    return unknown("microbatches grow in other steps than n");
  stride = step;
  byResidue.resize(stride);
  for (const Member &member : members)
    byResidue[*floorMod(member.number.c, stride)].members.push_back(member);
  probe = std::min<int64_t>(last, 1 << 20);
  for (int64_t remainder = 0; remainder != stride; ++remainder) {
    auto &[ordered, firsts] = byResidue[remainder];
    llvm::sort(ordered, [&](const Member &a, const Member &b) {
      return endsOf(a).first.at(probe) < endsOf(b).first.at(probe);
    });
    auto next = [&](Affine from) { // The first of the remainder from there on.
      from.c += *floorMod(remainder - from.c, stride);
      return from;
    };
    Affine reached = next(range.first);
    bool isWhole = true;
    for (const Member &member : ordered) {
      auto [low, high] = endsOf(member);
      firsts.push_back(low.at(probe));
      isWhole &= low == reached;
      reached = high + stride;
    }
    if (!isWhole || reached != next(end))
      return unknown("microbatches are missing, or there twice");
  }
  isExactCover = true;
  return {};
}
