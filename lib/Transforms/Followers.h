// Actions that follow messages, which are placed once those are.
#pragma once

#include "ppcc/IR/Program.h"

namespace ppcc {

/// The rows of a program that must stand behind a message of their stage, by a
/// rule of their kind. O(actions) to find.
class Followers {
public:
  explicit Followers(const Program &program);

  bool empty() const { return rows.none(); }
  /// The program without them. O(actions).
  Program taken() const;
  /// `placed`, which has the messages, with each of them behind the last
  /// message that it follows; at the end of its rank where there is none, for
  /// Verify to report. O(actions).
  Program putBack(const Program &placed) const;

private:
  struct Key;
  Key keyOf(const Action &action, KindId follower) const;

  const Program &program;
  std::vector<KindId> kinds; ///< Those that follow messages.
  BitVector rows;
};

} // namespace ppcc
