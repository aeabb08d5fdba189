// Checks a certificate for all P and M of a region: that each slot is filled
// once, that no rank deadlocks, and that the makespan is as claimed.
//
// Algorithm: ObligationGenerator lists the proof obligations, implications
// between affine forms. faultOf checks each by its multipliers (Farkas' lemma,
// 1902; Schrijver 1986): scale * goal = rest + sum of multiplier * premise.
// Invariant: rest and multipliers are non-negative, so this identity of integer
// coefficients shows the goal wherever all premises are non-negative. With
// scale 0 and rest > 0 it shows that this is nowhere. Start times grow by a
// duration of at least 1 along each wait, which excludes cycles.
// Cost: O(rows^2) obligations besides those of critical predecessors; each
// takes O(premises) additions of forms.
// Example: M - 1 >= 0 and P - 2 >= 0 imply M + P - 3 >= 0:
//   multipliers 1, 1, rest 0, scale 1.
//   F j at r + j, of duration 1, ends before F j + 1 on its rank starts: the
//   goal (r + j + 1) - (r + j) - 1 is 0; multipliers and rest 0, scale 1.
#include "ppcc/EveryP/Certificate.h"

using namespace ppcc;
using namespace ppcc::every;

namespace {

class ObligationGenerator {
public:
  ObligationGenerator(const Statements &statements, const Claim &claim)
      : statements(statements), units(statements.units), claim(claim) {
    for (const Unit &unit : units)
      if (unit.duration < 1)
        throw std::invalid_argument("an action takes no time");
  }

  std::vector<Obligation> run() {
    for (uint32_t c = 0; c != statements.classes.size(); ++c) {
      for (const Segment &segment : statements.classes[c].segments)
        nonNegative(ranksOf(c), segment.count);
      complete(c);
      programOrder(c);
    }
    for (const Unit &target : units)
      for (const Row &row : target.rows)
        forEachRead(row, [&](uint8_t slot, int distance) {
          dataDependences(target, row, slot, distance);
        });
    if (claim.makespan)
      upperBound();
    if (claim.witness)
      lowerBound(*claim.witness);
    if (claim.last)
      endsWith(*claim.last);
    for (const auto &[unit, reasons] : claim.criticalPredecessors)
      criticalPredecessors(units.at(unit), reasons, 0,
                           iterationSpaceOf(units.at(unit)));
    return std::move(result);
  }

private:
  uint32_t numberOf(const Unit &unit) const { return &unit - units.data(); }
  const Chunk &chunkOf(const Unit &unit, const Row &row) const {
    return statements.classOf(unit).chunks[row.chunk];
  }
  const KindInfo &infoOf(const Row &row) const {
    return statements.kinds[row.kind];
  }

  void nonNegative(Forms premises, Form goal) {
    result.push_back({std::move(premises), std::move(goal), {}});
  }
  void equal(const Forms &premises, const Form &a, const Form &b) {
    nonNegative(premises, a - b);
    nonNegative(premises, b - a);
  }
  /// Where the ranks of a class are.
  Forms ranksOf(uint32_t rankClass) const {
    Forms forms = statements.region;
    const Forms &where = statements.classes[rankClass].where;
    forms.insert(forms.end(), where.begin(), where.end());
    return forms;
  }
  /// Where the iterations of a unit are, too.
  Forms iterationSpaceOf(const Unit &unit) const {
    Forms forms = ranksOf(unit.rankClass);
    forms.push_back(Form::of(Iteration));
    forms.push_back(statements.segmentOf(unit).count - Form::of(Iteration) - 1);
    return forms;
  }
  static Form renamed(const Form &form) {
    return form.with(Rank, Form::of(OtherRank))
        .with(Iteration, Form::of(OtherIteration));
  }
  Obligation::Time timeOf(const Unit &unit, int64_t factor,
                          const Form &iteration) const {
    return {numberOf(unit), factor, Form::of(Rank), iteration};
  }

  // ---- Each slot is filled once ----

  /// The first microbatch of actions that take turns, and after the last one.
  static std::pair<Form, Form> microbatches(ArrayRef<const Row *> rows,
                                            const Form &count) {
    int64_t step = rows[0]->microbatch.at[Iteration];
    Form begin = rows[0]->microbatch.with(Iteration, 0);
    for (auto [i, row] : llvm::enumerate(rows))
      if (row->microbatch != rows[0]->microbatch + i)
        throw std::invalid_argument("microbatches do not follow each other");
    if (step == -1 && rows.size() == 1)
      return {begin - count + 1, begin + 1};
    if (step != int64_t(rows.size()) && !(step == 0 && count == Form(1)))
      throw std::invalid_argument("microbatches do not follow each other");
    return {begin, begin + int64_t(rows.size()) * count};
  }

