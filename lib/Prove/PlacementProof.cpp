// Proves that a communication order places messages for all n where the
// template has them. LatePlacementProof.cpp does so for the order `late`.
//
// Algorithm: an order by time or in sweeps is a list scheduler, whose times
// are maxima of sums of earlier ones (max-plus equations; critical path method,
// Kelley and Walker 1959). `fitValues` fits its times of n = 1 and 2 by affine
// functions. MaximumCheck then shows each equation on its whole domain: the
// value is at least each candidate, and everywhere equal to one. Then rows
// must ascend lexicographically by the keys by which the scheduler sorts.
// Invariant: values follow from earlier ones alone, so values that satisfy all
// equations are those of the scheduler, and ascending rows are its order.
// Cost: a few comparisons for each wait of a row, and for each pair of
// neighbouring rows, whatever n is.
// Example: a send of F j has latency 1 and no slack; F j ends at 2 + 2 j:
//   it is due at 2 + 2 j; the message before it arrives at 3 + 2 (j - 1).
//   Their maximum 2 + 2 j, plus 1, is the fitted arrival 3 + 2 j.
#include "PlacementProof.h"

#include "Fit.h"

#include "ppcc/Proof/Domain.h"

namespace ppcc::placement {
using namespace proof;
namespace {

/// What is noted of rows, as functions of n and of their turns: by rank and
/// row.
using FittedValues = std::vector<std::vector<Affine>>;

/// What rows are sorted by; the first that differs decides.
using Key = std::array<Affine, 7>;

class PlacementProver {
public:
  explicit PlacementProver(const MessagePlacement &placement)
      : placement(placement), program(placement.program), head(*program.head),
        isSweep(placement.order == CommOrder::Sweep),
        transport(*findTransport("posted")),
        checker(Checker::of(program, &transport)) {}

  bool isPlacementProven() {
    if (placement.order == CommOrder::Late)
      return isLatePlacementStable(program);
    if (!fitValues())
      return false;
    if (!isSweep && !checkUncontendedTimes())
      return false;
    for (uint32_t rank = 0; rank != program.ranks.size(); ++rank)
      before.push_back(predecessorsOf(program.ranks[rank]));
    return checkMessages() && checkItems() && checkAscending();
  }

private:
  const Row &rowAt(uint32_t rank, uint32_t row) const {
    return program.ranks[rank][row];
  }
  const KindInfo &infoOf(const Row &row) const { return head.kinds[row.kind]; }
  bool isMessage(const Row &row) const { return !infoOf(row).isCompute(); }
  Domain fullDomain(uint32_t rank, uint32_t row) const {
    return proof::fullDomain(program, rowAt(rank, row));
  }
  uint32_t rankOf(const Row &row, StageId stage) const {
    return head.rankOfStage(row.pipe, stage).value;
  }
  template <class Holds> bool everyRow(bool ofMessages, Holds holds) const {
    for (uint32_t rank = 0; rank != program.ranks.size(); ++rank)
      for (uint32_t row = 0; row != program.ranks[rank].size(); ++row)
        if (isMessage(rowAt(rank, row)) == ofMessages &&
            !rowAt(rank, row).joined && !holds(rank, row))
          return false;
    return true;
  }

  // ---- What was noted ----

  bool fitValues() {
    const PlanTimes *plans[] = {&placement.first, &placement.second};
    auto of = [&](int64_t PlanTimes::OfRow::*member) {
      std::vector<std::vector<int64_t>> values;
      for (const PlanTimes *plan : plans)
        for (auto &list = values.emplace_back();
             const PlanTimes::OfRow &row : plan->rows)
          list.push_back(row.*member);
      return fitted(program, values);
    };
    auto fitWithoutMessages = [&](std::vector<int64_t> PlanTimes::*member) {
      return fitted(placement.withoutMessages,
                    {placement.first.*member, placement.second.*member});
    };
    auto all = [&](FittedValues &to, std::optional<FittedValues> found) {
      if (found)
        to = std::move(*found);
      return found.has_value();
    };
    if (!all(at, of(&PlanTimes::OfRow::at)) ||
        !all(producer, of(&PlanTimes::OfRow::producer)))
      return false;
    return isSweep || (all(slack, of(&PlanTimes::OfRow::slack)) &&
                       all(arrival, of(&PlanTimes::OfRow::arrival)) &&
                       all(starts, fitWithoutMessages(&PlanTimes::starts)) &&
                       all(ends, fitWithoutMessages(&PlanTimes::ends)) &&
                       all(slacks, fitWithoutMessages(&PlanTimes::slacks)));
  }

