// What a program can do: the table of action kinds.
#pragma once

#include "ppcc/Support/Id.h"
#include "ppcc/Support/LLVM.h"

namespace ppcc {

/// The results of a stage for a microbatch, as bits.
namespace slot {
enum : uint8_t {
  Output = 1,     ///< What the next stages read.
  InputGrad = 2,  ///< What the previous stages read.
  WeightGrad = 4, ///< Stays on the rank.
};
inline constexpr unsigned count = 3;
inline constexpr uint8_t crossStage =
    Output | InputGrad; ///< Other stages read it.
} // namespace slot

/// The slots of a set, each as its bit, for a `for`.
class slotsIn {
public:
  constexpr explicit slotsIn(unsigned mask) : mask(mask) {}

  struct iterator {
    unsigned rest;
    constexpr uint8_t operator*() const {
      return static_cast<uint8_t>(rest & -rest);
    }
    constexpr iterator &operator++() { return rest &= rest - 1, *this; }
    constexpr bool operator==(const iterator &) const = default;
  };
  constexpr iterator begin() const { return {mask}; }
  constexpr iterator end() const { return {0}; }

private:
  unsigned mask;
};

/// Where a kind runs and what it moves. A declared kind is work whose rules the
/// program brings with it.
enum class KindClass : uint8_t { Compute, Send, Recv, Declared };

/// The word for a class in texts and files: `compute`, `send`, `recv`,
/// `declared`.
StringRef kindClassName(KindClass kindClass);

/// What has one action of a declared kind.
enum class KindScope : uint8_t {
  Microbatch, ///< Each stage and microbatch.
  Stage,      ///< Each stage.
  Rank,       ///< Each rank.
};

/// The words for the scopes: `microbatch`, `stage`, `rank`.
ArrayRef<StringRef> kindScopeNames();

/// The lanes that every program has; see KindTable::lanes().
namespace lane {
enum : uint8_t {
  Compute, ///< The rank's compute actions, in order.
  Comm,    ///< Its sends and receives.
  None,    ///< Beside everything, without time of its own.
};
} // namespace lane

/// The ranks that do an action together.
enum class Collective : uint8_t {
  None,
  All,      ///< All ranks of the program.
  Replicas, ///< Those that host the stage of this number in any pipe.
  Stages,   ///< Those that host some stages of the pipe.
  Outside,  ///< The rank, and ranks of other programs.
  To,       ///< The rank, and one to which it moves something.
  From,     ///< The same the other way.
};

/// What an action stands after, or before: those of `kinds` that belong
/// to the same stage and microbatch, as far as both have them. There is one at
/// least.
struct KindRule {
  bool isBefore = false;
  std::vector<KindId> kinds;
  bool operator==(const KindRule &) const = default;
};

/// The word for the ranks that meet; empty for Collective::None.
StringRef collectiveName(Collective collective);

/// A row of the table of kinds; see ActionKind.def.
struct KindInfo {
  std::string mnemonic; ///< As in `0F3`; unique in the table.
  KindClass kindClass = KindClass::Compute;
  uint8_t defines = 0; ///< The slots that it fills or carries.
  uint8_t needs =
      0; ///< The slots of its own stage and microbatch that it reads.

  // Of a declared kind.
  KindScope scope = KindScope::Microbatch;
  uint8_t lane = lane::Compute;
  bool isRequired = false;        ///< A program with one has all of them.
  std::optional<KindId> restores; ///< What it takes, one of this kind gives
                                  ///< back at its end.
  /// At most so many are on their way on a rank, which waits with its compute
  /// actions meanwhile; 0 for any number.
  uint32_t inFlight = 0;
  Collective collective = Collective::None;
  std::string outside;         ///< The name of Collective::Outside.
  std::vector<int32_t> stages; ///< Of Collective::Stages; those below 0 count
                               ///< from the last stage up.
  std::vector<KindRule> rules;

