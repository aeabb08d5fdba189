// Actions that follow messages, which are placed once those are.
#include "Followers.h"

using namespace ppcc;

/// What a follower shares with the messages that it follows.
struct Followers::Key {
  KindId follower;
  uint32_t stage, microbatch;
  auto operator<=>(const Key &) const = default;
};

static bool followsMessages(const KindRule &rule, const KindTable &kinds) {
  return !rule.isBefore && llvm::any_of(rule.kinds, [&](KindId kind) {
    return !kinds[kind].isCompute();
  });
}

Followers::Followers(const Program &program)
    : program(program), rows(program.size()) {
  for (KindId kind : program.kinds().ids())
    if (llvm::any_of(program.kinds()[kind].rules, [&](const KindRule &rule) {
          return followsMessages(rule, program.kinds());
        }))
      kinds.push_back(kind);
  for (uint32_t row = 0; !kinds.empty() && row != program.size(); ++row)
    if (llvm::is_contained(kinds, program[ActionId(row)].kind) &&
        !program.joined(ActionId(row)))
      rows.set(row);
}

Program Followers::taken() const {
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

Followers::Key Followers::keyOf(const Action &action, KindId follower) const {
  KindScope scope = program.kinds()[follower].scope;
  return {follower,
          scope == KindScope::Rank
              ? 0
              : action.pipe.value << 16 | action.stage.value,
          scope == KindScope::Microbatch ? action.microbatch
                                         : Action::noMicrobatch};
}

Program Followers::putBack(const Program &placed) const {
  Rows result;
  result.reserve(placed.size() + rows.count());
  for (RankId rank : placed.ranks()) {
    result.beginRank();
    std::map<Key, std::vector<ActionId>> waiting;
    for (ActionId row : program.rows(rank))
      if (rows.test(row.value))
        waiting[keyOf(program[row], program[row].kind)].push_back(row);
    auto forEachFollower = [&](ActionId row, auto visit) {
      Action action = placed[row];
      for (KindId kind : kinds)
        for (const KindRule &rule : program.kinds()[kind].rules)
          if (followsMessages(rule, program.kinds()) &&
              llvm::is_contained(rule.kinds, action.kind))
            visit(keyOf(action, kind));
    };
    std::map<Key, uint32_t> left; // Messages that it follows.
    for (ActionId row : placed.rows(rank))
      forEachFollower(row, [&](Key key) { ++left[key]; });
    ActionId end;
    for (ActionId begin = placed.begin(rank); begin != placed.end(rank);
         begin = end) {
      end = placed.groupEnd(begin, rank);
      for (ActionId row : RowRange{begin, end})
        result.append(placed[row]);
      for (ActionId row : RowRange{begin, end})
        forEachFollower(row, [&](Key key) {
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
