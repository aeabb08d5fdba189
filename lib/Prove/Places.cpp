#include "Places.h"

#include "Fit.h"

#include "ppcc/Proof/Domain.h"

namespace ppcc::places {
using namespace proof;
namespace {

/// What is noted of rows, as functions of n and of their turns: by rank and
/// row.
using Noted = std::vector<std::vector<Affine>>;

/// What rows are sorted by; the first that differs decides.
using Key = std::array<Affine, 7>;

class Places {
public:
  explicit Places(const Placed &placed)
      : placed(placed), program(placed.program), head(*program.head),
        isSweep(placed.order == CommOrder::Sweep),
        transport(*findTransport("posted")),
        checker(Checker::of(program, &transport)) {}

  bool areRight() {
    if (placed.order == CommOrder::Late)
      return stayLate(program);
    if (!fit())
      return false;
    if (!isSweep && !aloneIsRight())
      return false;
    for (uint32_t rank = 0; rank != program.ranks.size(); ++rank)
      before.push_back(lastsOf(program.ranks[rank]));
    if (!isSweep && !messagesAreRight())
      return false;
    return itemsAreRight() && ascend();
  }

private:
  const Row &rowAt(uint32_t rank, uint32_t row) const {
    return program.ranks[rank][row];
  }
  const KindInfo &infoOf(const Row &row) const { return head.kinds[row.kind]; }
  bool isMessage(const Row &row) const { return !infoOf(row).isCompute(); }
  Domain wholeOf(uint32_t rank, uint32_t row) const {
    return proof::wholeOf(program, rowAt(rank, row));
  }
  uint32_t rankOf(const Row &row, StageId stage) const {
    return head.rankOfStage(row.pipe, stage).value;
  }
  uint32_t itemOf(uint32_t rank, uint32_t row) const {
    while (rowAt(rank, row).joined)
      --row;
    return row;
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

  bool fit() {
    const PlanTimes *notes[] = {&placed.first, &placed.second};
    auto of = [&](int64_t PlanTimes::OfRow::*member) {
      std::vector<std::vector<int64_t>> values;
      for (const PlanTimes *note : notes)
        for (auto &list = values.emplace_back();
             const PlanTimes::OfRow &row : note->rows)
          list.push_back(row.*member);
      return fitted(program, values);
    };
    auto ofBare = [&](std::vector<int64_t> PlanTimes::*member) {
      return fitted(placed.bare, {placed.first.*member, placed.second.*member});
    };
    auto all = [&](Noted &to, std::optional<Noted> found) {
      if (found)
        to = std::move(*found);
      return found.has_value();
    };
    if (!all(at, of(&PlanTimes::OfRow::at)) ||
        !all(producer, of(&PlanTimes::OfRow::producer)))
      return false;
    return isSweep || (all(slack, of(&PlanTimes::OfRow::slack)) &&
                       all(there, of(&PlanTimes::OfRow::there)) &&
                       all(starts, ofBare(&PlanTimes::starts)) &&
                       all(ends, ofBare(&PlanTimes::ends)) &&
                       all(slacks, ofBare(&PlanTimes::slacks)));
  }

  // ---- Rows in front ----

  /// The last item, or message, before a row.
  struct Last {
    bool isMessage;
    uint32_t row;
    Affine turn;
    Domain domain;
  };

  std::vector<std::vector<Last>> lastsOf(ArrayRef<Row> rows) const {
    std::vector<std::vector<Last>> result(rows.size());
    static constexpr uint32_t both[] = {0, 1};
    forEachLast(
        program, rows,
        [&](uint32_t row) {
          return rows[row].joined
                     ? std::nullopt
                     : std::optional(uint32_t(isMessage(rows[row])));
        },
        [&](uint32_t row) {
          return rows[row].joined ? ArrayRef<uint32_t>() : ArrayRef(both);
        },
        [&](uint32_t row, uint32_t last, Affine turn, const Domain &domain) {
          result[row].push_back({isMessage(rows[last]), last, turn, domain});
        });
    return result;
  }

  // ---- Values that are the largest of some ----

  /// Whether a value is above some candidates, and everywhere one of them.
  class Largest {
  public:
    Largest(Affine value, const Domain &whole) : value(value), whole(whole) {}

    void add(Affine candidate, const Domain &domain) {
      isAbove &= atLeast(value - candidate, domain, 0);
      if (isZero(value - candidate, domain))
        pieces.push_back(domain);
    }
    /// That it is on a domain.
    void addKnown(const Domain &domain) { pieces.push_back(domain); }
    bool isOne() const { return covers(pieces, whole); }
    bool holds() const { return isAbove && isOne(); }
    bool isAbove = true;

  private:
    Affine value;
    Domain whole;
    std::vector<Domain> pieces;
  };

  // ---- By time ----

  /// Whether the times without waiting messages are right, and the slack of
  /// what each row reads.
  bool aloneIsRight() const {
    // In the plan all that a rank does stands in one line.
    Topology inLine = head;
    Costs costs = placed.costs;
    for (KindId kind : inLine.kinds.ids())
      if (inLine.kinds[kind].isDeclared()) {
        KindInfo &info = inLine.kinds.declared(kind);
        if (info.isBeside())
          costs.times[kind.value] = {0};
        info.lane = lane::Compute;
        info.meeting = Meeting::None;
        info.inFlight = 0;
      }
    if (placed.first.latency)
      forEachEdge(head.pipes, [&](PipeId pipe, StageId from, StageId to) {
        if (head.rankOfStage(pipe, from) != head.rankOfStage(pipe, to))
          costs.links[{pipe.value, from.value, to.value}] =
              *placed.first.latency;
      });
    Template bare = placed.bare;
    bare.head = &inLine;
    Times times;
    for (uint32_t rank = 0; rank != bare.ranks.size(); ++rank)
      for (auto &list = times.ranks.emplace_back();
           list.size() != bare.ranks[rank].size();)
        list.push_back({starts[rank][list.size()], ends[rank][list.size()]});
    auto checker = Checker::of(bare, nullptr);
    return checker->isRun(times, costs) &&
           slacksAreRight(*checker, bare, costs) &&
           mostSlackIsRight(bare, placed.costs);
  }

  bool slacksAreRight(const Checker &checker, const Template &bare,
                      const Costs &costs) const {
    for (uint32_t rank = 0; rank != bare.ranks.size(); ++rank)
      for (uint32_t row = 0; row != bare.ranks[rank].size(); ++row) {
        const Row &at = bare.ranks[rank][row];
        bool reads = false;
        // The least of several is the largest of their negatives.
        Domain whole = proof::wholeOf(bare, at);
        Largest least(-1 * slacks[rank][row], whole);
        bool known = checker.forEachInput(
            rank, row,
            [&](const Event &maker, const Domain &domain, StageId from) {
              if (from == at.stage)
                return;
              reads |= maker.rank != rank;
              int64_t way = maker.rank == rank
                                ? 0
                                : timeOf(costs, at.pipe, from, at.stage);
              least.add(substitute(ends[maker.rank][maker.row], maker.turn) +
                            way - starts[rank][row],
                        domain);
            });
        least.add(-placed.first.mostSlack, whole);
        if (!known || (reads && !least.holds()))
          return false;
      }
    return true;
  }

  /// Whether the first microbatches take as long in all programs.
  bool mostSlackIsRight(const Template &bare, const Costs &costs) const {
    Template alone = bare;
    for (auto &rows : alone.ranks)
      for (Row &row : rows)
        row.joined = false;
    auto times = timesOf(alone, costs);
    if (!times || placed.first.mostSlack != placed.second.mostSlack)
      return false;
    int64_t sum = 0;
    for (uint32_t rank = 0; rank != alone.ranks.size(); ++rank)
      for (uint32_t row = 0; row != alone.ranks[rank].size(); ++row) {
        const Row &at = alone.ranks[rank][row];
        if (at.microbatch == Affine(noMicrobatch))
          continue;
        Affine behind = at.microbatch - alone.pipes[at.pipe.value].first;
        Domain whole = proof::wholeOf(alone, at);
        Affine begin{behind.c, behind.n, 0},
            end{behind.c, behind.n + behind.j, 0};
        Domain all{0, program.last, false, {}, {}};
        if (atLeast(behind, whole, 1))
          continue;
        if (!isZero(behind.j < 0 ? end : begin, all) ||
            (whole.hasTurns && behind.j == 0))
          return false;
        sum += (*times)[rank][row];
      }
    return sum == placed.first.mostSlack;
  }

  /// Half of the slack, rounded down.
  static std::optional<Affine> half(Affine x) {
    if (x.isConstant() && x.c >= 0)
      return Affine(x.c / 2);
    bool never;
    return divide(x, 2, never);
  }

  bool messagesAreRight() const {
    // Whether the streams of both ranks, and the producer, say when it comes.
    auto comes = [&](uint32_t rank, uint32_t row) {
      const Row &at = rowAt(rank, row);
      auto [from, to] = infoOf(at).isSend() ? std::pair(at.stage, at.peer)
                                            : std::pair(at.peer, at.stage);
      int64_t way = placed.first.latency
                        ? *placed.first.latency
                        : timeOf(placed.costs, at.pipe, from, to);
      Largest begins(there[rank][row] - way, wholeOf(rank, row));
      begins.add(this->at[rank][row], wholeOf(rank, row));
      for (const Last &last : before[rank][row])
        if (last.isMessage)
          begins.add(substitute(there[rank][last.row], last.turn), last.domain);
      return begins;
    };
    return everyRow(true, [&](uint32_t rank, uint32_t row) {
      Largest begins = comes(rank, row);
      bool isSend = infoOf(rowAt(rank, row)).isSend(), agree = true;
      bool known = checker->forEachPartner(
          rank, row, [&](const Event &other, const Domain &domain) {
            for (const Noted *noted : {&at, &slack, &there, &producer})
              agree &= isZero(
                  (*noted)[rank][row] -
                      substitute((*noted)[other.rank][other.row], other.turn),
                  domain);
            if (isSend && comes(other.rank, other.row).isOne())
              begins.addKnown(domain);
          });
      if (!known || !agree || !begins.isAbove)
        return false;
      return !isSend || (begins.isOne() && isDue(rank, row));
    });
  }

  /// Whether a message is due when its producer has ended, and half of its
  /// slack later.
  bool isDue(uint32_t rank, uint32_t row) const {
    auto later = half(slack[rank][row]);
    bool isRight = later.has_value();
    bool known = checker->forEachMaker(
        rank, row, [&](const Event &maker, const Domain &domain) {
          isRight = isRight && isZero(at[rank][row] - *later -
                                          substitute(at[maker.rank][maker.row],
                                                     maker.turn),
                                      domain);
        });
    return known && isRight;
  }

  // ---- By time, and in sweeps ----

  /// Whether each item comes when what it reads has come, and its rank is free;
  /// and messages have the slack of their readers.
  bool itemsAreRight() {
    Costs costs = placed.costs;
    for (KindId kind : head.kinds.ids())
      if (head.kinds[kind].isDeclared() && head.kinds[kind].isBeside())
        costs.times[kind.value] = {0};
    auto times = timesOf(program, costs);
    if (!times && !isSweep)
      return false;
    std::vector<std::vector<uint32_t>> bareRow; // By rank and row.
    for (const auto &rows : program.ranks) {
      uint32_t next = 0;
      for (auto &list = bareRow.emplace_back(); const Row &row : rows) {
        list.push_back(next);
        next += !isMessage(row);
      }
    }
    bool isRight = everyRow(false, [&](uint32_t rank, uint32_t item) {
      // In a sweep each item is at least one behind the one before.
      int64_t takes = isSweep ? 0 : std::max<int64_t>((*times)[rank][item], 1);
      Domain whole = wholeOf(rank, item);
      Largest ready(at[rank][item] - takes, whole);
      ready.add(0, whole);
      for (const Last &last : before[rank][item])
        if (!last.isMessage)
          ready.add(substitute(at[rank][last.row], last.turn) + isSweep,
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
                    substitute(at[rank][event.row], event.turn) +
                        (rankOf(source, source.peer) < rank ? 0 : 1),
                    domain);
              ready.add(substitute(there[rank][event.row], event.turn), domain);
              known &=
                  isZero(slacks[rank][bareRow[rank][row]] -
                             substitute(slack[rank][event.row], event.turn),
                         domain);
            });
      } while (++row != rows.size() && rows[row].joined);
      return known && ready.holds();
    });
    if (!isRight || !isSweep)
      return isRight;
    return everyRow(true, [&](uint32_t rank, uint32_t row) {
      bool isSend = infoOf(rowAt(rank, row)).isSend(), agree = true;
      auto sameAs = [&](const Event &other, const Domain &domain) {
        agree &= isZero(at[rank][row] -
                            substitute(at[other.rank][other.row], other.turn),
                        domain);
      };
      bool known = checker->forEachPartner(
          rank, row, [&](const Event &other, const Domain &domain) {
            sameAs(other, domain);
            agree &= isZero(
                producer[rank][row] -
                    substitute(producer[other.rank][other.row], other.turn),
                domain);
          });
      known &= !isSend || checker->forEachMaker(rank, row, sameAs);
      return known && agree;
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
      if (!atLeast(more, domain, 0))
        return false;
      if (atLeast(more, domain, 1))
        return true;
    }
    return false;
  }