  // ---- Rows in front ----

  /// The last item, or message, before a row.
  struct Predecessor {
    bool isMessage;
    uint32_t row;
    Affine iteration;
    Domain domain;
  };

  std::vector<std::vector<Predecessor>>
  predecessorsOf(ArrayRef<Row> rows) const {
    std::vector<std::vector<Predecessor>> result(rows.size());
    static constexpr uint32_t both[] = {0, 1};
    forEachPredecessor(
        program, rows,
        [&](uint32_t row) {
          return rows[row].joined
                     ? std::nullopt
                     : std::optional(uint32_t(isMessage(rows[row])));
        },
        [&](uint32_t row) {
          return rows[row].joined ? ArrayRef<uint32_t>() : ArrayRef(both);
        },
        [&](uint32_t row, uint32_t last, Affine iteration,
            const Domain &domain) {
          result[row].push_back(
              {isMessage(rows[last]), last, iteration, domain});
        });
    return result;
  }

  // ---- Values that are the largest of some ----

  /// Whether a value is above some candidates, and everywhere one of them.
  class MaximumCheck {
  public:
    MaximumCheck(Affine value, const Domain &whole)
        : value(value), whole(whole) {}

    void add(Affine candidate, const Domain &domain) {
      isUpperBound &= isAtLeast(value - candidate, domain, 0);
      if (isZero(value - candidate, domain))
        pieces.push_back(domain);
    }
    /// That it is on a domain.
    void addAttained(const Domain &domain) { pieces.push_back(domain); }
    bool isAttained() const { return covers(pieces, whole); }
    bool holds() const { return isUpperBound && isAttained(); }
    bool isUpperBound = true;

  private:
    Affine value;
    Domain whole;
    std::vector<Domain> pieces;
  };

  // ---- By time ----

  /// Whether the times without waiting messages are right, and the slack of
  /// what each row reads.
  bool checkUncontendedTimes() const {
    // In the plan all that a rank does stands in one line.
    Topology inProgramOrder = head;
    Costs costs = placement.costs;
    for (KindId kind : inProgramOrder.kinds.ids())
      if (inProgramOrder.kinds[kind].isDeclared()) {
        KindInfo &info = inProgramOrder.kinds.declared(kind);
        if (info.isAsync())
          costs.times[kind.value] = {0};
        info.lane = lane::Compute;
        info.collective = Collective::None;
        info.inFlight = 0;
      }
    if (placement.first.latency)
      forEachEdge(head.pipes, [&](PipeId pipe, StageId from, StageId to) {
        if (head.rankOfStage(pipe, from) != head.rankOfStage(pipe, to))
          costs.links[{pipe.value, from.value, to.value}] =
              *placement.first.latency;
      });
    Template withoutMessages = placement.withoutMessages;
    withoutMessages.head = &inProgramOrder;
    Times times;
    for (uint32_t rank = 0; rank != withoutMessages.ranks.size(); ++rank)
      for (auto &list = times.ranks.emplace_back();
           list.size() != withoutMessages.ranks[rank].size();)
        list.push_back({starts[rank][list.size()], ends[rank][list.size()]});
    auto checker = Checker::of(withoutMessages, nullptr);
    return checker->isEarliestRun(times, costs) &&
           checkSlacks(*checker, withoutMessages, costs) &&
           checkMaxSlack(withoutMessages, placement.costs);
  }

  bool checkSlacks(const Checker &checker, const Template &withoutMessages,
                   const Costs &costs) const {
    for (uint32_t rank = 0; rank != withoutMessages.ranks.size(); ++rank)
      for (uint32_t row = 0; row != withoutMessages.ranks[rank].size(); ++row) {
        const Row &at = withoutMessages.ranks[rank][row];
        bool reads = false;
        // The least of several is the largest of their negatives.
        Domain whole = proof::fullDomain(withoutMessages, at);
        MaximumCheck minimum(-1 * slacks[rank][row], whole);
        bool known = checker.forEachInput(
            rank, row,
            [&](const Event &maker, const Domain &domain, StageId from) {
              if (from == at.stage)
                return;
              reads |= maker.rank != rank;
              int64_t edgeTime = maker.rank == rank
                                     ? 0
                                     : timeOf(costs, at.pipe, from, at.stage);
              minimum.add(
                  substitute(ends[maker.rank][maker.row], maker.iteration) +
                      edgeTime - starts[rank][row],
                  domain);
            });
        minimum.add(-placement.first.maxSlack, whole);
        if (!known || (reads && !minimum.holds()))
          return false;
      }
    return true;
  }

