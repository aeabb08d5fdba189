// From a placement with costs and limits to the best schedule that is found.
#pragma once

#include "ppcc/Analysis/Run/Jitter.h"
#include "ppcc/Prove/Prove.h"
#include "ppcc/Synthesis/Search.h"

namespace ppcc {

/// What to look for.
struct SynthesisRequest {
  /// How the found schedule is compiled, and what a placement takes: values of
  /// parameters, costs, transports, limits. Its input is the placement:
  /// `linear`, `v`, `loop:V`, `wave:V`, or a schedule whose order is not looked
  /// at.
  Request request;
  Objective objective = Objective::Makespan;
  /// Of the makespans under jitter, if there is some, this is to be short.
  std::optional<Time Makespans::*> ofJitter;
  bool fusedBackward = false;
  bool certifies = false; ///< Of one number of microbatches, and makespans.
  /// Which stages compute their activations again, or bring them to the host
  /// and back, and for which microbatches, is looked for, too: with the actions
  /// of std.pp, or those of the placement's file.
  bool recompute = false, offload = false;
  std::vector<std::string> from; ///< Schedules to begin with.
  std::string name = "found";    ///< Of the schedule.
  /// The parameter that stands for the microbatches, for an order that does for
  /// each number of them; what is reported is about the number that it is
  /// given.
  std::string free;
  /// Of the model, in the notation of a layout without bars, or `model` for
  /// those that it has; how many each stage gets is looked for, too. Else
  /// empty.
  std::string layers;
  /// Of actions that are simulated; none for what takes about a second.
  std::optional<uint64_t> budget;
  const std::atomic<bool> *stop = nullptr;
  /// Called at each improvement: what takes it, and the bound.
  std::function<void(Time best, Time bound)> onBest;
};

/// What was found.
struct SynthesisResult {
  Compiled compiled;       ///< The schedule, through all passes.
  std::string text;        ///< Its source.
  std::string certificate; ///< Empty where there is none.
  synthesis::Order order;
  Time makespan = 0, span = 0; ///< On the first of its transports.
  Time value = 0;              ///< That of the objective, without jitter.
  std::optional<Makespans> jitter;
  ResourceBound bound;
  std::vector<decimal::Sum> peakMemory; ///< By rank.
  Units units;                          ///< Of these times and of the memory.
  std::optional<Proof> proof; ///< Of an order for every number of microbatches,
  int64_t minMicrobatches = 0; ///< from this one on,
  int64_t reportedM = 0;       ///< and the one that the figures are about.
  std::string layout;          ///< The layers of each stage, if it has layers.
  std::string origin; ///< The schedule that it came from; empty when it is new.
  uint64_t evaluations = 0, actions = 0;
  double seconds = 0;

  bool isOptimal() const { return value <= bound.time; }
};

/// Looks for the order, writes it as a schedule and compiles that. Nothing
/// after reports.
std::optional<SynthesisResult> synthesize(const SynthesisRequest &request,
                                          Session &session);

} // namespace ppcc
