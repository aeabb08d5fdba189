// What is decided about the messages of a program, and the passes that do it.
#pragma once

#include "ppcc/IR/Calls.h"
#include "ppcc/IR/Transport.h"
#include "ppcc/Model/Instance.h"
#include "ppcc/Pass/Pass.h"
#include "ppcc/Pass/PassRegistry.h"
#include "ppcc/Transforms/Passes.h"
#include "ppcc/Verify/Passes.h"

namespace ppcc {

/// What `comm { }` may name: the transports, orders, fusions and calls that
/// there are.
sema::CommWords commWords();

/// When the connections of a program are listed: `Auto` does where they may be
/// made as messages come, on streams, and keeps the list that a program has.
enum class Preconnect : uint8_t { Auto, On, Off };
inline constexpr std::pair<StringRef, Preconnect> preconnects[] = {
    {"auto", Preconnect::Auto},
    {"on", Preconnect::On},
    {"off", Preconnect::Off}};

/// What is asked for; the schedule decides about the rest.
struct CommRequest {
  std::optional<CommOrder> order;
  const FusionInfo *fusion = nullptr;
  std::optional<uint32_t> prefetch;
  std::optional<Preconnect> preconnect;
  std::vector<Transport> transports; ///< Each once.
};

/// What was decided.
struct CommPolicy {
  CommOrder order = CommOrder::ReadyTime;
  const FusionInfo *fusion = findFusion("none"); ///< Never null.
  CallStyle calls = CallStyle::Exchange;
  std::optional<uint32_t> prefetch; ///< Receives of an edge; any number.
  std::vector<Transport> transports{*findTransport("stream")};
  std::optional<TorchTarget> torch; ///< Whose steps take turns, if any.
  bool proves = true; ///< That the program cannot hang on the transports.
  bool preconnects = true;

  /// The passes that see to it; those that only check are left out where
  /// `times` is to be filled.
  Pipeline pipeline(PlanTimes *times = nullptr) const;
};

/// What is asked for that excludes something else, if anything.
std::string conflictIn(const CommRequest &request);

/// Decides for `program`, made of `selection` or, when that is null, read: what
/// is requested stands above what schedule and cluster say. An order that is
/// requested stands above a fusion of the schedule that would place the
/// messages itself. Messages that a program has stay where they are. Nothing
/// after a report that the schedule says twice who places its messages.
std::optional<CommPolicy> decideComm(const CommRequest &request,
                                     const sema::Selection *selection,
                                     const Program &program,
                                     DiagnosticEngine &diags);

/// A registry with all passes of Passes.def, for what was decided.
PassRegistry makePassRegistry(const CommPolicy &comm = {},
                              DynamicRule dynamic = DynamicRule::None,
                              PlanTimes *times = nullptr);

} // namespace ppcc
