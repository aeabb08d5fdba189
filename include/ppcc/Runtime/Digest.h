// The digest of what all ranks of a program must agree on: BLAKE2b with 16
// bytes over the string that docs/program-format.md describes. It protects from
// mistakes, not from whoever wants two programs to have one digest.
#pragma once

#include "ppcc/Runtime/Rows.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace ppcc::rt {

namespace detail {

/// The number whose bytes lie here, or lay elsewhere, with the lowest first.
template <class Number> Number littleEndian(Number value) {
  if constexpr (std::endian::native == std::endian::little)
    return value;
  Number result = 0;
  for (size_t i = 0; i != sizeof value; ++i)
    result |= (value >> (8 * i) & 0xFF) << (8 * (sizeof value - 1 - i));
  return result;
}

} // namespace detail

/// BLAKE2b (RFC 7693) without a key, 16 bytes of digest.
class Blake2b {
public:
  void add(const void *data, size_t size) {
    const char *from = static_cast<const char *>(data);
    while (size != 0) {
      if (used == sizeof block)
        compress(false);
      size_t count = std::min(size, sizeof block - used);
      std::memcpy(block + used, from, count);
      used += count, from += count, size -= count;
    }
  }

  /// In hexadecimal digits. Nothing can be added any more.
  std::string end() {
    std::memset(block + used, 0, sizeof block - used);
    compress(true);
    std::string text;
    for (int i = 0; i != 16; ++i) {
      uint64_t byte = state[i / 8] >> (8 * (i % 8)) & 0xFF;
      text += {"0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15]};
    }
    return text;
  }

private:
  using Words = std::array<uint64_t, 16>;

  static constexpr uint64_t iv[8] = {0x6A09E667F3BCC908, 0xBB67AE8584CAA73B,
                                     0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1,
                                     0x510E527FADE682D1, 0x9B05688C2B3E6C1F,
                                     0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179};
  static constexpr uint8_t sigma[10][16] = {
      {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
      {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
      {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
      {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
      {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
      {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
      {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
      {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
      {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
      {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};

  static void mix(Words &v, size_t a, size_t b, size_t c, size_t d, uint64_t x,
                  uint64_t y) {
    v[a] += v[b] + x, v[d] = std::rotr(v[d] ^ v[a], 32);
    v[c] += v[d], v[b] = std::rotr(v[b] ^ v[c], 24);
    v[a] += v[b] + y, v[d] = std::rotr(v[d] ^ v[a], 16);
    v[c] += v[d], v[b] = std::rotr(v[b] ^ v[c], 63);
  }

  /// Columns, then diagonals.
  template <size_t... I>
  static void mixRound(Words &v, const Words &m, const uint8_t (&s)[16],
                       std::index_sequence<I...>) {
    (mix(v, I, I + 4, I + 8, I + 12, m[s[2 * I]], m[s[2 * I + 1]]), ...);
    (mix(v, I, 4 + (I + 1) % 4, 8 + (I + 2) % 4, 12 + (I + 3) % 4,
         m[s[2 * I + 8]], m[s[2 * I + 9]]),
     ...);
  }

  void compress(bool isLast) {
    Words m, v;
    std::memcpy(m.data(), block, sizeof block);
    for (uint64_t &word : m)
      word = detail::littleEndian(word);
    total += used;
    used = 0;
    std::copy(state.begin(), state.end(), v.begin());
    std::copy(std::begin(iv), std::end(iv), v.begin() + 8);
    v[12] ^= total;
    v[14] ^= isLast ? ~uint64_t(0) : 0;
    [&]<size_t... Rounds>(std::index_sequence<Rounds...>) {
      (mixRound(v, m, sigma[Rounds % 10], std::make_index_sequence<4>()), ...);
    }(std::make_index_sequence<12>());
    for (size_t i = 0; i != 8; ++i)
      state[i] ^= v[i] ^ v[i + 8];
  }

  std::array<uint64_t, 8> state = {
      iv[0] ^ 0x01010010, iv[1], iv[2], iv[3], iv[4], iv[5], iv[6], iv[7]};
  unsigned char block[128];
  size_t used = 0;
  uint64_t total = 0; ///< Bytes; no program has 2^64.
};

/// Spells the string: a number takes 8 bytes, the lowest first; a text and a
/// list begin with their length.
class DigestBytes {
public:
  template <class... Numbers> void numbers(Numbers... values) {
    (put(static_cast<int64_t>(values)), ...);
  }
  void text(std::string_view text) {
    numbers(text.size());
    hash.add(text.data(), text.size());
  }
  /// A list, each item of which `each` spells.
  template <class Range, class Each> void list(const Range &range, Each each) {
    numbers(std::distance(std::begin(range), std::end(range)));
    for (const auto &item : range)
      each(item);
  }
  template <class Range> void list(const Range &range) {
    list(range, [&](auto number) { numbers(number); });
  }
  std::string end() { return hash.end(); }

private:
  void put(int64_t value) {
    uint64_t bytes = detail::littleEndian(static_cast<uint64_t>(value));
    hash.add(&bytes, sizeof bytes);
  }

  Blake2b hash;
};

/// The columns of a rank, each as one number: its values, 32 bits each, are the
/// digits in base 2^32, the lowest first. Of that number the remainders of two
/// primes are kept (Rabin's fingerprint). The remainder of a loop follows from
/// that of its first iteration by a geometric sum, so loops are not written
/// out.
class RowFingerprint {
public:
  /// A row in the columns of docs/program-format.md, but for `group`.
  struct Row {
    uint32_t kind, pipe, stage, microbatch, peer;
    bool hasMicrobatch, joined;
  };

  /// Adds rows, whole groups, that run `iterations` times; each further time
  /// adds `advance` to their microbatches. `rowAt(i)` gives row i. O(rows + log
  /// iterations).
  template <class RowAt>
  void add(uint64_t count, RowAt rowAt, uint32_t iterations, int32_t advance) {
    if (count == 0 || iterations == 0)
      return;
    Sums once[2] = {};
    uint64_t power[2] = {residues[0].power, residues[1].power};
    uint32_t first = groups;
    Row row = rowAt(uint64_t(0));
    for (uint64_t i = 0; i != count; ++i) {
      Row next = i + 1 != count ? rowAt(i + 1) : Row();
      bool continues = i != 0 && row.joined;
      bool grouped = continues || next.joined;
      const uint32_t values[columns] = {row.kind,  row.pipe,
                                        row.stage, row.microbatch,
                                        row.peer,  grouped ? groups : ~0u};
      for (size_t p = 0; p != 2; ++p) {
        for (size_t c = 0; c != columns; ++c)
          once[p].columns[c] += Wide(values[c]) * power[p];
        once[p].ofMicrobatch += row.hasMicrobatch ? power[p] : 0;
        once[p].ofGroup += grouped ? power[p] : 0;
        power[p] = residues[p].shifted(power[p]);
      }
      groups += grouped && !next.joined;
      row = next;
    }
    for (size_t p = 0; p != 2; ++p)
      residues[p].add(once[p], count, iterations, advance, groups - first);
    groups += (iterations - 1) * (groups - first);
    rows += count * iterations;
  }

  /// Spells the rows, and the two remainders of each column.
  template <class Bytes> void appendTo(Bytes &bytes) const {
    bytes.numbers(rows);
    for (size_t c = 0; c != columns; ++c)
      bytes.numbers(residues[0].columns[c], residues[1].columns[c]);
  }

private:
  static constexpr size_t columns = 6;
  __extension__ typedef unsigned __int128 Wide;

  /// Of rows, times the powers of their positions: the values, and 1 for each
  /// value that grows with the iterations.
  struct Sums {
    Wide columns[RowFingerprint::columns], ofMicrobatch, ofGroup;
  };

  /// What is known modulo a prime.
  struct Residue {
    uint64_t prime;
    uint64_t quotient = static_cast<uint64_t>((Wide(1) << 96) / prime);
    uint64_t power = 1; ///< 2^32 to the number of rows.
    uint64_t columns[RowFingerprint::columns] = {};

    uint64_t times(uint64_t a, uint64_t b) const {
      return static_cast<uint64_t>(Wide(a) * b % prime);
    }
    /// Times 2^32 (Shoup's multiplication by a constant).
    uint64_t shifted(uint64_t a) const {
      uint64_t result =
          (a << 32) - static_cast<uint64_t>(Wide(a) * quotient >> 64) * prime;
      return result < prime ? result : result - prime;
    }

    void add(const Sums &once, uint64_t count, uint32_t iterations,
             int64_t advance, uint64_t groups) {
      uint64_t iterationShift = 1; // 2^32 to `count`.
      for (uint64_t base = uint64_t(1) << 32, left = count; left != 0;
           left >>= 1, base = times(base, base))
        iterationShift =
            left & 1 ? times(iterationShift, base) : iterationShift;
      // Of shift^k for the iterations k, and of k shift^k.
      uint64_t all = iterationShift, sum = 1, weighted = 0;
      for (int bit = std::bit_width(iterations) - 2; bit >= 0; --bit) {
        uint64_t half = iterations >> (bit + 1);
        weighted = (weighted + times(all, weighted) +
                    Wide(times(half, times(all, sum)))) %
                   prime;
        sum = (sum + times(all, sum)) % prime;
        all = times(all, all);
        if (iterations >> bit & 1) {
          weighted = (weighted + Wide(times(2 * half, all))) % prime;
          sum = (sum + all) % prime;
          all = times(all, iterationShift);
        }
      }
      auto grow = [&](size_t c, Wide values, Wide ones, uint64_t step) {
        Wide looped =
            Wide(times(static_cast<uint64_t>(values % prime), sum)) +
            times(times(static_cast<uint64_t>(ones % prime), step), weighted);
        columns[c] = static_cast<uint64_t>((columns[c] + looped) % prime);
      };
      for (size_t c : {0, 1, 2, 4})
        grow(c, once.columns[c], 0, 0);
      grow(3, once.columns[3], once.ofMicrobatch,
           advance < 0 ? prime - static_cast<uint64_t>(-advance)
                       : static_cast<uint64_t>(advance));
      grow(5, once.columns[5], once.ofGroup, groups);
      power = times(power, all);
    }
  };

  // The greatest primes p below 2^60 pi and 2^60 e of which (p - 1) / 2 is one.
  Residue residues[2] = {{3622009729038558863}, {3133965575612453507}};
  uint64_t rows = 0;
  uint32_t groups = 0;
};

/// The digest of a program, the same whether loops are written out. The head
/// must have been checked, and that segments stay within their rows. O(rows).
inline std::string digestOf(const Program &program) {
  DigestBytes bytes;
  bytes.text("ppcc.digest.2");
  bytes.numbers(program.numRanks, program.hasBackward);
  bytes.list(program.kinds, [&](const Kind &kind) {
    bytes.text(kind.mnemonic);
    bytes.text(kindClassNames[size_t(kind.kindClass)]);
    bytes.text(collectiveNames[size_t(kind.collective)]);
    bytes.list(kind.stages);
  });
  bytes.list(program.pipes, [&](const Pipe &pipe) {
    bytes.numbers(pipe.firstMicrobatch,
                  pipe.firstMicrobatch + pipe.numMicrobatches);
    bytes.list(pipe.rankOfStage);
    bytes.list(pipe.skipEdges,
               [&](SkipEdge edge) { bytes.numbers(edge.from, edge.to); });
    bytes.list(pipe.gaps);
    bytes.numbers(pipe.slices);
    bytes.list(pipe.tensors, [&](const EdgeTensors &edge) {
      bytes.numbers(edge.from, edge.to, edge.shapesVary);
      bytes.list(edge.tensors, [&](const Tensor &tensor) {
        bytes.text(tensor.name);
        bytes.text(tensor.type);
        bytes.list(tensor.dims);
      });
    });
  });
  bytes.list(program.preconnect,
             [&](RankPair pair) { bytes.numbers(pair.first, pair.second); });
  for (const RankProgram &rank : program.ranks) {
    RowFingerprint fingerprint;
    RowReader rows(rank);
    for (const Segment &segment : rank.segments)
      fingerprint.add(
          segment.rows,
          [&](uint64_t i) {
            Row row = rows[segment.firstRow + i];
            return RowFingerprint::Row{row.kind,
                                       row.pipe,
                                       row.stage,
                                       row.microbatch,
                                       row.hasPeer() ? row.peer : ~0u,
                                       row.microbatch != Row::noMicrobatch,
                                       row.joined()};
          },
          segment.count, segment.advance);
    fingerprint.appendTo(bytes);
  }
  return bytes.end();
}

} // namespace ppcc::rt
