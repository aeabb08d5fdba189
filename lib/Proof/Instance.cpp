#include "ppcc/Proof/Instance.h"

#include "ppcc/IR/Loops.h"

using namespace ppcc;
using namespace ppcc::proof;

/// The microbatches of the pipes of n. What does not fit, or nothing.
static std::string setPipes(const Template &family, int64_t n, Head &head) {
  for (size_t i = 0; i != head.pipes.size(); ++i) {
    __int128 first = family.pipes[i].first.at(n),
             count = family.pipes[i].count.at(n);
    if (first < 0 || count < 1 || first + count > Program::maxMicrobatches)
      return "a pipe has no microbatches, or too many";
    head.pipes[i].firstMicrobatch = static_cast<uint32_t>(first);
    head.pipes[i].numMicrobatches = static_cast<uint32_t>(count);
  }
  return "";
}

/// The row in an iteration; its microbatch is one of its pipe if that is
/// `good`.
static Action actionOf(const Row &row, int64_t n, int64_t iteration,
                       const Head &head, bool &good) {
  const Pipe &pipe = head.pipes[row.pipe.value];
  __int128 microbatch = row.microbatch.at(n, iteration);
  good &= head.kinds[row.kind].scope == KindScope::Microbatch
              ? microbatch >= pipe.firstMicrobatch &&
                    microbatch < pipe.endMicrobatch()
              : microbatch == Action::noMicrobatch;
  Action action{row.kind, row.pipe, row.stage};
  action.microbatch = static_cast<uint32_t>(microbatch);
  action.peer = row.peer;
  action.phase = row.phase;
  action.site = row.site;
  action.joined = row.joined;
  return action;
}

__int128 ppcc::proof::numRows(const Template &family, int64_t n) {
  __int128 size = 0;
  for (const auto &rows : family.ranks)
    for (const Row &row : rows)
      size += row.loop == noLoop ? 1 : __int128(n) + 1;
  return size;
}

std::string ppcc::proof::instantiate(const Template &family, int64_t n,
                                     Program &program) {
  Head &head = program.editHead();
  if (std::string fault = setPipes(family, n, head); !fault.empty())
    return fault;
  Rows result;
  result.reserve(static_cast<size_t>(numRows(family, n)));
  bool good = true;
  for (const auto &rows : family.ranks) {
    result.beginRank();
    forEachRow(rows, n, [&](uint32_t i, int64_t iteration) {
      result.append(actionOf(rows[i], n, iteration, head, good));
    });
  }
  if (!good)
    return "an action is of a microbatch that its pipe has not";
  program = program.withRows(std::move(result));
  return "";
}

namespace {

/// Rows that run several times in succession: all that a rank does is a list of
/// these.
struct Segment {
  uint32_t begin = 0, rows = 0;
  int64_t iterations = 1;
  __int128 size() const { return __int128(rows) * iterations; }
};

} // namespace

static std::vector<Segment> segmentsOf(const std::vector<Row> &rows,
                                       int64_t n) {
  std::vector<Segment> pieces;
  for (uint32_t i = 0; i != rows.size(); ++i) {
    uint32_t loop = rows[i].loop;
    if (i == 0 || loop != rows[i - 1].loop)
      pieces.push_back({i, 0, loop == noLoop ? 1 : n + 1});
    ++pieces.back().rows;
  }
  return pieces;
}

static std::vector<Segment> segmentsOf(const Program &program, RankId rank) {
  std::vector<Segment> pieces;
  forEachSegment(program, rank, [&](RowRange rows, const Loop *loop) {
    if (!rows.empty())
      pieces.push_back(
          {rows.from.value, uint32_t(rows.size()), loop ? loop->count : 1});
  });
  return pieces;
}

/// Calls `same(i, iteration, k, iteration)` for rows of two lists of pieces
/// that run at the same time, and says whether all are. What each row does is
/// linear in its iteration, and rows meet again after a multiple of both
/// pieces: two such meetings are looked at, which stand for all.
template <class Same>
static bool areSame(ArrayRef<Segment> left, ArrayRef<Segment> right,
                    Same same) {
  __int128 atLeft = 0, atRight = 0; // In the first of each.
  while (!left.empty() && !right.empty()) {
    const Segment &a = left.front(), &b = right.front();
    __int128 both = std::min(a.size() - atLeft, b.size() - atRight);
    int64_t comparisons = static_cast<int64_t>(
        std::min<__int128>(both, 2 * std::lcm<int64_t>(a.rows, b.rows)));
    int64_t i = atLeft % a.rows, iteration = atLeft / a.rows,
            k = atRight % b.rows, other = atRight / b.rows;
    for (; comparisons != 0; --comparisons) {
      if (!same(a.begin + i, iteration, b.begin + k, other))
        return false;
      if (++i == a.rows)
        i = 0, ++iteration;
      if (++k == b.rows)
        k = 0, ++other;
    }
    if ((atLeft += both) == a.size())
      left = left.drop_front(), atLeft = 0;
    if ((atRight += both) == b.size())
      right = right.drop_front(), atRight = 0;
  }
  return left.empty() && right.empty();
}

std::string ppcc::proof::instantiate(const Template &family, int64_t n,
                                     Rows rolled, Program &program) {
  if (std::string fault = setPipes(family, n, program.editHead());
      !fault.empty())
    return fault;
  program = program.withRows(std::move(rolled));
  if (program.ranksBegun() != family.ranks.size())
    return "there are other ranks";
  bool good = true;
  for (RankId rank : program.ranks()) {
    const std::vector<Row> &rows = family.ranks[rank.value];
    std::vector<int64_t> advance(program.size(rank));
    uint32_t begin = program.begin(rank).value;
    for (const Loop &loop : loopsOf(program, rank))
      std::fill(advance.begin() + (loop.begin.value - begin),
                advance.begin() + (loop.end.value - begin), loop.advance);
    auto same = [&](uint32_t i, int64_t iteration, uint32_t k, int64_t other) {
      Action a = actionOf(rows[i], n, iteration, program.head(), good),
             b = program[ActionId(k)];
      if (b.hasMicrobatch())
        b.microbatch += static_cast<uint32_t>(advance[k - begin] * other);
      return std::tie(a.kind, a.pipe, a.stage, a.microbatch, a.peer, a.phase,
                      a.site, a.joined) == std::tie(b.kind, b.pipe, b.stage,
                                                    b.microbatch, b.peer,
                                                    b.phase, b.site, b.joined);
    };
    if (!areSame(segmentsOf(rows, n), segmentsOf(program, rank), same))
      return "the loops do something else";
    // Between its first iteration and its last a row is between their
    // microbatches.
    for (const Row &row : rows)
      actionOf(row, n, row.loop == noLoop ? 0 : n, program.head(), good);
  }
  return good ? "" : "an action is of a microbatch that its pipe has not";
}
