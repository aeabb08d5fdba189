// Pairs of programs that differ in one row, for what agrees on digests.
#pragma once

#include "Network.h"

#include "ppcc/Runtime/Digest.h"
#include "ppcc/Runtime/Engine.h"

#include <cstdio>
#include <random>

namespace test {

inline constexpr unsigned numMutations = 100;

/// What rt::RankProgram::rows are when the loops are written out.
template <class Visit>
void visitFlatRows(const rt::RankProgram &rank, Visit visit) {
  rt::RowReader rows(rank);
  for (const rt::Segment &segment : rank.segments)
    for (uint32_t iteration = 0, microbatchOffset = 0;
         iteration != segment.count; ++iteration,
                  microbatchOffset += static_cast<uint32_t>(segment.advance))
      for (uint64_t i = 0; i != segment.rows; ++i) {
        rt::Row row = rows[segment.firstRow + i];
        if (row.microbatch != rt::Row::noMicrobatch)
          row.microbatch += microbatchOffset;
        visit(row);
      }
}

/// A copy of a program in which one row is another: `seed` chooses the row, and
/// whether it trades places with the next, is of another microbatch, stands
/// twice, or leaves its group or joins one.
class MutatedProgram {
public:
  MutatedProgram(const rt::Program &from, unsigned seed)
      : off(from), ranks(from.ranks.begin(), from.ranks.end()) {
    std::mt19937 random(seed);
    auto pick = [&](size_t count) { return std::uint32_t(random() % count); };
    rt::RankProgram &rank = ranks[pick(ranks.size())];
    visitFlatRows(rank, [&](const rt::Row &row) { rows.push_back(row); });
    uint32_t at = pick(uint32_t(rows.size()));
    const rt::Pipe &pipe = from.pipes[rows[at].pipe];
    switch (pipe.numMicrobatches == 1 && seed % 4 == 1 ? 2 : seed % 4) {
    case 0:
      std::swap(rows[at], rows[at == 0 ? 1 : at - 1]);
      rows.front().phaseAndJoined &= uint16_t(~rt::Row::joinedBit);
      break;
    case 1:
      rows[at].microbatch = rows[at].microbatch == pipe.firstMicrobatch
                                ? rows[at].microbatch + 1
                                : rows[at].microbatch - 1;
      break;
    case 2:
      rows.insert(rows.begin() + at, rows[at]);
      break;
    case 3:
      rows[std::max(at, 1u)].phaseAndJoined ^= rt::Row::joinedBit;
    }
    all = {0, uint32_t(rows.size()), 1, 0};
    rank = {{rows.data(), rows.size()}, {}, {&all, 1}, 0, 0};
    off.ranks = {ranks.data(), ranks.size()};
  }
  MutatedProgram(const MutatedProgram &) = delete;
  operator const rt::Program &() const { return off; }

private:
  rt::Program off;
  std::vector<rt::RankProgram> ranks;
  std::vector<rt::Row> rows;
  rt::Segment all;
};

/// Counts what is computed.
struct CountingStage : NetworkStage {
  unsigned calls = 0;
  Value forward(const rt::ActionContext &work,
                const rt::Inputs<Value> &inputs) {
    ++calls;
    return NetworkStage::forward(work, inputs);
  }
};

/// Whether `link` refuses, in words that name both sides.
template <class Link>
bool refuses(const rt::Program &program, const rt::Program &other, Link link) {
  try {
    link();
  } catch (const rt::ProgramMismatch &error) {
    std::string text = error.what();
    auto has = [&](const std::string &part) {
      return text.find(part) != std::string::npos;
    };
    return has("rank " + std::to_string(error.rank()) + ": ") &&
           has(", that of rank ") && has(rt::digestOf(program)) &&
           has(rt::digestOf(other));
  }
  return false;
}

} // namespace test
