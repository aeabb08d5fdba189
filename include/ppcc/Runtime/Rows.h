// Reads the rows of a rank quickly, packed or not.
#pragma once

#include "ppcc/Runtime/Program.h"

#include <bit>
#include <cstring>

namespace ppcc::rt {

class RowReader {
public:
  explicit RowReader(const RankProgram &rank)
      : rank(rank),
        bytes(rank.rows.empty()
                  ? rank.packedRows.data
                  : reinterpret_cast<const char *>(rank.rows.data)) {}

  Row operator[](uint64_t i) const {
    // Packed rows lie as this machine has them, if its lowest byte is first.
    if constexpr (std::endian::native != std::endian::little)
      return rank.row(i);
    Row row;
    std::memcpy(&row, bytes + i * sizeof(Row), sizeof(Row));
    return row;
  }

private:
  const RankProgram &rank;
  const char *bytes;
};

/// What RankProgram::rows are when the loops are written out.
template <class Visit>
void visitFlatRows(const RankProgram &rank, Visit visit) {
  RowReader rows(rank);
  for (const Segment &segment : rank.segments)
    for (uint32_t iteration = 0, microbatchOffset = 0;
         iteration != segment.count; ++iteration,
                  microbatchOffset += static_cast<uint32_t>(segment.advance))
      for (uint64_t i = 0; i != segment.rows; ++i) {
        Row row = rows[segment.firstRow + i];
        if (row.microbatch != Row::noMicrobatch)
          row.microbatch += microbatchOffset;
        visit(row);
      }
}

} // namespace ppcc::rt