  void complete(uint32_t c) {
    const RankClass &ranks = statements.classes[c];
    uint8_t slots = statements.hasBackward
                        ? slot::Output | slot::InputGrad | slot::WeightGrad
                        : slot::Output;
    std::map<std::tuple<uint32_t, uint32_t, uint8_t>, std::vector<RowRef>>
        producers;
    for (uint32_t chunk = 0; chunk != ranks.chunks.size(); ++chunk)
      for (uint8_t slot : slotsIn(slots))
        producers[{c, chunk, slot}];
    for (const Unit &unit : units)
      if (unit.rankClass == c)
        for (uint32_t r = 0; r != unit.rows.size(); ++r)
          for (uint8_t slot : slotsIn(infoOf(unit.rows[r]).defines))
            producers[{c, unit.rows[r].chunk, slot}].push_back(
                {numberOf(unit), r});
    for (auto &[key, found] : producers) {
      auto claimed = claim.producers.find(key);
      std::vector<RowRef> sorted;
      if (claimed != claim.producers.end())
        sorted = claimed->second;
      std::sort(sorted.begin(), sorted.end());
      if (sorted != found)
        throw std::invalid_argument("actions are left out");
      const every::Pipe &pipe =
          statements.pipes[ranks.chunks[std::get<1>(key)].pipe];
      Form reached = pipe.first;
      for (size_t i = 0, next; i != found.size(); i = next) {
        const std::vector<RowRef> &order = claimed->second;
        uint32_t segment = units[order[i].unit].segment;
        std::vector<const Row *> rows;
        auto rowAt = [&](RowRef at) { return &units[at.unit].rows[at.row]; };
        // An iteration takes as many microbatches as the actions of it.
        int64_t step =
            std::max<int64_t>(rowAt(order[i])->microbatch.at[Iteration], 1);
        for (next = i; next != order.size() && int64_t(next - i) != step &&
                       units[order[next].unit].segment == segment;
             ++next)
          rows.push_back(rowAt(order[next]));
        auto [begin, end] = microbatches(rows, ranks.segments[segment].count);
        equal(ranksOf(c), begin, reached);
        reached = end;
      }
      equal(ranksOf(c), pipe.first + pipe.count, reached);
    }
  }

  // ---- Times grow along all that waits ----

  /// That `source` ends before `target` starts.
  void before(Forms premises, const Unit &source, Obligation::Time ofSource,
              Obligation::Time ofTarget) {
    result.push_back({std::move(premises),
                      -source.duration,
                      {std::move(ofTarget), std::move(ofSource)}});
  }

  void programOrder(uint32_t c) {
    const auto &segments = statements.classes[c].segments;
    for (uint32_t s = 0; s != segments.size(); ++s) {
      const Unit &first = units[segments[s].begin],
                 &last = units[segments[s].end - 1];
      Forms iterations = iterationSpaceOf(first);
      for (const Unit *unit = &first; unit != &last; ++unit)
        before(iterations, *unit, timeOf(*unit, -1, Form::of(Iteration)),
               timeOf(unit[1], 1, Form::of(Iteration)));
      Forms inner = iterations;
      inner.push_back(segments[s].count - Form::of(Iteration) - 2);
      before(inner, last, timeOf(last, -1, Form::of(Iteration)),
             timeOf(first, 1, Form::of(Iteration) + 1));
      Forms between = ranksOf(c);
      between.push_back(segments[s].count - 1);
      for (uint32_t t = s + 1; t != segments.size(); ++t) {
        Forms both = between;
        both.push_back(segments[t].count - 1);
        before(both, last, timeOf(last, -1, segments[s].count - 1),
               timeOf(units[segments[t].begin], 1, 0));
        between.push_back(-1 * segments[t].count);
      }
    }
  }

  /// Calls `visit` with the slots that a row reads, and how far from its own
  /// the stage is that fills them.
  template <class Visit> void forEachRead(const Row &row, Visit visit) const {
    const KindInfo &info = infoOf(row);
    for (uint8_t slot : slotsIn(info.needs))
      visit(slot, 0);
    if (info.defines & slot::Output)
      visit(slot::Output, -1);
    if (info.defines & slot::InputGrad)
      visit(slot::InputGrad, 1);
  }

