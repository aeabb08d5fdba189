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

} // namespace ppcc::rt
