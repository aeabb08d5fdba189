// What was asked for, and the placement that it is about: what all ways to
// look for an order share.
#pragma once

#include "ppcc/Synthesis/Synthesize.h"
#include "ppcc/Synthesis/Write.h"

namespace ppcc::synthesis {

/// A placement with its work.
struct Instance {
  Instance(Program given, const SynthesisRequest &asked,
           Workload::Backward backward, const Savings *savings = nullptr);

  Program program;
  Durations durations;
  Workload load;
  Problem problem;
};

class Task {
public:
  Task(const SynthesisRequest &asked, Session &session)
      : asked(asked), session(session) {}

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
                        Workload::Saving::Keep);
  }

  /// Searches until somebody says stop, and counts what that took.
  Found search(const Problem &problem, ArrayRef<Order> known,
               SearchOptions options);
  /// Reports that nothing can be found; false.
  bool refuse(const std::string &what);

  /// How the found schedule begins: with the settings that were asked for, and
  /// an order of its messages.
  WrittenHead headOf(std::optional<CommOrder> comm) const;
  /// To compile a text that was found.
  Request requestOf(const std::string &text, Session &to) const;
  Compiled compileText(const std::string &text, Session &to,
                       Params params = {}) const;
  /// An order with one of the messages as a schedule, and what the transport
  /// makes of it; nothing where it is not safe.
  struct Judged {
    std::string text;
    Compiled compiled;
    std::optional<Time> value;
  };
  Judged judge(const Problem &problem, const Order &order,
               std::optional<CommOrder> comm) const;
  /// Fills in what the compiled program takes and holds.
  bool tell(const Problem &problem, Synthesized &result);
  /// What is told of it at the top of its text, in lines of comment.
  std::string commentOf(const Synthesized &result) const;

  Workload::Backward backward() const {
    return asked.fusedBackward ? Workload::Backward::Fused
                               : Workload::Backward::Split;
  }
  /// What is left of the budget, or a little to end with.
  uint64_t left() const {
    return std::max(budget() / 16, budget() - std::min(budget(), actions));
  }
  uint64_t budget() const { return asked.budget.value_or(100'000'000); }

  SynthesisRequest asked;
  Session &session;
  Program program;
  std::optional<Savings> savings;        ///< Nothing where they are no choice.
  std::optional<ResourceBound> bound;    ///< Of all choices of these.
  uint64_t evaluations = 0, actions = 0; ///< So far.

private:
  bool isInScope();
  bool addsUp(const Workload &load);
  bool fits(const Workload &load);
  bool hasRoom(const Problem &problem);
};

/// Sets the layout with which a quick search does best; false after a report.
bool chooseLayout(Task &task);
/// Sets the savings of the placement that was read with which a quick search
/// does best, and what no choice of them is better than; false after a report.
bool chooseSavings(Task &task);
/// The best order for the number of microbatches that was given.
std::optional<Synthesized> findOne(Task &task);
/// The best order that goes on in one way for all numbers of microbatches.
std::optional<Synthesized> findForAll(Task &task);

} // namespace ppcc::synthesis
