// What is shown of the programs of one template.
#pragma once

#include "Fit.h"
#include "Single.h"

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
  proof::Evidence *evidence; ///< Notes what shows it, unless that is null.

  /// Whether no rank waits for itself by data. Fails with a circle.
  proof::Finding orderByData();
  /// Whether the messages of the programs arrive on all transports; where it
  /// `looksLater`, those of a later program, too.
  proof::Finding carry(bool looksLater);
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
  std::optional<Figures> figures = {};
  bool isPlaced = true; ///< The messages, as withMessages() has it.

private:
  bool goesOn(const proof::Template &whole);
  std::optional<Formula> makespanBy(const proof::Template &rows,
                                    const proof::Checker &checker,
                                    const Transport *transport, const Sample &a,
                                    const Sample &b);
};

} // namespace ppcc
