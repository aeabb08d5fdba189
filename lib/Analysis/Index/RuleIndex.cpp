// What declared actions wait for, what waits for them, and with whom they meet.
#include "ppcc/Analysis/Index/ProgramIndex.h"

using namespace ppcc;

namespace {

uint32_t stageOf(const Action &action) {
  return action.pipe.value << 16 | action.stage.value;
}

/// The rows of one rank that rules speak of, by the work that they do.
class RankRows {
public:
  explicit RankRows(const Program &program) : program(program) {
    for (BitVector &kinds : isLookedUp)
      kinds.resize(program.kinds().size());
    for (auto [kind, info] : llvm::enumerate(program.kinds().rows())) {
      if (info.isDeclared())
        isLookedUp[size_t(KindScope::Microbatch)].set(kind);
      for (const KindRule &rule : info.rules)
        for (KindId named : rule.kinds)
          for (KindScope scope :
               {KindScope::Microbatch,
                std::max(info.scope, program.kinds()[named].scope)})
            isLookedUp[size_t(scope)].set(named.value);
    }
  }

  void enter(RankId rank) {
    rowsOf.clear();
    firsts.clear();
    for (ActionId row : program.rows(rank)) {
      Action action = program[row];
      if (!isLookedUp[size_t(KindScope::Microbatch)].test(action.kind.value))
        continue;
      auto &same = rowsOf[keyOf(action.kind, action, KindScope::Microbatch)];
      // A message along a skip edge is of the same stage and microbatch as that
      // to the neighbour; both count.
      if (!same.empty() && program.kindOf(action).isCompute())
        continue;
      same.push_back(row);
      for (KindScope scope : {KindScope::Stage, KindScope::Rank})
        if (isLookedUp[size_t(scope)].test(action.kind.value))
          rowsOf[keyOf(action.kind, action, scope)].push_back(row);
      if (program.kindOf(action).isDeclared())
        firsts.push_back(row);
    }
  }

  /// The first rows of all declared work on the rank.
  ArrayRef<ActionId> declared() const { return firsts; }

  /// The rows of a kind that share with `action` what both have of stage and
  /// microbatch.
  ArrayRef<ActionId> of(KindId kind, const Action &action) const {
    auto found = rowsOf.find(keyOf(
        kind, action,
        std::max(program.kindOf(action).scope, program.kinds()[kind].scope)));
    return found == rowsOf.end() ? ArrayRef<ActionId>() : found->second;
  }

private:
  /// Kind, scope and stage, and the microbatch, as far as that scope tells them
  /// apart.
  using Key = std::pair<uint64_t, uint32_t>;
  static Key keyOf(KindId kind, const Action &action, KindScope scope) {
    return {(uint64_t(kind.value) << 2 | uint64_t(scope)) << 32 |
                (scope == KindScope::Rank ? 0 : stageOf(action)),
            scope == KindScope::Microbatch ? action.microbatch : 0};
  }

  const Program &program;
  BitVector isLookedUp[3]; ///< By scope and kind: rows as tell them apart.
  DenseMap<Key, SmallVector<ActionId, 1>> rowsOf;
  std::vector<ActionId> firsts;
};

} // namespace

RuleIndex::RuleIndex(const Program &program) {
  if (!program.kinds().hasDeclared())
    return;
  addNeeds(program);
  addCollectives(program);
}

void RuleIndex::addNeeds(const Program &program) {
  Edges edges; // A row, what it needs.
  RankRows rows(program);
  for (RankId rank : program.ranks()) {
    rows.enter(rank);
    for (ActionId row : rows.declared()) {
      Action action = program[row];
      const KindInfo &info = program.kindOf(action);
      for (auto [number, rule] : llvm::enumerate(info.rules)) {
        bool found = false;
        for (KindId kind : rule.kinds)
          for (ActionId other : rows.of(kind, action)) {
            found = true;
            edges.push_back(rule.isBefore ? std::pair(other, row)
                                          : std::pair(row, other));
          }
        // The peer has only the peers of what the other one follows.
        if (!found && !program.isPeerSide(action, rank))
          unmet.push_back({row, uint32_t(number)});
      }
    }
  }
  addCaps(program, edges);
  if (edges.empty())
    return;
  starts.resize(program.size() + 1);
  for (auto [row, need] : edges)
    ++starts[row.value + 1];
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  needs.resize(edges.size());
  std::vector<uint32_t> next(starts.begin(), starts.end() - 1);
  for (auto [row, need] : edges)
    needs[next[row.value]++] = need;
}

/// A rank that has issued as many actions of a kind as may be on their way goes
/// on once the first of them has ended.
void RuleIndex::addCaps(const Program &program, Edges &edges) {
  if (llvm::none_of(program.kinds().declaredRows(),
                    [](const KindInfo &info) { return info.inFlight != 0; }))
    return;
  for (RankId rank : program.ranks()) {
    std::vector<std::vector<ActionId>> issued(program.kinds().size());
    SmallVector<ActionId> awaited;
    for (ActionId row : program.rows(rank)) {
      const KindInfo &info = program.kindOf(row);
      if (info.occupiesRank()) {
        for (ActionId other : awaited)
          edges.emplace_back(row, other);
        awaited.clear();
      }
      if (info.inFlight == 0)
        continue;
      std::vector<ActionId> &rows = issued[program[row].kind.value];
      rows.push_back(row);
      if (rows.size() > info.inFlight)
        awaited.push_back(rows[rows.size() - 1 - info.inFlight]);
    }
  }
}

void RuleIndex::addCollectives(const Program &program) {
  // Kind, then what tells the collectives of a kind apart.
  using Key = std::array<uint32_t, 3>;
  std::map<Key, std::vector<ActionId>> collectives;
  for (RankId rank : program.ranks()) {
    std::vector<uint32_t> done(program.kinds().size());
    for (ActionId row : program.rows(rank)) {
      const KindInfo &info = program.kindOf(row);
      if (!info.isCollective())
        continue;
      Action action = program[row];
      Key key{action.kind.value, 0, 0};
      if (info.collective == Collective::All)
        key[1] = done[action.kind.value]++;
      else if (info.collective == Collective::Replicas)
        key[1] = action.stage.value;
      else if (info.isMove())
        key = {action.kind.value, stageOf(action), action.microbatch};
      else
        key = {action.kind.value, action.pipe.value, action.microbatch};
      std::vector<ActionId> &rows = collectives[key];
      // A rank joins once, whatever number of the stages it hosts.
      if (rows.empty() || rows.back() < program.begin(rank))
        rows.push_back(row);
    }
  }
  for (const auto &[key, rows] : collectives) {
    for (ActionId row : rows) {
      collectiveOfRow[row.value] = numCollectives();
      memberRows.push_back(row);
    }
    collectiveStarts.push_back(memberRows.size());
  }
}
