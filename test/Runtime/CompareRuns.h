// Compares a run with the plain loop, and what it held with a count of its own.
#pragma once

#include "Network.h"

#include "ppcc/Runtime/Engine.h"

#include <set>
#include <string>

namespace test {

/// How far the gradients of a run are from those of the plain loop.
struct RunDifference {
  size_t exact = 0, reordered = 0; ///< Layers.
  std::string wrong;               ///< What is wrong; empty if nothing.

  bool operator==(const RunDifference &) const = default;
};

/// Compares the layers of one rank: to the bit where their gradients were
/// summed in the order of the microbatches, else to 1e-12.
inline void compare(const Layers &found, const Layers &expected,
                    RunDifference &distance) {
  for (const auto &[key, layer] : found) {
    const Layer &plain = expected.at(key);
    bool inOrder = layer.order == plain.order;
    (inOrder ? distance.exact : distance.reordered) += 1;
    std::set<uint32_t> all(layer.order.begin(), layer.order.end());
    double limit = inOrder ? 0 : 1e-12;
    bool same = layer.order.size() == plain.order.size() &&
                all.size() == plain.order.size();
    for (size_t i = 0; i != layer.gradient.size(); ++i)
      same &= std::abs(layer.gradient[i] - plain.gradient[i]) <=
              limit * std::max(1.0, std::abs(plain.gradient[i]));
    if (!same)
      distance.wrong += " gradient of stage " + std::to_string(key.second);
  }
}

/// What a rank holds at most, counted from its list alone.
struct Peaks {
  uint32_t activations = 0, receives = 0;
};

inline std::vector<rt::Row> flatRows(const rt::RankProgram &rank) {
  std::vector<rt::Row> rows;
  for (const rt::Segment &segment : rank.segments)
    for (uint32_t time = 0; time != segment.count; ++time)
      for (uint32_t i = 0; i != segment.rows; ++i) {
        rows.push_back(rank.row(segment.firstRow + i));
        rows.back().microbatch += time * static_cast<uint32_t>(segment.advance);
      }
  return rows;
}

inline Peaks countPeaks(const rt::Program &program, uint32_t rank) {
  std::vector<rt::Row> rows = flatRows(program.ranks[rank]);
  auto mnemonic = [&](const rt::Row &row) {
    return std::string(program.kinds[row.kind].mnemonic);
  };
  // By pipe, stage, microbatch and direction: receives that nobody has read.
  std::map<std::tuple<int, int, uint32_t, bool>, uint32_t> posted;
  Peaks peaks;
  uint32_t activations = 0, receives = 0;
  for (size_t begin = 0, end; begin != rows.size(); begin = end) {
    for (end = begin + 1; end != rows.size() && rows[end].joined();)
      ++end;
    for (size_t i = begin; i != end; ++i) {
      activations += mnemonic(rows[i]) == "F";
      if (mnemonic(rows[i]).starts_with("RECV_"))
        ++receives, ++posted[{rows[i].pipe, rows[i].stage, rows[i].microbatch,
                              mnemonic(rows[i]) == "RECV_F"}];
    }
    peaks.activations = std::max(peaks.activations, activations);
    peaks.receives = std::max(peaks.receives, receives);
    for (size_t i = begin; i != end; ++i) {
      std::string kind = mnemonic(rows[i]);
      activations -= kind == "B" || kind == "W";
      if (kind == "F" || kind == "B" || kind == "I")
        receives -= std::exchange(posted[{rows[i].pipe, rows[i].stage,
                                          rows[i].microbatch, kind == "F"}],
                                  0);
    }
  }
  return peaks;
}

inline void comparePeaks(const rt::Program &program, uint32_t rank,
                         const rt::Stats &stats, std::string &wrong) {
  Peaks peaks = countPeaks(program, rank);
  auto differ = [&](const char *what, uint64_t found, uint64_t expected) {
    if (found != expected)
      wrong += " rank " + std::to_string(rank) + " has " + what + " " +
               std::to_string(found) + ", expected " + std::to_string(expected);
  };
  differ("activations", stats.peakActivations, peaks.activations);
  differ("receives", stats.peakReceives, peaks.receives);
  differ("actions", stats.actions, flatRows(program.ranks[rank]).size());
  // What the compiler says, where it says it.
  const rt::RankProgram &list = program.ranks[rank];
  if (list.peakActivations != 0)
    differ("activations, by the compiler", stats.peakActivations,
           list.peakActivations);
  if (list.receiveBuffers != 0)
    differ("receives, by the compiler", stats.peakReceives,
           list.receiveBuffers);
}

} // namespace test