  bool ascend() const {
    if (!producersAreRight())
      return false;
    for (uint32_t rank = 0; rank != program.ranks.size(); ++rank) {
      bool isRight = true;
      const auto &rows = program.ranks[rank];
      forEachLast(
          program, rows,
          [&](uint32_t row) {
            return rows[row].joined ? std::nullopt : std::optional(0u);
          },
          [&](uint32_t row) {
            static constexpr uint32_t one[] = {0};
            return rows[row].joined ? ArrayRef<uint32_t>() : ArrayRef(one);
          },
          [&](uint32_t row, uint32_t last, Affine turn, const Domain &domain) {
            Key former = keyOf(rank, last);
            for (Affine &part : former)
              part = substitute(part, turn);
            isRight = isRight && isBefore(former, keyOf(rank, row), domain);
          });
      if (!isRight)
        return false;
    }
    return true;
  }

  /// Whether the noted rows ascend with those of the makers.
  bool producersAreRight() const {
    std::vector<std::vector<Affine>> places;
    std::vector<Affine> firsts{{}}; // By rank, without messages.
    for (const auto &rows : program.ranks) {
      places.push_back(placesOf(rows, [&](uint32_t row) {
        return isMessage(rows[row]) ? std::nullopt : std::optional(0);
      }));
      Affine next = firsts.back();
      for (const Row &row : rows)
        if (!isMessage(row))
          next = next + Affine{1, row.window != noWindow, 0};
      firsts.push_back(next);
    }
    return everyRow(true, [&](uint32_t rank, uint32_t row) {
      if (!infoOf(rowAt(rank, row)).isSend())
        return true;
      bool isRight = true;
      bool known = checker->forEachMaker(
          rank, row, [&](const Event &maker, const Domain &domain) {
            Affine place = substitute(places[rank][maker.row], maker.turn);
            isRight &=
                isZero(producer[rank][row] - firsts[rank] - place, domain);
          });
      return known && isRight;
    });
  }

