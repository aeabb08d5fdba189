#include "Declared.h"

using namespace ppcc;
using namespace ppcc::proof;

bool ppcc::proof::haveSameActions(const Template &a, const Template &b) {
  auto actionsOf = [](const Template &program, uint32_t rank) {
    std::vector<std::array<int64_t, 9>> actions;
    std::map<uint32_t, int64_t> loops; // In the order in which they begin.
    for (const Row &row : program.ranks[rank])
      if (program.head->kinds[row.kind].isCompute()) {
        int64_t loop =
            row.loop == noLoop
                ? -1
                : loops.try_emplace(row.loop, loops.size()).first->second;
        actions.push_back({row.kind.value, row.pipe.value, row.stage.value,
                           row.microbatch.c, row.microbatch.n, row.microbatch.j,
                           row.peer.value, row.joined, loop});
      }
    return actions;
  };
  bool areSame = a.pipes == b.pipes && a.last == b.last &&
                 a.ranks.size() == b.ranks.size();
  for (uint32_t rank = 0; areSame && rank != a.ranks.size(); ++rank)
    areSame = actionsOf(a, rank) == actionsOf(b, rank);
  return areSame;
}

Declared::Declared(const Template &program, bool hasMessages)
    : program(program), hasMessages(hasMessages) {
  const KindTable &kinds = program.head->kinds;
  if (!kinds.hasDeclared())
    return;
  needs.resize(kinds.size());
  for (KindId kind : kinds.ids())
    for (const KindRule &rule : kinds[kind].rules)
      for (KindId named : rule.kinds)
        (rule.isBefore ? needs[named.value] : needs[kind.value])
            .push_back(rule.isBefore ? kind : named);
  for (uint32_t rank = 0; rank != program.ranks.size(); ++rank) {
    const auto &rows = program.ranks[rank];
    ordinals.push_back(ordinalsOf(rows, [&](uint32_t row) {
      return std::optional(rows[row].kind.value);
    }));
    for (uint32_t i = 0; i != rows.size(); ++i) {
      const Row &row = rows[i];
      bool hasIterations = row.loop != noLoop;
      uint32_t kind = row.kind.value;
      sequences[{rank, kind, row.pipe.value, row.stage.value}].add(
          {rank, i, row.microbatch, hasIterations});
      sequences[{rank, kind, any, any}].add(
          {rank, i, ordinals[rank][i], hasIterations});
    }
  }
  for (uint32_t rank = 0; rank != program.ranks.size(); ++rank)
    addInFlightWaits(rank);
}

/// A rank that has issued as many actions of a kind as may be on their way goes
/// on with its own once the first of them has ended, and so those before it.
void Declared::addInFlightWaits(uint32_t rank) {
  const auto &rows = program.ranks[rank];
  std::vector<uint32_t> bounded; // Kinds of which so many may be on their way.
  for (KindId kind : program.head->kinds.ids())
    if (program.head->kinds[kind].inFlight != 0)
      bounded.push_back(kind.value);
  forEachPredecessor(
      program, rows,
      [&](uint32_t row) { return std::optional(rows[row].kind.value); },
      [&](uint32_t row) {
        return infoOf(rows[row]).occupiesRank() ? ArrayRef(bounded)
                                                : ArrayRef<uint32_t>();
      },
      [&](uint32_t row, uint32_t last, Affine iteration, const Domain &domain) {
        const KindInfo &info = infoOf(rows[last]);
        inFlightWaits.insert(
            {{rank, row},
             {sequence({rank, rows[last].kind.value, any, any}),
              substitute(ordinals[rank][last], iteration) - info.inFlight,
              domain}});
      });
}

Affine Declared::numberOf(uint32_t rank, uint32_t row) const {
  const Row &at = program.ranks[rank][row];
  return infoOf(at).collective == Collective::All ? ordinals[rank][row]
                                                  : at.microbatch;
}