  /// That it is after all that fills the slot of the stage `distance` away.
  void dataDependences(const Unit &target, const Row &row, uint8_t slot,
                       int distance) {
    const Chunk &own = chunkOf(target, row);
    auto add = [&](Forms &forms, const Forms &others, const Form &zero) {
      for (size_t i = statements.region.size(); i != others.size(); ++i)
        forms.push_back(renamed(others[i]));
      forms.push_back(zero.tightened());
      forms.push_back((-1 * zero).tightened());
    };
    for (const Unit &source : units)
      for (const Row &other : source.rows) {
        const Chunk &chunk = chunkOf(source, other);
        if (chunk.pipe != own.pipe || !(infoOf(other).defines & slot))
          continue;
        Form stage = own.stage + distance - renamed(chunk.stage);
        ChunkPair neighbours{target.rankClass, row.chunk, source.rankClass,
                             other.chunk, distance};
        if (claim.infeasiblePairs.count(neighbours)) {
          if (!shownInfeasible.insert(neighbours).second)
            continue;
          Forms ranks = ranksOf(target.rankClass);
          add(ranks, ranksOf(source.rankClass), stage);
          nonNegative(std::move(ranks), -1);
          continue;
        }
        Forms both = iterationSpaceOf(target);
        add(both, iterationSpaceOf(source), stage);
        Form number = row.microbatch - renamed(other.microbatch);
        both.push_back(number.tightened());
        both.push_back((-1 * number).tightened());
        before(std::move(both), source,
               {numberOf(source), -1, Form::of(OtherRank),
                Form::of(OtherIteration)},
               timeOf(target, 1, Form::of(Iteration)));
      }
  }

  // ---- The makespan ----

  void upperBound() {
    for (const Unit &unit : units) {
      Forms iterations = iterationSpaceOf(unit);
      result.push_back({iterations, 0, {timeOf(unit, 1, Form::of(Iteration))}});
      result.push_back({std::move(iterations),
                        *claim.makespan - unit.duration,
                        {timeOf(unit, -1, Form::of(Iteration))}});
    }
  }

  /// The shortest unit that fills a slot.
  int64_t shortest(uint32_t pipe, uint8_t slot) const {
    std::optional<int64_t> minDuration;
    for (const Unit &unit : units)
      for (const Row &row : unit.rows)
        if (chunkOf(unit, row).pipe == pipe && (infoOf(row).defines & slot))
          minDuration =
              std::min(minDuration.value_or(INT64_MAX), unit.duration);
    return minDuration.value_or(0);
  }

  /// What at least follows the last gradient of an input: that of the weights,
  /// where no unit has both.
  int64_t afterGradient(uint32_t pipe) const {
    for (const Unit &unit : units) {
      uint8_t filled = 0;
      for (const Row &row : unit.rows)
        if (chunkOf(unit, row).pipe == pipe)
          filled |= infoOf(row).defines;
      if ((filled & slot::InputGrad) && (filled & slot::WeightGrad))
        return 0;
    }
    return shortest(pipe, slot::WeightGrad);
  }

  /// That the run takes as long as the claim says: some actions of a rank, with
  /// the way of their first microbatch to it and of the last one from it.
  void lowerBound(const Witness &witness) {
    const RankClass &ranks = statements.classes.at(witness.rankClass);
    Forms region = statements.region;
    auto onRank = [&](const Form &form) {
      return form.with(Rank, witness.rank);
    };
    const Unit &first = units.at(witness.from.unit),
               &last = units.at(witness.to.unit);
    for (const Form &form : ranks.where)
      nonNegative(region, onRank(form));
    for (const Unit *unit : {&first, &last})
      nonNegative(region, onRank(statements.segmentOf(*unit).count) - 1);
    const Row &from = first.rows.at(witness.from.row),
              &to = last.rows.at(witness.to.row);
    if (first.rankClass != witness.rankClass ||
        last.rankClass != witness.rankClass ||
        witness.from.unit != statements.segmentOf(first).begin ||
        witness.to.unit + 1 != statements.segmentOf(last).end ||
        witness.from.unit > witness.to.unit)
      throw std::invalid_argument("the counterexample is not valid");
    Form length;
    for (const Unit &unit : llvm::make_range(&first, &last + 1))
      length.add(onRank(statements.segmentOf(unit).count), unit.duration);
    auto latencyPath = [&](const Row &row, bool isTail) {
      const Chunk &chunk = ranks.chunks[row.chunk];
      Form stages = statements.pipes[chunk.pipe].stages,
           stage = onRank(chunk.stage), above = stages - stage - 1;
      int64_t up = shortest(chunk.pipe, slot::Output),
              down = shortest(chunk.pipe, slot::InputGrad),
              last = afterGradient(chunk.pipe);
      if (infoOf(row).defines & slot::Output)
        return isTail ? up * above + down * stages + last : up * stage;
      if (infoOf(row).defines & slot::InputGrad)
        return isTail ? down * stage + last : up * stages + down * above;
      return Form();
    };
    nonNegative(region, length + latencyPath(from, false) +
                            latencyPath(to, true) - *claim.makespan);
  }