  /// Whether the first microbatches take as long in all programs.
  bool checkMaxSlack(const Template &withoutMessages,
                     const Costs &costs) const {
    Template ungrouped = withoutMessages;
    for (auto &rows : ungrouped.ranks)
      for (Row &row : rows)
        row.joined = false;
    auto times = rowDurationsOf(ungrouped, costs);
    if (!times || placement.first.maxSlack != placement.second.maxSlack)
      return false;
    int64_t sum = 0;
    for (uint32_t rank = 0; rank != ungrouped.ranks.size(); ++rank)
      for (uint32_t row = 0; row != ungrouped.ranks[rank].size(); ++row) {
        const Row &at = ungrouped.ranks[rank][row];
        if (at.microbatch == Affine(noMicrobatch))
          continue;
        Affine offset = at.microbatch - ungrouped.pipes[at.pipe.value].first;
        Domain whole = proof::fullDomain(ungrouped, at);
        Affine begin{offset.c, offset.n, 0},
            end{offset.c, offset.n + offset.j, 0};
        Domain all{0, program.last, false, {}, {}};
        if (isAtLeast(offset, whole, 1))
          continue;
        if (!isZero(offset.j < 0 ? end : begin, all) ||
            (whole.hasIterations && offset.j == 0))
          return false;
        sum += (*times)[rank][row];
      }
    return sum == placement.first.maxSlack;
  }

  /// Half of the slack, rounded down.
  static std::optional<Affine> half(Affine x) {
    if (x.isConstant() && x.c >= 0)
      return Affine(x.c / 2);
    bool never;
    return divide(x, 2, never);
  }

  /// Whether both ends of a message have noted the same, and it comes when they
  /// did.
  bool checkMessages() const {
    // Whether the streams of both ranks, and the producer, say when it comes.
    auto arrivalCheck = [&](uint32_t rank, uint32_t row) {
      const Row &at = rowAt(rank, row);
      auto [from, to] = infoOf(at).isSend() ? std::pair(at.stage, at.peer)
                                            : std::pair(at.peer, at.stage);
      int64_t edgeTime = placement.first.latency
                             ? *placement.first.latency
                             : timeOf(placement.costs, at.pipe, from, to);
      MaximumCheck begins(arrival[rank][row] - edgeTime, fullDomain(rank, row));
      begins.add(this->at[rank][row], fullDomain(rank, row));
      for (const Predecessor &last : before[rank][row])
        if (last.isMessage)
          begins.add(substitute(arrival[rank][last.row], last.iteration),
                     last.domain);
      return begins;
    };
    std::vector<const FittedValues *> shared = {&at, &producer};
    if (!isSweep)
      shared.insert(shared.end(), {&slack, &arrival});
    return everyRow(true, [&](uint32_t rank, uint32_t row) {
      bool isSend = infoOf(rowAt(rank, row)).isSend(), agree = true;
      std::optional<MaximumCheck> begins; // A sweep has no times.
      if (!isSweep)
        begins = arrivalCheck(rank, row);
      bool known = checker->forEachMatchingMessage(
          rank, row, [&](const Event &other, const Domain &domain) {
            for (const FittedValues *values : shared)
              agree &= isZero((*values)[rank][row] -
                                  substitute((*values)[other.rank][other.row],
                                             other.iteration),
                              domain);
            if (begins && isSend &&
                arrivalCheck(other.rank, other.row).isAttained())
              begins->addAttained(domain);
          });
      return known && agree && (!begins || begins->isUpperBound) &&
             (!isSend ||
              ((!begins || begins->isAttained()) && checkDueTime(rank, row)));
    });
  }

  /// Whether a message is due when its producer has ended, and half of its
  /// slack later.
  bool checkDueTime(uint32_t rank, uint32_t row) const {
    auto later =
        isSweep ? std::optional<Affine>(Affine()) : half(slack[rank][row]);
    bool isValid = later.has_value();
    bool known = checker->forEachSendProducer(
        rank, row, [&](const Event &maker, const Domain &domain) {
          isValid = isValid && isZero(at[rank][row] - *later -
                                          substitute(at[maker.rank][maker.row],
                                                     maker.iteration),
                                      domain);
        });
    return known && isValid;
  }

