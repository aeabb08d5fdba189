// Checks what others claim of a template, for all n at once.
#pragma once

#include "ppcc/IR/Transport.h"
#include "ppcc/Proof/Costs.h"

namespace ppcc::proof {

/// What a check found.
struct Finding {
  enum class Kind : uint8_t { Holds, Fails, Unknown };
  Kind kind = Kind::Holds;
  std::string why; ///< Of Fails, which is for every n, and of Unknown.
  explicit operator bool() const { return kind == Kind::Holds; }
};

/// Whether two templates differ in nothing but messages: all else has the same
/// microbatches, in the same order and loops.
bool haveSameActions(const Template &a, const Template &b);

struct Event;
struct Domain;

/// The time from the first start to the last end.
struct Makespan {
  Affine value;
  bool isExact = false; ///< Else it is a bound from above.
};

/// A start or an end of a row in iteration j.
struct Event {
  uint32_t rank = 0, row = 0;
  bool isEnd = false;
  Affine iteration;
};

/// Judges one template on one transport, or by its data alone where that is
/// null. Groups hold compute actions only.
class Checker {
public:
  static std::unique_ptr<const Checker> of(const Template &program,
                                           const Transport *transport);
  virtual ~Checker() = default;

  /// Whether each slot of each stage and microbatch is filled once, and each
  /// message between ranks has one send and one receive.
  virtual Finding checkComplete() const = 0;
  /// Whether the two ranks of each lane have its messages in one order.
  virtual Finding checkMatching() const = 0;
  /// Whether each event is at least 1 after all that it waits for: then no
  /// rank waits for itself.
  virtual Finding checkAcyclic(const Times &order) const = 0;
  /// The makespan, where `times` respect all waits, and what actions and
  /// messages take. By data alone a message takes its time, and no iteration.
  virtual std::optional<Makespan> makespan(const Times &times,
                                           const Costs &costs) const = 0;
  /// Whether `times` are those of the run, all of them, not only the last.
  virtual bool isEarliestRun(const Times &times, const Costs &costs) const = 0;

  using Visit = function_ref<void(const Event &, const Domain &)>;
  /// Calls `visit` for the ends of the items that make what a compute action
  /// reads, or of its receives, and with the stage that it comes from. False
  /// where some of it is not known.
  virtual bool
  forEachInput(uint32_t rank, uint32_t row,
               function_ref<void(const Event &, const Domain &, StageId)> visit)
      const = 0;
  /// The same for the row that makes what another sends, and for the other end
  /// of a message.
  virtual bool forEachSendProducer(uint32_t rank, uint32_t row,
                                   Visit visit) const = 0;
  virtual bool forEachMatchingMessage(uint32_t rank, uint32_t row,
                                      Visit visit) const = 0;

  /// Whether each event of the cycle waits for the next, and the last for the
  /// first, for all n from `from` on.
  virtual bool isCycle(ArrayRef<Event> cycle, int64_t from) const = 0;
};

} // namespace ppcc::proof