  // ---- That no run is shorter ----

  /// That there is an action, where all of `where` is non-negative.
  void exists(const Forms &where, const EventRef &event) {
    Forms iterations = iterationSpaceOf(units.at(event.unit));
    for (size_t i = statements.region.size(); i != iterations.size(); ++i)
      nonNegative(where, iterations[i].on(event.rank, event.iteration));
    if (!claim.criticalPredecessors.count(event.unit))
      throw std::invalid_argument("an action has no reason");
  }

  void endsWith(const EventRef &last) {
    exists(statements.region, last);
    result.push_back({statements.region,
                      units[last.unit].duration - claim.makespan.value(),
                      {{last.unit, 1, last.rank, last.iteration}}});
  }

  void criticalPredecessors(const Unit &target,
                            const std::vector<CriticalPredecessor> &reasons,
                            size_t at, Forms where) {
    const CriticalPredecessor &reason = reasons.at(at);
    const EventRef &event = reason.source;
    Obligation::Time own = timeOf(target, -1, Form::of(Iteration));
    switch (reason.kind) {
    case CriticalPredecessor::Kind::Infeasible:
      return nonNegative(std::move(where), -1);
    case CriticalPredecessor::Kind::AtTimeZero:
      result.push_back({std::move(where), 0, {own}});
      return;
    case CriticalPredecessor::Kind::Split: {
      if (reason.yes <= at || reason.no <= at)
        throw std::invalid_argument("a derivation uses itself");
      Forms other = where;
      other.push_back(Form(-1) - reason.test);
      where.push_back(reason.test);
      criticalPredecessors(target, reasons, reason.no, std::move(other));
      return criticalPredecessors(target, reasons, reason.yes,
                                  std::move(where));
    }
    case CriticalPredecessor::Kind::WaitsFor:
      exists(where, event);
      if (!isBefore(target, event, where) && !isRead(target, event))
        throw std::invalid_argument("an action does not wait for its reason");
      result.push_back({std::move(where),
                        units[event.unit].duration,
                        {own, {event.unit, 1, event.rank, event.iteration}}});
    }
  }

  /// Whether an action stands before another on its rank, if that is shown of
  /// iterations of one loop.
  bool isBefore(const Unit &target, const EventRef &event, const Forms &where) {
    const Unit &source = units[event.unit];
    if (source.rankClass != target.rankClass || event.rank != Form::of(Rank) ||
        source.segment > target.segment)
      return false;
    if (source.segment == target.segment)
      nonNegative(where, Form::of(Iteration) - event.iteration -
                             (event.unit < numberOf(target) ? 0 : 1));
    return true;
  }

  bool isRead(const Unit &target, const EventRef &event) const {
    const Unit &source = units[event.unit];
    bool found = false;
    for (const Row &row : target.rows)
      for (const Row &other : source.rows)
        forEachRead(row, [&](uint8_t slot, int distance) {
          const Chunk &own = chunkOf(target, row),
                      &chunk = chunkOf(source, other);
          auto there = [&](const Form &form) {
            return form.on(event.rank, event.iteration);
          };
          found |= chunk.pipe == own.pipe && (infoOf(other).defines & slot) &&
                   own.stage + distance == there(chunk.stage) &&
                   row.microbatch == there(other.microbatch);
        });
    return found;
  }

  const Statements &statements;
  const std::vector<Unit> &units;
  const Claim &claim;
  std::set<ChunkPair> shownInfeasible;
  std::vector<Obligation> result;
};

} // namespace

std::vector<Obligation> every::obligations(const Statements &statements,
                                           const Claim &claim) {
  return ObligationGenerator(statements, claim).run();
}

std::string every::faultOf(const Statements &statements,
                           const Certificate &certificate) {
  try {
    auto all = obligations(statements, certificate.claim);
    if (all.size() != certificate.multipliers.size() || certificate.scale < 1)
      return "an obligation has no proof";
    for (size_t i = 0; i != all.size(); ++i) {
      Form goal = certificate.scale * all[i].rest;
      for (const Obligation::Time &time : all[i].times)
        goal.add(certificate.times.at(time.unit).on(time.rank, time.iteration),
                 time.factor);
      if (!checkMultipliers(all[i].premises, goal, certificate.multipliers[i]))
        return "an obligation has no proof";
    }
    return "";
  } catch (const std::exception &wrong) {
    return wrong.what();
  }
}