std::vector<const Sequence *> Declared::peersInCollective(uint32_t rank,
                                                          uint32_t row) const {
  const Row &at = program.ranks[rank][row];
  const KindInfo &info = infoOf(at);
  const auto &pipes = program.head->pipes;
  std::map<uint32_t, const Sequence *> peerRows; // A rank joins once.
  auto add = [&](uint32_t pipe, int64_t stage) {
    if (stage < 0 || stage >= pipes[pipe].numStages())
      return;
    uint32_t host = pipes[pipe].rankOfStage[stage].value;
    const Sequence *rows =
        sequence({host, at.kind.value, pipe, uint32_t(stage)});
    auto [peerRow, isNew] = peerRows.try_emplace(host, rows);
    if (isNew || rows == peerRow->second || !rows)
      return;
    if (info.scope == KindScope::Microbatch)
      peerRows[any] = nullptr; // Which is the first is not clear.
    else if (!peerRow->second ||
             rows->all().front().row < peerRow->second->all().front().row)
      peerRow->second = rows;
  };
  if (info.collective == Collective::All)
    for (uint32_t other = 0; other != program.ranks.size(); ++other)
      peerRows[other] = sequence({other, at.kind.value, any, any});
  if (info.collective == Collective::Replicas)
    for (uint32_t pipe = 0; pipe != pipes.size(); ++pipe)
      add(pipe, at.stage.value);
  if (info.collective == Collective::Stages)
    for (int64_t stage : info.stages)
      add(at.pipe.value,
          stage < 0 ? stage + pipes[at.pipe.value].numStages() : stage);
  if (auto own = peerRows.find(rank); own != peerRows.end()) {
    bool joins = info.scope == KindScope::Microbatch ||
                 info.collective == Collective::All ||
                 (own->second && own->second->all().front().row == row);
    if (!joins)
      return {};
    peerRows.erase(own);
  }
  auto rows = llvm::make_second_range(peerRows);
  return {rows.begin(), rows.end()};
}

Finding Declared::checkRow(uint32_t rank, uint32_t row) const {
  const Row &at = program.ranks[rank][row];
  const KindInfo &info = infoOf(at);
  Domain whole = fullDomain(program, at);
  auto bad = [&](const char *why, Finding::Kind kind = Finding::Kind::Unknown) {
    return Finding{
        kind, fmt::format("`{}{}` {}", at.stage.value, info.mnemonic, why)};
  };
  // Whether rows that `forEach` finds are there on all of the domain.
  auto isThere = [&](auto forEach) {
    std::vector<Domain> pieces;
    bool known = forEach(
        [&](const Event &, const Domain &domain) { pieces.push_back(domain); });
    return known && covers(pieces, whole);
  };
  if (info.isMove())
    return bad("moves between ranks");
  if (whole.hasIterations && at.microbatch.j == 0)
    return bad("is done in each iteration of a loop");
  bool isOnce = true;
  bool known = forEachInSameScope(
      rank, at, at.kind,
      [&](const Event &other, const Domain &) { isOnce &= other.row == row; });
  if (!known || !isOnce)
    return bad("may be there too often");
  for (const KindRule &rule : info.rules) {
    bool areMessages = llvm::all_of(rule.kinds, [&](KindId kind) {
      return !program.head->kinds[kind].isCompute();
    });
    if (!(areMessages && !hasMessages) && !isThere([&](auto visit) {
          return llvm::all_of(rule.kinds, [&](KindId kind) {
            return forEachInSameScope(rank, at, kind, visit);
          });
        }))
      return bad(rule.isBefore ? "may precede nothing" : "may follow nothing");
  }
  for (const Sequence *peerRow : peersInCollective(rank, row))
    if (!peerRow || !isThere([&](auto visit) {
          return find(peerRow, numberOf(rank, row), whole, visit);
        }))
      return bad("may lack a rank that joins it");
  return {};
}

/// Whether each that has one has it, if any has.
Finding Declared::checkRequired(KindId kind) const {
  const KindInfo &info = program.head->kinds[kind];
  auto has = [&](uint32_t rank, uint32_t pipe, uint32_t stage) {
    const Sequence *found = sequence({rank, kind.value, pipe, stage});
    if (!found || info.scope != KindScope::Microbatch)
      return found != nullptr;
    return bool(
        Sequence(*found).checkExactCover(program.pipes[pipe], program.last));
  };
  for (uint32_t p = 0; p != program.head->pipes.size(); ++p)
    for (StageId stage : program.head->pipes[p].stages()) {
      uint32_t rank = program.head->rankOfStage(PipeId(p), stage).value;
      if (info.scope == KindScope::Rank ? !has(rank, any, any)
                                        : !has(rank, p, stage.value))
        return {Finding::Kind::Unknown,
                fmt::format("stage {} may lack a `{}`", stage.value,
                            info.mnemonic)};
    }
  return {};
}

Finding Declared::checkComplete() const {
  std::vector<bool> isThere(needs.size());
  for (uint32_t rank = 0; !needs.empty() && rank != program.ranks.size();
       ++rank)
    for (uint32_t row = 0; row != program.ranks[rank].size(); ++row) {
      const Row &at = program.ranks[rank][row];
      isThere[at.kind.value] = true;
      if (infoOf(at).isDeclared())
        if (Finding finding = checkRow(rank, row); !finding)
          return finding;
    }
  for (KindId kind : program.head->kinds.ids())
    if (!needs.empty() && isThere[kind.value] &&
        program.head->kinds[kind].isRequired)
      if (Finding finding = checkRequired(kind); !finding)
        return finding;
  return {};
}
