// Whether messages stay where they are, for all n.
#pragma once

#include "ppcc/Proof/Checker.h"
#include "ppcc/Transforms/Passes.h"

namespace ppcc {

/// A template with the messages of one order, and how that came to place them
/// in its programs of n = 1 and 2.
struct MessagePlacement {
  const proof::Template &program;         ///< With messages.
  const proof::Template &withoutMessages; ///< Without.
  const proof::Costs &costs;
  CommOrder order;
  const PlanTimes &first, &second;
};

/// Whether the order places the messages of all programs as in the template,
/// which is complete, and whose messages match. Nothing else is believed of
/// it.
///
/// An order by time, or in sweeps, is a run: what it notes of each row follows
/// from what it noted of others. Numbers that grow with n and turns, of which
/// all that is shown, are those that it would note for any n; and rows that
/// ascend by them stand where it would place them.
bool provePlacement(const MessagePlacement &placement);

/// The same of the order `late`, where no action follows messages.
bool isLatePlacementStable(const proof::Template &program);

} // namespace ppcc
