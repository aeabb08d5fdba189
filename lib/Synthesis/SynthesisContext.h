// What was asked for, and the placement that it is about: what all ways to
// look for an order share.
#pragma once

#include "ppcc/Synthesis/Synthesize.h"
#include "ppcc/Synthesis/Write.h"

namespace ppcc::synthesis {

/// A placement with its work.
struct Instance {
  Instance(Program given, const SynthesisRequest &userRequest,
           Workload::Backward backward, const ActivationPlan *plan = nullptr);

  Program program;
  Durations durations;
  Workload load;
  Problem problem;
};

class SynthesisContext {
public:
  SynthesisContext(const SynthesisRequest &userRequest, Session &session)
      : userRequest(userRequest), session(session) {}

  using Params = std::vector<sema::ParamValue>;
  /// Reads the placement with these parameters, and makes it that of the task;
  /// null after a report.
  std::unique_ptr<Instance> instance(const Params &params);
  /// The same without a look at its work.
  bool readPlacement(const Params &params);
  /// The placement that was read, with the savings of the task; null after a
  /// report.
  std::unique_ptr<Instance> instance();

  /// The work where everything is kept.
  static Workload workload(const Program &program, const Durations &durations,
                           Workload::Backward backward) {
    return Workload::of(program, durations, backward, 1,
                        Workload::ActivationPolicy::Keep);
  }

  /// Searches until somebody says stop, and counts what that took.
  SearchResult search(const Problem &problem, ArrayRef<Order> initialOrders,
                      SearchOptions options);
  /// Reports that nothing can be found; false.
  bool refuse(const std::string &what);

  /// How the found schedule begins: with the settings that were asked for, and
  /// an order of its messages.
  ScheduleHeader headOf(std::optional<CommOrder> comm) const;
  /// To compile a text that was found.
  Request requestOf(const std::string &text, Session &to) const;
  Compiled compileText(const std::string &text, Session &to,
                       Params params = {}) const;
  /// An order with one of the messages as a program, and what the transport
  /// makes of it; nothing where it is not safe.
  struct Evaluation {
    Compiled compiled;
    std::optional<Time> value;
  };
  Evaluation evaluate(const Problem &problem, const Order &order,
                      std::optional<CommOrder> comm);
  /// What is asked for of the makespans under jitter, in runs of its own;
  /// nothing where there is none.
  std::optional<Time> valueUnderJitter(const Compiled &compiled);
  /// What that takes, and to write an order and compile its text, in simulated
  /// actions.
  static uint64_t costOfEvaluation(const Problem &problem) {
    return uint64_t(problem.numActions) * 128;
  }
  static uint64_t costOfText(const Problem &problem) {
    return uint64_t(problem.numActions) * 256;
  }
  /// Fills in what the compiled program takes and holds, and the bound.
  bool measure(const ResourceBound &ofOrders, SynthesisResult &result);
  /// What is said of it at the top of its text, in lines of comment.
  std::string commentOf(const SynthesisResult &result) const;

  /// A certificate that the order takes what it takes, and of the bound; empty
  /// after a report.
  std::string certify(const Problem &problem, const Order &order,
                      const ResourceBound &bound);

  Workload::Backward backward() const {
    return userRequest.fusedBackward ? Workload::Backward::Fused
                                     : Workload::Backward::Split;
  }
  /// What is left of the budget, or a little to end with.
  uint64_t left() const {
    return std::max(budget() / 16, budget() - std::min(budget(), actions));
  }
  uint64_t budget() const { return userRequest.budget.value_or(100'000'000); }

  SynthesisRequest userRequest;
  Session &session;
  Program program;
  bool saysWhatIsLeftOut = false;
  std::optional<ActivationPlan> plan;    ///< Nothing where they are no choice.
  std::optional<ResourceBound> bound;    ///< Of all choices of these.
  uint64_t evaluations = 0, actions = 0; ///< So far.

private:
  bool isInScope();
  bool checkMemoryBalance(const Workload &load);
  bool fits(const Workload &load);
  bool fitsMemory(const Problem &problem);
};

/// Sets the layout with which a quick search does best; false after a report.
bool chooseLayout(SynthesisContext &context);
/// Sets the savings of the placement that was read with which a quick search
/// does best, and what no choice of them is better than; false after a report.
bool chooseActivationPlan(SynthesisContext &context);
/// The best order for the number of microbatches that was given.
std::optional<SynthesisResult> synthesizeForOne(SynthesisContext &context);
/// The best order that goes on in one way for all numbers of microbatches.
std::optional<SynthesisResult> synthesizeForAll(SynthesisContext &context);

} // namespace ppcc::synthesis
