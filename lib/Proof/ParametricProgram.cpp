#include "ppcc/Proof/ParametricProgram.h"

using namespace ppcc;
using namespace ppcc::proof;

std::optional<Affine> ResidueFamily::paramFormula(size_t param) const {
  int64_t first, second;
  if (secondParams.empty() ||
      !llvm::to_integer(secondParams[param].value, second) ||
      !llvm::to_integer(head.params()[param].value, first) || first == second)
    return std::nullopt;
  return Affine{2 * first - second, second - first};
}