  const Placed &placed;
  const Template &program;
  const Topology &head;
  const bool isSweep;
  const Transport transport; ///< On which all wait for data alone.
  std::unique_ptr<const Checker> checker;
  Noted at, slack, there, producer; ///< Of rows with messages.
  Noted starts, ends, slacks;       ///< Of those without.
  std::vector<std::vector<std::vector<Last>>> before; ///< By rank and row.
};

// ---- Actions that follow messages ----

bool isFollower(const Row &row, const KindTable &kinds) {
  return kinds[row.kind].isCompute() && isPlacedLater(kinds[row.kind], kinds);
}

/// Whether a row stands right behind the only message of its rank that it
/// follows, in front of a row that does not.
bool standsRight(const Template &program, ArrayRef<Row> rows, size_t at) {
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
  bool isBehind = false;
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
      isBehind |= before.kind == kind;
    }
  return messages == 1 && isBehind && before.pipe == row.pipe &&
         before.stage == row.stage && before.window == row.window &&
         before.microbatch == row.microbatch;
}

/// Takes them out; false where one does not stand where it should.
bool takeFollowers(Template &program, bool isPlaced) {
  for (auto &rows : program.ranks) {
    const std::vector<Row> all = std::exchange(rows, {});
    for (size_t at = 0; at != all.size(); ++at)
      if (!isFollower(all[at], program.head->kinds))
        rows.push_back(all[at]);
      else if (isPlaced && !standsRight(program, all, at))
        return false;
  }
  return true;
}

} // namespace
} // namespace ppcc::places

bool ppcc::stayPlaced(const Placed &placed) {
  try {
    // Messages are placed without them.
    proof::Template program = placed.program, bare = placed.bare;
    if (!places::takeFollowers(program, /*isPlaced=*/true) ||
        !places::takeFollowers(bare, /*isPlaced=*/false))
      return false;
    Placed rest{program,      bare,         placed.costs,
                placed.order, placed.first, placed.second};
    return places::Places(rest).areRight();
  } catch (const std::overflow_error &) {
    return false;
  }
}
