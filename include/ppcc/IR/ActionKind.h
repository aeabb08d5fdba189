// What a program can do: the table of action kinds.
#pragma once

#include "ppcc/Support/Id.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>
#include <vector>

namespace ppcc {

/// The results of a stage for a microbatch, as bits.
namespace slot {
enum : uint8_t {
  Output = 1,     ///< What the next stages read.
  InputGrad = 2,  ///< What the previous stages read.
  WeightGrad = 4, ///< Stays on the rank.
};
inline constexpr unsigned count = 3;
inline constexpr uint8_t moving = Output | InputGrad; ///< Other stages read it.
} // namespace slot

/// Where a kind runs and what it moves.
enum class KindClass : uint8_t { Compute, Send, Recv };

/// The word for a class in texts and files: `compute`, `send`, `recv`.
llvm::StringRef kindClassName(KindClass kindClass);

/// A row of the table of kinds; see ActionKind.def.
struct KindInfo {
  std::string letters; ///< As in `0F3`; unique in the table.
  KindClass kindClass = KindClass::Compute;
  uint8_t defines = 0; ///< The slots that it fills or carries.
  uint8_t needs =
      0; ///< The slots of its own stage and microbatch that it reads.

  bool isCompute() const { return kindClass == KindClass::Compute; }
  /// The slot under which it is counted: the first that it defines.
  uint8_t mainSlot() const { return defines & -defines; }
};

namespace kind {
enum : uint32_t {
#define KIND(Name, Letters, Class, Defines, Needs) Name,
#include "ppcc/IR/ActionKind.def"
#undef KIND
};
} // namespace kind

/// The kinds of one program: the built-in ones first, then those that it
/// declares.
class KindTable {
public:
  /// A table with the built-in kinds.
  KindTable();

  const KindInfo &operator[](KindId id) const { return kinds[id.value]; }
  size_t size() const { return kinds.size(); }
  llvm::ArrayRef<KindInfo> rows() const { return kinds; }

  /// The kind with these letters.
  std::optional<KindId> find(llvm::StringRef letters) const;
  /// The kind of this class that defines exactly these slots.
  std::optional<KindId> find(KindClass kindClass, uint8_t defines) const;
  /// What remains of `whole` when `part` is done by itself: I for B without W.
  /// Nothing when `whole` does not contain `part`, or is `part`.
  std::optional<KindId> without(KindId whole, KindId part) const;

private:
  std::vector<KindInfo> kinds;
};

} // namespace ppcc