  // ---- By time, and in sweeps ----

  /// Whether each item comes when what it reads has come, and its rank is free;
  /// and messages have the slack of their readers.
  bool checkItems() {
    Costs costs = placement.costs;
    for (KindId kind : head.kinds.ids())
      if (head.kinds[kind].isDeclared() && head.kinds[kind].isAsync())
        costs.times[kind.value] = {0};
    auto times = rowDurationsOf(program, costs);
    if (!times && !isSweep)
      return false;
    std::vector<std::vector<uint32_t>> rowWithoutMessages; // By rank and row.
    for (const auto &rows : program.ranks) {
      uint32_t next = 0;
      for (auto &list = rowWithoutMessages.emplace_back();
           const Row &row : rows) {
        list.push_back(next);
        next += !isMessage(row);
      }
    }
    return everyRow(false, [&](uint32_t rank, uint32_t item) {
      // In a sweep each item is at least one after the one before.
      int64_t takes = isSweep ? 0 : std::max<int64_t>((*times)[rank][item], 1);
      Domain whole = fullDomain(rank, item);
      MaximumCheck ready(at[rank][item] - takes, whole);
      ready.add(0, whole);
      for (const Predecessor &last : before[rank][item])
        if (!last.isMessage)
          ready.add(substitute(at[rank][last.row], last.iteration) + isSweep,
                    last.domain);
      const auto &rows = program.ranks[rank];
      uint32_t row = item;
      bool known = true;
      do {
        known &= checker->forEachInput(
            rank, row, [&](const Event &event, const Domain &domain, StageId) {
              const Row &source = rowAt(event.rank, event.row);
              if (!isMessage(source))
                return; // It stands before it on the rank.
              if (isSweep)
                return ready.add(
                    substitute(at[rank][event.row], event.iteration) +
                        (rankOf(source, source.peer) < rank ? 0 : 1),
                    domain);
              ready.add(substitute(arrival[rank][event.row], event.iteration),
                        domain);
              known &= isZero(
                  slacks[rank][rowWithoutMessages[rank][row]] -
                      substitute(slack[rank][event.row], event.iteration),
                  domain);
            });
      } while (++row != rows.size() && rows[row].joined);
      return known && ready.holds();
    });
  }

  // ---- The order ----

  Key keyOf(uint32_t rank, uint32_t row) const {
    const Row &at = rowAt(rank, row);
    Affine when = this->at[rank][row];
    if (!isMessage(at))
      return isSweep ? Key{when, rank} : Key{when};
    const KindInfo &info = infoOf(at);
    StageId from = info.isSend() ? at.stage : at.peer,
            to = info.isSend() ? at.peer : at.stage;
    Affine made = producer[rank][row];
    int64_t sender = rankOf(at, from);
    if (isSweep)
      return {when, sender, 1, made, info.mainSlot(), to.value};
    return {when, 1, slack[rank][row], sender, made, info.mainSlot(), to.value};
  }

  /// Whether a key is before another on a domain.
  static bool isBefore(const Key &a, const Key &b, const Domain &domain) {
    for (size_t i = 0; i != a.size(); ++i) {
      Affine more = b[i] - a[i];
      if (!isAtLeast(more, domain, 0))
        return false;
      if (isAtLeast(more, domain, 1))
        return true;
    }
    return false;
  }

  bool checkAscending() const {
    if (!checkProducerRows())
      return false;
    for (uint32_t rank = 0; rank != program.ranks.size(); ++rank) {
      bool isValid = true;
      const auto &rows = program.ranks[rank];
      forEachPredecessor(
          program, rows,
          [&](uint32_t row) {
            return rows[row].joined ? std::nullopt : std::optional(0u);
          },
          [&](uint32_t row) {
            static constexpr uint32_t one[] = {0};
            return rows[row].joined ? ArrayRef<uint32_t>() : ArrayRef(one);
          },
          [&](uint32_t row, uint32_t last, Affine iteration,
              const Domain &domain) {
            Key former = keyOf(rank, last);
            for (Affine &part : former)
              part = substitute(part, iteration);
            isValid = isValid && isBefore(former, keyOf(rank, row), domain);
          });
      if (!isValid)
        return false;
    }
    return true;
  }

