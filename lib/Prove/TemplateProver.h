// What is shown of the programs of one template.
#pragma once

#include "Evidence.h"
#include "Fit.h"

namespace ppcc {

/// A family whose template is known, and its programs of n = 1 and 2, without
/// messages.
struct TemplateProver {
  const ProveRequest &request;
  InstanceCompiler &compiler;
  const family::Family &family;
  const proof::Template &program;
  const proof::Checker &dataChecker; ///< Of the template without messages.
  const Program &first, &second;
  const proof::Costs &costs;
  ProofArtifacts artifacts; ///< Of what shows it, if that is asked for.

  /// Whether data dependences alone exclude deadlock. Fails with a cycle.
  proof::Finding checkDataDependences();
  /// Whether the messages of all programs stay where those of n = 1 and 2 are,
  /// and arrive on all transports.
  proof::Finding checkMessages();
  /// The makespan by data alone.
  std::optional<Formula> dataMakespan();

  /// Events that wait for each other in every program of n >= `from`.
  struct Cycle {
    std::vector<proof::Event> events;
    int64_t from;
  };
  std::optional<Cycle> cycle = {}; ///< Of checkDataDependences().

  // Of checkMessages():
  std::optional<Formula> makespan = {};     ///< On the first transport.
  std::vector<std::string> bottleneck = {}; ///< Of a run on it.
  bool hasFixedSites = true; ///< The messages, as insertMessages() has it.

private:
  /// The messages of one order.
  struct MessagePlan {
    proof::Template withMessages;
    bool hasFixedSites = true;
    proof::Finding finding;         ///< Whether they arrive,
    bool isPlacementProven = false; ///< and stay where they are.
    bool alwaysDeadlocks = false;   ///< They arrive for no n.
    std::vector<proof::OrderWitness> orderWitnesses;
    std::optional<proof::Times> times;       ///< On the first transport,
    std::optional<proof::Makespan> makespan; ///< with this makespan.
    std::vector<std::string> bottleneck;
    std::vector<RankPair> preconnect;
  };

  MessagePlan planMessages(const CommPolicy &policy);
  const MessagePlan *bestOf(ArrayRef<MessagePlan> all) const;
  std::optional<proof::Makespan>
  makespanBy(const proof::Template &rows, const proof::Checker &checker,
             const Transport *transport, const Sample &a, const Sample &b,
             std::optional<proof::Times> &times) const;
  Formula formulaOf(const proof::Makespan &makespan) const;
};

} // namespace ppcc
