// The digest of what all ranks of a program must agree on: BLAKE2b with 16
// bytes over the string that docs/program-format.md describes.
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
  /// A column of rows, without its length: `visit` calls what it gets with each
  /// value, which takes 4 bytes.
  template <class Visit> void column(Visit visit) {
    std::array<int32_t, 256> values;
    size_t count = 0;
    visit([&](uint32_t value) {
      values[count++] = static_cast<int32_t>(detail::littleEndian(value));
      if (count == values.size())
        hash.add(values.data(), sizeof(int32_t) * std::exchange(count, 0));
    });
    hash.add(values.data(), sizeof(int32_t) * count);
  }

  std::string end() { return hash.end(); }

private:
  void put(int64_t value) {
    uint64_t bytes = detail::littleEndian(static_cast<uint64_t>(value));
    hash.add(&bytes, sizeof bytes);
  }

  Blake2b hash;
};

namespace detail {

inline void digestRows(DigestBytes &bytes, const RankProgram &rank) {
  uint64_t count = 0;
  for (const Segment &segment : rank.segments)
    count += uint64_t(segment.rows) * segment.count;
  bytes.numbers(count);
  auto column = [&](auto valueOf) {
    bytes.column([&](auto put) {
      visitFlatRows(rank, [&](const Row &row) { put(valueOf(row)); });
    });
  };
  column([](const Row &row) { return row.kind; });
  column([](const Row &row) { return row.pipe; });
  column([](const Row &row) { return row.stage; });
  column([](const Row &row) { return row.microbatch; });
  column([](const Row &row) { return row.hasPeer() ? row.peer : ~0u; });
  // Whether a row is in a group, the next one tells.
  bytes.column([&](auto put) {
    uint32_t groups = 0, members = 0;
    auto endGroup = [&] {
      uint32_t number = members > 1 ? groups++ : ~0u;
      for (; members != 0; --members)
        put(number);
    };
    visitFlatRows(rank, [&](const Row &row) {
      if (!row.joined())
        endGroup();
      ++members;
    });
    endGroup();
  });
}

} // namespace detail

/// The digest of a program; loops count as if they were written out. The head
/// must have been checked, and that segments stay within their rows.
/// O(actions of all ranks).
inline std::string digestOf(const Program &program) {
  DigestBytes bytes;
  bytes.text("ppcc.digest.1");
  bytes.numbers(program.numRanks, program.hasBackward);
  bytes.list(program.kinds, [&](const Kind &kind) {
    bytes.text(kind.letters);
    bytes.text(kindClassNames[size_t(kind.kindClass)]);
    bytes.text(meetingNames[size_t(kind.meeting)]);
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
  for (const RankProgram &rank : program.ranks)
    detail::digestRows(bytes, rank);
  return bytes.end();
}

} // namespace ppcc::rt
