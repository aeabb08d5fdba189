#include "ppcc/Proof/Programs.h"

using namespace ppcc;
using namespace ppcc::proof;

std::optional<Affine> Programs::growthOf(size_t param) const {
  int64_t first, second;
  if (next.empty() || !llvm::to_integer(next[param].value, second) ||
      !llvm::to_integer(head.params()[param].value, first) || first == second)
    return std::nullopt;
  return Affine{2 * first - second, second - first};
}