  /// Whether the noted rows ascend with those of the makers.
  bool checkProducerRows() const {
    std::vector<std::vector<Affine>> ordinals;
    std::vector<Affine> firsts{{}}; // By rank, without messages.
    for (const auto &rows : program.ranks) {
      ordinals.push_back(ordinalsOf(rows, [&](uint32_t row) {
        return isMessage(rows[row]) ? std::nullopt : std::optional(0);
      }));
      Affine next = firsts.back();
      for (const Row &row : rows)
        if (!isMessage(row))
          next = next + Affine{1, row.loop != noLoop, 0};
      firsts.push_back(next);
    }
    return everyRow(true, [&](uint32_t rank, uint32_t row) {
      if (!infoOf(rowAt(rank, row)).isSend())
        return true;
      bool isValid = true;
      bool known = checker->forEachSendProducer(
          rank, row, [&](const Event &maker, const Domain &domain) {
            Affine place =
                substitute(ordinals[rank][maker.row], maker.iteration);
            isValid &=
                isZero(producer[rank][row] - firsts[rank] - place, domain);
          });
      return known && isValid;
    });
  }

  const MessagePlacement &placement;
  const Template &program;
  const Topology &head;
  const bool isSweep;
  const Transport transport; ///< On which all wait for data alone.
  std::unique_ptr<const Checker> checker;
  FittedValues at, slack, arrival, producer; ///< Of rows with messages.
  FittedValues starts, ends, slacks;         ///< Of those without.
  std::vector<std::vector<std::vector<Predecessor>>>
      before; ///< By rank and row.
};

// ---- Actions that follow messages ----

bool isFollower(const Row &row, const KindTable &kinds) {
  return kinds[row.kind].isCompute() &&
         isPlacedWithMessages(kinds[row.kind], kinds);
}

/// Whether a row stands right after the only message of its rank that it
/// follows, before a row that does not.
bool isRightAfterMessage(const Template &program, ArrayRef<Row> rows,
                         size_t at) {
  const Topology &head = *program.head;
  const Row &row = rows[at];
  const KindInfo &info = head.kinds[row.kind];
  bool isAlone =
      at + 1 == rows.size() ||
      (!rows[at + 1].joined && !isFollower(rows[at + 1], head.kinds));
  if (at == 0 || row.joined || !isAlone || info.scope != KindScope::Microbatch)
    return false;
  const Pipe &pipe = head.pipes[row.pipe.value];
  const Row &before = rows[at - 1];
  size_t messages = 0;
  bool followsMessage = false;
  for (const KindRule &rule : info.rules)
    for (KindId kind : rule.kinds) {
      const KindInfo &followed = head.kinds[kind];
      if (rule.isBefore || followed.isCompute())
        continue;
      for (StageId other :
           followed.isSend() ? readersOf(pipe, row.stage, followed.mainSlot())
                             : sourcesOf(pipe, row.stage, followed.mainSlot()))
        messages +=
            pipe.rankOfStage[other.value] != pipe.rankOfStage[row.stage.value];
      followsMessage |= before.kind == kind;
    }
  return messages == 1 && followsMessage && before.pipe == row.pipe &&
         before.stage == row.stage && before.loop == row.loop &&
         before.microbatch == row.microbatch;
}

/// Takes them out; false where one does not stand where it should.
bool removeFollowers(Template &program, bool isPlaced) {
  for (auto &rows : program.ranks) {
    const std::vector<Row> all = std::exchange(rows, {});
    for (size_t at = 0; at != all.size(); ++at)
      if (!isFollower(all[at], program.head->kinds))
        rows.push_back(all[at]);
      else if (isPlaced && !isRightAfterMessage(program, all, at))
        return false;
  }
  return true;
}

} // namespace
} // namespace ppcc::placement

bool ppcc::provePlacement(const MessagePlacement &placement) {
  try {
    // Messages are placed without them.
    proof::Template program = placement.program,
                    withoutMessages = placement.withoutMessages;
    if (!placement::removeFollowers(program, /*isPlaced=*/true) ||
        !placement::removeFollowers(withoutMessages, /*isPlaced=*/false))
      return false;
    MessagePlacement withoutFollowers{program,         withoutMessages,
                                      placement.costs, placement.order,
                                      placement.first, placement.second};
    return placement::PlacementProver(withoutFollowers).isPlacementProven();
  } catch (const std::overflow_error &) {
    return false;
  }
}
