// Actions that follow messages, which are placed once those are.
#include "CommPlan.h"

using namespace ppcc;

namespace {

bool followsMessages(const KindRule &rule, const KindTable &kinds) {
  return !rule.isBefore && llvm::any_of(rule.kinds, [&](KindId kind) {
    return !kinds[kind].isCompute();
  });
}

/// What a follower shares with the messages that it follows.
struct Key {
  KindId follower;
  uint32_t stage, microbatch;
  auto operator<=>(const Key &) const = default;
};

class MessageFollowers {
public:
  explicit MessageFollowers(const Program &program)
      : program(program), rows(program.size()) {
    for (KindId kind : program.kinds().ids())
      if (llvm::any_of(program.kinds()[kind].rules, [&](const KindRule &rule) {
            return followsMessages(rule, program.kinds());
          }))
        kinds.push_back(kind);
    if (!kinds.empty())
      for (RankId rank : program.ranks())
        for (ActionId row : program.rows(rank))
          if (llvm::is_contained(kinds, program.kind(row)) &&
              !program.joined(row) && !program.isPeerSide(program[row], rank))
            rows.set(row.value);
  }

  bool empty() const { return rows.none(); }

  /// The program without them.
  Program taken() const {
    Rows result;
    result.reserve(program.size());
    for (RankId rank : program.ranks()) {
      result.beginRank();
      for (ActionId row : program.rows(rank))
        if (!rows.test(row.value))
          result.append(program[row]);
    }
    return program.withRows(std::move(result));
  }

  /// `placed`, which has the messages, with them.
  Program putBack(const Program &placed) const {
    Rows result;
    result.reserve(placed.size() + rows.count());
    for (RankId rank : placed.ranks()) {
      result.beginRank();
      std::map<Key, std::vector<ActionId>> waiting;
      for (ActionId row : program.rows(rank))
        if (rows.test(row.value))
          waiting[keyOf(program[row], program[row].kind)].push_back(row);
      std::map<Key, uint32_t> left; // Messages that it follows.
      for (ActionId row : placed.rows(rank))
        forEachFollower(placed[row], [&](Key key) { ++left[key]; });
      for (RowRange item : placed.items(rank)) {
        for (ActionId row : item)
          result.append(placed[row]);
        for (ActionId row : item)
          forEachFollower(placed[row], [&](Key key) {
            if (--left[key] != 0)
              return;
            for (ActionId follower : std::exchange(waiting[key], {}))
              result.append(program[follower]);
          });
      }
      for (const auto &[key, followers] : waiting)
        for (ActionId follower : followers)
          result.append(program[follower]);
    }
    return placed.withRows(std::move(result));
  }

private:
  Key keyOf(const Action &action, KindId follower) const {
    KindScope scope = program.kinds()[follower].scope;
    return {follower,
            scope == KindScope::Rank
                ? 0
                : action.pipe.value << 16 | action.stage.value,
            scope == KindScope::Microbatch ? action.microbatch
                                           : Action::noMicrobatch};
  }

  /// Calls `visit(key)` for each rule by which something follows the action.
  template <class Visit>
  void forEachFollower(const Action &action, Visit visit) const {
    for (KindId kind : kinds)
      for (const KindRule &rule : program.kinds()[kind].rules)
        if (followsMessages(rule, program.kinds()) &&
            llvm::is_contained(rule.kinds, action.kind))
          visit(keyOf(action, kind));
  }

  const Program &program;
  std::vector<KindId> kinds; ///< Those that follow messages.
  BitVector rows;
};

} // namespace

PassResult ppcc::placeAroundFollowers(
    Program &program,
    function_ref<std::optional<Program>(const Program &)> place) {
  MessageFollowers followers(program);
  std::optional<Program> result;
  if (followers.empty())
    result = place(program);
  else if (Program rest = followers.taken(); (result = place(rest)))
    result = followers.putBack(*result);
  if (!result)
    return PassResult::Failed;
  program = std::move(*result);
  return PassResult::Changed;
}