  /// Whether it is work of the rank, and no message.
  bool isCompute() const {
    return kindClass == KindClass::Compute || isDeclared();
  }
  bool isDeclared() const { return kindClass == KindClass::Declared; }
  bool isSend() const { return kindClass == KindClass::Send; }
  bool isRecv() const { return kindClass == KindClass::Recv; }
  /// Of a message: whether the stage at the other end is above its own.
  bool goesToLaterStage() const {
    return isSend() == bool(defines & slot::Output);
  }
  /// Whether it is work that runs beside the compute actions.
  bool isAsync() const { return lane != lane::Compute; }
  /// Whether its rank computes nothing else while it runs, groups apart.
  bool occupiesRank() const { return isCompute() && !isAsync(); }
  /// Whether its scope tells the meetings of its kind apart: all ranks meet by
  /// rank or stage, replicas by stage, stages by stage or microbatch, as do two
  /// ranks.
  bool isValidCollective() const;
  /// Whether another rank has an end of it, too: the same row, which names the
  /// stage of its own rank and, as its peer, one of the other.
  bool isMove() const {
    return collective == Collective::To || collective == Collective::From;
  }
  /// Whether it names a stage at its other end.
  bool hasPeer() const { return !isCompute() || isMove(); }
  /// Whether ranks of the program do it together.
  bool isCollective() const {
    return collective != Collective::None && collective != Collective::Outside;
  }
  /// The slot under which it is counted: the first that it defines.
  uint8_t mainSlot() const { return defines & -defines; }
};

namespace kind {
enum : uint32_t {
#define KIND(Name, Letters, Class, Defines, Needs) Name,
#include "ppcc/IR/ActionKind.def"
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
  ArrayRef<KindInfo> rows() const { return kinds; }
  IdRange<KindId> ids() const { return firstIds<KindId>(size()); }

  /// The kind with this mnemonic.
  std::optional<KindId> find(StringRef mnemonic) const;
  /// The kind of this class that defines exactly these slots.
  std::optional<KindId> find(KindClass kindClass, uint8_t defines) const;
  /// What remains of `whole` when `part` is done by itself: I for B without W.
  /// Nothing when `whole` does not contain `part`, or is `part`.
  std::optional<KindId> without(KindId whole, KindId part) const;

  /// The largest number of kinds.
  static constexpr size_t maxKinds = 0x100;
  /// Adds a declared kind; its mnemonic is new.
  KindId declare(KindInfo info) {
    assert(kinds.size() < maxKinds && info.isDeclared());
    kinds.push_back(std::move(info));
    return KindId(kinds.size() - 1);
  }
  /// To complete a kind that others name before it.
  KindInfo &declared(KindId id) { return kinds[id.value]; }
  bool hasDeclared() const { return kinds.size() != numBuiltIn; }
  ArrayRef<KindInfo> declaredRows() const {
    return rows().drop_front(numBuiltIn);
  }
  /// The mnemonics of all that compute.
  std::vector<StringRef> computeMnemonics() const;

  /// The names of the lanes: `compute`, `comm`, `none`, and those that
  /// declarations add.
  ArrayRef<std::string> lanes() const { return laneNames; }
  /// The lane called `name`, added when it is new; nothing when there are too
  /// many.
  std::optional<uint8_t> lane(StringRef name);
  /// Whether some kind runs beside the compute actions.
  bool hasAsync() const;

  /// Only the built-in kinds and those declared ones for which `keeps` is true;
  /// `keeps` has a place for each kind. Also those that these name.
  /// `renumbered` then has the new number of each kind that is kept.
  KindTable pruned(BitVector keeps, std::vector<KindId> &renumbered) const;

  /// Stands for those that pruned() has left out.
  static constexpr KindId prunedKind{maxKinds};
  bool isPruned(StringRef mnemonic) const {
    return llvm::is_contained(prunedMnemonics, mnemonic);
  }

private:
  std::vector<std::string> prunedMnemonics; ///< Of those that compute.
  std::vector<KindInfo> kinds;
  std::vector<std::string> laneNames{"compute", "comm", "none"};
  size_t numBuiltIn;
};

} // namespace ppcc
