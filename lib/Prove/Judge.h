// What is shown of the programs of one template.
#pragma once

#include "Evidence.h"
#include "Fit.h"

#include "ppcc/Family/Layout.h"

namespace ppcc {

/// A family whose template is known, and its programs of n = 1 and 2, without
/// messages.
struct Judge {
  const ProveRequest &request;
  Singles &singles;
  const family::Family &family;
  const proof::Template &program;
  const proof::Checker &byData; ///< Of the template without messages.
  const Program &first, &second;
  const proof::Costs &costs;
  Notes notes; ///< Of what shows it, if that is asked for.

  /// Whether no rank waits for itself by data. Fails with a circle.
  proof::Finding orderByData();
  /// Whether the messages of all programs stay where those of n = 1 and 2 are,
  /// and arrive on all transports.
  proof::Finding carry();
  /// The makespan by data alone.
  std::optional<Formula> makespanByData();

  /// Ranks that wait for each other, from an n on.
  struct Circle {
    std::vector<proof::Event> events;
    int64_t from;
  };
  std::optional<Circle> circle = {}; ///< Of orderByData().

  // Of carry():
  std::optional<Formula> makespan = {}; ///< On the first transport.
  std::vector<std::string> limit = {};  ///< Of a run on it.
  bool isPlaced = true; ///< The messages, as withMessages() has it.

private:
  /// The messages of one order.
  struct Carried {
    proof::Template whole;
    bool isPlaced = true;
    proof::Finding finding; ///< Whether they arrive,
    bool stays = false;     ///< and stay where they are.
    bool blocks = false;    ///< Of no n they arrive.
    std::vector<proof::Shown> shown;
    std::optional<proof::Times> times;       ///< On the first transport,
    std::optional<proof::Makespan> makespan; ///< with this makespan.
    std::vector<std::string> limit;
    std::vector<RankPair> preconnect;
  };

  Carried carryBy(const CommPolicy &policy);
  const Carried *bestOf(ArrayRef<Carried> all) const;
  std::optional<proof::Makespan>
  makespanBy(const proof::Template &rows, const proof::Checker &checker,
             const Transport *transport, const Sample &a, const Sample &b,
             std::optional<proof::Times> &times) const;
  Formula formulaOf(const proof::Makespan &makespan) const;
};

} // namespace ppcc
