// Checks a template for all n at once: that all work is done once, that
// messages match, that no rank deadlocks, and the makespan.
//
// Algorithm: each wait is a Relation between two events, whose iterations are
// affine in n and j on a Domain. checkAcyclic checks a ranking function (Floyd
// 1967): numbers of events that grow by at least 1 along each wait. makespan
// uses the critical path method (Kelley and Walker 1959): times that satisfy
// all waits bound it from above; chains of waits without slack from the last
// end back to time 0 show that it is exact (duality of longest paths).
// Invariant: along a cycle the differences of the numbers would add up to 0,
// and to at least its length; so there is no cycle.
// Cost: a few comparisons for each piece of each wait's Domain, whatever n is.
// Example: F of microbatches j = 0..n on ranks r = 0 and 1, numbers of the
//   start 2 j + 2 r and of the end 2 j + 2 r + 1. They grow by 1 from start to
//   end, from end of j - 1 to start of j on a rank, and from end on rank 0 to
//   start on rank 1. Times j + r show the exact makespan n + 2.

#include "ppcc/Proof/Checker.h"
#include "Declared.h"

using namespace ppcc;
using namespace ppcc::proof;

namespace {

/// What a row does for a microbatch, for others to look for.
enum class Role : uint8_t { Produces, Sends, Receives };

/// How long: no time, that of the target, or that of what comes from another
/// rank.
enum class Wait : uint8_t { None, Own, Link };

/// The target is never before the source, and with times `wait` after it.
struct Relation {
  Event target,
      source; ///< The iteration of the source follows from the target's.
  Domain domain;
  Wait wait = Wait::None;
  uint32_t reader = 0; ///< Of Wait::Link: the row that reads,
  StageId from{};      ///< and what it reads from.
};

class Relations final : public Checker {
public:
  Relations(const Template &program, const Transport *transport)
      : program(program), head(*program.head), transport(transport),
        declared(program, transport != nullptr) {
    for (uint32_t rank = 0; rank != program.ranks.size(); ++rank)
      link(rank);
    for (auto &[lane, rows] : receives)
      rows.checkExactCover({0, rows.count()}, program.last);
    for (auto &[key, rows] : producers)
      if (Finding finding = rows.checkExactCover(
              program.pipes[key >> 32 & 0xFFFF], program.last);
          finding.kind == Finding::Kind::Fails) {
        const Sequence::Member &first = rows.all().front();
        workFinding = finding;
        workFinding.why =
            fmt::format("`{}` is there too {}", describe(first.rank, first.row),
                        finding.why);
        break;
      } else if (workFinding) {
        workFinding = finding;
      }
  }

  Finding checkComplete() const override {
    if (!misplaced.empty())
      return {Finding::Kind::Unknown, misplaced};
    size_t expected = 0;
    Finding missing;
    auto expect = [&](Role role, PipeId pipe, StageId stage, StageId peer,
                      uint8_t slotBit) {
      ++expected;
      if (!find(role, pipe, stage, peer, slotBit) && missing)
        missing = {
            role == Role::Produces ? Finding::Kind::Fails
                                   : Finding::Kind::Unknown,
            fmt::format("stage {} does not do all of its work", stage.value)};
    };
    uint8_t wanted = head.hasBackward ? 7 : unsigned(slot::Output);
    for (PipeId p : head.pipeIds())
      for (const Pipe &pipe = head.pipes[p.value];
           StageId stage : pipe.stages())
        for (uint8_t slotBit : slotsIn(wanted)) {
          expect(Role::Produces, p, stage, noStage, slotBit);
          if (transport)
            for (StageId reader : readersOf(pipe, stage, slotBit))
              if (isRemote(pipe, stage, reader))
                for (Role role : {Role::Sends, Role::Receives})
                  expect(role, p, stage, reader, slotBit);
        }
    for (const Finding &finding : {missing, workFinding})
      if (finding.kind == Finding::Kind::Fails)
        return finding;
    if (!missing || !workFinding)
      return missing ? workFinding : missing;
    if (expected != producers.size())
      return {Finding::Kind::Unknown, "some messages are not read"};
    return declared.checkComplete();
  }

  Finding checkMatching() const override {
    Finding finding;
    for (uint32_t rank = 0; rank != positions.size(); ++rank)
      for (uint32_t row = 0; row != program.ranks[rank].size(); ++row)
        if (infoOf(rank, row).isSend() &&
            !forEachMatchingMessage(
                rank, row, [&](Event recv, const Domain &domain) {
                  if (!isZero(positions[rank][row] -
                                  substitute(positions[recv.rank][recv.row],
                                             recv.iteration),
                              domain) &&
                      finding)
                    finding = {
                        Finding::Kind::Unknown,
                        "messages are sent and received in other orders"};
                }))
          return {Finding::Kind::Unknown, "messages advance in other steps"};
    return finding;
  }

  Finding checkAcyclic(const Times &order) const override {
    return all([&](const Relation &relation) {
      return isAtLeast(distance(order, relation), relation.domain, 1);
    });
  }

  std::optional<Makespan> makespan(const Times &times,
                                   const Costs &costs) const override {
    Timing timing{times, costs, rowDurationsOf(program, costs)};
    if (!timing.durations || !satisfiesWaits(timing))
      return std::nullopt;
    std::vector<std::pair<Affine, Event>> ends;
    forEachItem([&](uint32_t rank, uint32_t row) {
      Affine end = times.ranks[rank][row].end;
      ends.push_back({substitute(end, {}), {rank, row, true, {}}});
      if (hasIterations(rank, row))
        ends.push_back(
            {substitute(end, lastIteration), {rank, row, true, lastIteration}});
    });
    if (ends.empty())
      return std::nullopt;
    auto [value, last] = *llvm::max_element(ends, [](auto &a, auto &b) {
      return std::pair(a.first.n, a.first.c) < std::pair(b.first.n, b.first.c);
    });
    for (const auto &[end, event] : ends)
      if (!isAtLeast(value - end, {0, program.last, false, {}, {}}, 0))
        return std::nullopt;
    return Makespan{value, isTight({last}, timing)};
  }

  bool isEarliestRun(const Times &times, const Costs &costs) const override {
    Timing timing{times, costs, rowDurationsOf(program, costs)};
    std::vector<Event> ends;
    forEachItem([&](uint32_t rank, uint32_t row) {
      ends.push_back({rank, row, true, {}});
    });
    return timing.durations && satisfiesWaits(timing) &&
           isTight(std::move(ends), timing);
  }

  bool forEachInput(uint32_t rank, uint32_t row,
                    function_ref<void(const Event &, const Domain &, StageId)>
                        visit) const override {
    const Row &at = rowAt(rank, row);
    const Pipe &pipe = head.pipes[at.pipe.value];
    const KindInfo &info = infoOf(rank, row);
    bool known = true;
    auto read = [&](StageId source, uint8_t slotBit, int64_t moved = 0) {
      bool viaMessage = transport && isRemote(pipe, source, at.stage);
      known &= forEachProducer(
          rank, row,
          find(viaMessage ? Role::Receives : Role::Produces, at.pipe, source,
               viaMessage ? at.stage : noStage, slotBit),
          [&](const Event &event, const Domain &domain) {
            visit(event, domain, source);
          },
          moved);
    };
    for (uint8_t slotBit : slotsIn(info.needs))
      read(at.stage, slotBit);
    for (uint8_t slotBit : slotsIn(info.defines)) {
      for (StageId source : sourcesOf(pipe, at.stage, slotBit))
        read(source, slotBit);
      if (pipe.slices == 1 || !(slotBit & slot::crossStage))
        continue;
      Affine place = at.microbatch - program.pipes[at.pipe.value].first;
      if (place.n % pipe.slices != 0 || place.j % pipe.slices != 0)
        return false;
      int64_t slice = *floorMod(place.c, pipe.slices);
      bool isOutput = slotBit == slot::Output;
      if (slice != (isOutput ? 0 : pipe.slices - 1))
        read(at.stage, slotBit, isOutput ? -1 : 1);
    }
    return known;
  }

  bool forEachMatchingMessage(uint32_t rank, uint32_t row,
                              Visit visit) const override {
    const KindInfo &info = infoOf(rank, row);
    auto [from, to] = endpointsOf(rank, row);
    return forEachProducer(rank, row,
                           find(info.isSend() ? Role::Receives : Role::Sends,
                                rowAt(rank, row).pipe, from, to,
                                info.mainSlot()),
                           visit);
  }
  bool forEachSendProducer(uint32_t rank, uint32_t row,
                           Visit visit) const override {
    const Row &at = rowAt(rank, row);
    const Sequence *rows = find(Role::Produces, at.pipe, at.stage, noStage,
                                infoOf(rank, row).mainSlot());
    return rows && rows->find(at.microbatch, fullDomain(rank, row), visit);
  }

  bool isCycle(ArrayRef<Event> cycle, int64_t from) const override {
    Domain later{from, program.last, false, {}, {}};
    auto lies = [&](Affine iteration, Affine low, Affine high) {
      return isAtLeast(iteration - low, later, 0) &&
             isAtLeast(high - iteration, later, 0);
    };
    for (size_t i = 0; i != cycle.size(); ++i) {
      const Event &target = cycle[i], &source = cycle[(i + 1) % cycle.size()];
      if (hasIterations(target.rank, target.row) &&
          !lies(target.iteration, {}, lastIteration))
        return false;
      bool found = isQueuedAfter(target, source, later);
      forEachRelation(
          target.rank, itemOf(target), [&](const Relation &relation) {
            const Event &at = relation.source;
            const Domain &domain = relation.domain;
            found |= relation.target.isEnd == target.isEnd &&
                     at.rank == source.rank && at.row == itemOf(source) &&
                     at.isEnd == source.isEnd && domain.from <= from &&
                     domain.to >= program.last &&
                     (!domain.hasIterations ||
                      lies(target.iteration, domain.lo, domain.hi)) &&
                     (!hasIterations(source.rank, source.row) ||
                      isZero(substitute(at.iteration, target.iteration) -
                                 source.iteration,
                             later));
          });
      if (!found)
        return false;
    }
    return !cycle.empty();
  }

private:
  using Key = uint64_t;
  static constexpr StageId noStage{noPeer};

  const Row &rowAt(uint32_t rank, uint32_t row) const {
    return program.ranks[rank][row];
  }
  const KindInfo &infoOf(uint32_t rank, uint32_t row) const {
    return head.kinds[rowAt(rank, row).kind];
  }
  bool hasIterations(uint32_t rank, uint32_t row) const {
    return rowAt(rank, row).loop != noLoop;
  }
  std::string describe(uint32_t rank, uint32_t row) const {
    return fmt::format("{}{}", rowAt(rank, row).stage.value,
                       infoOf(rank, row).mnemonic);
  }
  uint32_t peerOf(const Row &row) const {
    return head.rankOfStage(row.pipe, row.peer).value;
  }
  static bool isRemote(const Pipe &pipe, StageId a, StageId b) {
    return pipe.rankOfStage[a.value] != pipe.rankOfStage[b.value];
  }
  uint32_t itemOf(const Event &event) const {
    uint32_t row = event.row;
    while (rowAt(event.rank, row).joined)
      --row;
    return row;
  }
  Domain fullDomain(uint32_t rank, uint32_t row) const {
    return proof::fullDomain(program, rowAt(rank, row));
  }
  template <class Visit> void forEachItem(Visit visit) const {
    for (uint32_t rank = 0; rank != program.ranks.size(); ++rank)
      for (uint32_t row = 0; row != program.ranks[rank].size(); ++row)
        if (!rowAt(rank, row).joined)
          visit(rank, row);
  }

  /// Whether the start of an action is after the end of another, which is
  /// before it in the same queue.
  bool isQueuedAfter(const Event &target, const Event &source,
                     const Domain &domain) const {
    if (target.rank != source.rank || target.isEnd || !source.isEnd ||
        queueOf(target.rank, target.row) != queueOf(source.rank, source.row))
      return false;
    uint32_t after = itemOf(target), before = itemOf(source);
    uint32_t loop = rowAt(target.rank, after).loop;
    if (loop == noLoop || rowAt(source.rank, before).loop != loop)
      return before < after;
    return isAtLeast(target.iteration - source.iteration, domain,
                     before < after ? 0 : 1);
  }

  // ---- Who does what ----

  static Key keyOf(Role role, PipeId pipe, StageId stage, StageId peer,
                   uint8_t slotBit) {
    return Key(role) << 56 | Key(slotBit) << 48 | Key(pipe.value) << 32 |
           stage.value << 16 | peer.value;
  }
  const Sequence *find(Role role, PipeId pipe, StageId stage, StageId peer,
                       uint8_t slotBit) const {
    auto found = producers.find(keyOf(role, pipe, stage, peer, slotBit));
    return found == producers.end() ? nullptr : &found->second;
  }
  /// The stages of a message, from where it comes on.
  std::pair<StageId, StageId> endpointsOf(uint32_t rank, uint32_t row) const {
    const Row &at = rowAt(rank, row);
    return infoOf(rank, row).isSend() ? std::pair(at.stage, at.peer)
                                      : std::pair(at.peer, at.stage);
  }

  /// Notes what a rank does, and what stands before what in its queues.
  void link(uint32_t rank) {
    const auto &rows = program.ranks[rank];
    auto &list = before.emplace_back();
    auto &ends = beforeEnds.emplace_back(rows.size());
    forEachPredecessor(
        program, rows,
        [&](uint32_t row) {
          return rows[row].joined ? std::nullopt
                                  : std::optional(queueOf(rank, row));
        },
        [&](uint32_t row) {
          SmallVector<uint32_t, 2> queues;
          if (!rows[row].joined)
            queues.push_back(queueOf(rank, row));
          if (!rows[row].joined && queues[0] != 0)
            queues.push_back(0);
          return queues;
        },
        [&](uint32_t row, uint32_t last, Affine iteration,
            const Domain &domain) {
          list.push_back({{rank, row, false, thisIteration},
                          {rank, last, true, iteration},
                          domain});
          ends[row] = list.size();
        });
    for (uint32_t row = 1; row < rows.size(); ++row)
      ends[row] = std::max(ends[row], ends[row - 1]);
    for (uint32_t row = 0; row != rows.size(); ++row)
      note(rank, row);
    if (!transport)
      return;
    using Lane = std::pair<uint32_t, bool>; // The other rank, and the way.
    positions.push_back(ordinalsOf(rows, [&](uint32_t row) {
      const KindInfo &info = infoOf(rank, row);
      return info.isCompute()
                 ? std::nullopt
                 : std::optional(Lane{peerOf(rows[row]), info.isSend()});
    }));
    for (uint32_t row = 0; row != rows.size(); ++row)
      if (infoOf(rank, row).isRecv())
        receives[{peerOf(rows[row]), rank}].add(
            {rank, row, positions[rank][row], hasIterations(rank, row)});
  }

  void note(uint32_t rank, uint32_t row) {
    const Row &at = rowAt(rank, row);
    const KindInfo &info = infoOf(rank, row);
    auto inGroup = [](const KindInfo &info) {
      return info.occupiesRank() && !info.isCollective();
    };
    if (head.rankOfStage(at.pipe, at.stage).value != rank)
      misplaced = "an action is on a rank that does not host its stage";
    else if (at.joined && (!inGroup(info) || row == 0 ||
                           rowAt(rank, row - 1).loop != at.loop ||
                           !inGroup(infoOf(rank, row - 1))))
      misplaced = "a group has an action that is not a compute action";
    else if (!info.isCompute() && !transport)
      misplaced = "there are messages";
    auto endpoints = info.isCompute() ? std::pair(at.stage, noStage)
                                      : endpointsOf(rank, row);
    Role role = info.isCompute() ? Role::Produces
                : info.isSend()  ? Role::Sends
                                 : Role::Receives;
    for (uint8_t slotBit : slotsIn(info.defines))
      producers[keyOf(role, at.pipe, endpoints.first, endpoints.second,
                      slotBit)]
          .add({rank, row, at.microbatch, at.loop != noLoop});
  }

  /// The queue of a row on its rank; 0 is that of the compute actions.
  uint32_t queueOf(uint32_t rank, uint32_t row) const {
    const KindInfo &info = infoOf(rank, row);
    uint32_t peers = program.ranks.size();
    QueueLayout layout =
        transport ? transport->layout : QueueLayout::StreamPerEdge;
    bool oneOfMessages =
        layout == QueueLayout::One || layout == QueueLayout::Stream;
    if (info.isAsync() && !(info.lane == lane::Comm && oneOfMessages))
      return 1 + 2 * peers + info.lane;
    if (info.occupiesRank() || layout == QueueLayout::One)
      return 0;
    if (layout == QueueLayout::Stream)
      return 1;
    uint32_t peer = peerOf(rowAt(rank, row));
    return layout == QueueLayout::StreamPerPeer ? 1 + peer
                                                : 1 + 2 * peer + info.isRecv();
  }

  /// Calls `visit(event, domain)` for the ends of rows that do the microbatch
  /// of a row, moved by some, in the iterations in which they do. False where
  /// that is not known.
  template <class Visit>
  bool forEachProducer(uint32_t rank, uint32_t row, const Sequence *rows,
                       Visit visit, int64_t moved = 0) const {
    return rows && rows->find(rowAt(rank, row).microbatch + moved,
                              fullDomain(rank, row),
                              [&](Event event, const Domain &domain) {
                                event.row = itemOf(event);
                                visit(event, domain);
                              });
  }

  // ---- Who waits for whom ----

  /// Whether both ends of a message end together.
  bool isCollective(const KindInfo &info) const {
    return !info.isCompute() && transport &&
           transport->sendWait == SendWait::Receive;
  }

  /// Calls `visit` for what the start of an item waits for on its rank, and for
  /// the start, which its end waits for.
  template <class Visit>
  void forEachOwnRelation(uint32_t rank, uint32_t item, Visit visit) const {
    for (uint32_t i = item == 0 ? 0 : beforeEnds[rank][item - 1];
         i != beforeEnds[rank][item]; ++i)
      visit(before[rank][i]);
    const KindInfo &info = infoOf(rank, item);
    visit(Relation{{rank, item, true, thisIteration},
                   {rank, item, false, thisIteration},
                   fullDomain(rank, item),
                   isCollective(info) || info.isCompute() ? Wait::Own
                                                          : Wait::None});
  }

  /// Calls `visit` for all that the start and the end of an item wait for.
  /// False where some of it is not known.
  template <class Visit>
  bool forEachRelation(uint32_t rank, uint32_t item, Visit visit) const {
    forEachOwnRelation(rank, item, visit);
    return forEachOtherRelation(rank, item, visit);
  }

  template <class Visit>
  bool forEachOtherRelation(uint32_t rank, uint32_t item, Visit visit) const {
    const auto &rows = program.ranks[rank];
    const KindInfo &info = infoOf(rank, item);
    Event start{rank, item, false, thisIteration},
        end{rank, item, true, thisIteration};
    if (!info.isCompute() && !transport)
      return false;
    bool known = true;
    auto dependsOn = [&](const Event &target, Wait wait) {
      return [&visit, target, wait](const Event &source, const Domain &domain) {
        visit(Relation{target, source, domain, wait});
      };
    };
    uint32_t row = item;
    do {
      auto whenReady = dependsOn(start, Wait::None);
      known &= declared.forEachRuleDependence(
          rank, row, [&](Event source, const Domain &domain) {
            source.row = itemOf(source);
            whenReady(source, domain);
          });
      if (info.isCompute())
        known &= forEachInput(
            rank, row,
            [&](const Event &source, const Domain &domain, StageId from) {
              bool isNear = transport || source.rank == rank;
              visit(Relation{start, source, domain,
                             isNear ? Wait::None : Wait::Link, row, from});
            });
    } while (++row != rows.size() && rows[row].joined);
    if (info.isCollective())
      known &=
          declared.forEachCollectivePeer(rank, item, dependsOn(end, Wait::Own));
    if (info.isCompute())
      return known;
    const Row &at = rows[item];
    if (info.isSend())
      known &= forEachProducer(
          rank, item,
          find(Role::Produces, at.pipe, at.stage, noStage, info.mainSlot()),
          dependsOn(start, Wait::None));
    if (isCollective(info) || info.isRecv())
      known &= forEachMatchingMessage(
          rank, item, [&](Event other, const Domain &domain) {
            other.isEnd = !isCollective(info);
            dependsOn(end, Wait::Own)(other, domain);
          });
    // A receive makes room, `capacity` messages earlier on the lane.
    auto lane = receives.find({rank, peerOf(at)});
    if (info.isSend() && transport->sendWait == SendWait::Capacity &&
        lane != receives.end())
      known &=
          lane->second.find(positions[rank][item] - transport->capacity,
                            fullDomain(rank, item), dependsOn(end, Wait::None));
    return known;
  }

  // ---- What follows ----

  static Affine distance(const Times &times, const Relation &relation) {
    auto of = [&](const Event &event) {
      const Times::OfRow &row = times.ranks[event.rank][event.row];
      return event.isEnd ? row.end : row.start;
    };
    return of(relation.target) -
           substitute(of(relation.source), relation.source.iteration);
  }

  /// When events are, and what they take.
  struct Timing {
    const Times &times;
    const Costs &costs;
    std::optional<RowDurations> durations;
  };

  /// How much later an event is than what it waits for lets it be.
  Affine slack(const Timing &timing, const Relation &relation) const {
    const auto &[to, source, domain, wait, reader, from] = relation;
    Affine left = distance(timing.times, relation);
    if (wait == Wait::Own)
      left = left - (*timing.durations)[to.rank][to.row];
    if (wait == Wait::Link) {
      const Row &row = rowAt(to.rank, reader);
      left = left - timeOf(timing.costs, row.pipe, from, row.stage);
    }
    return left;
  }

  /// Whether nothing starts before 0, or before what it waits for.
  bool satisfiesWaits(const Timing &timing) const {
    bool isNonNegative = true;
    forEachItem([&](uint32_t rank, uint32_t row) {
      isNonNegative &= isAtLeast(timing.times.ranks[rank][row].start,
                                 fullDomain(rank, row), 0);
    });
    return isNonNegative && all([&](const Relation &relation) {
             return isAtLeast(slack(timing, relation), relation.domain, 0);
           });
  }

  template <class Holds> Finding all(Holds holds) const {
    Finding finding;
    forEachItem([&](uint32_t rank, uint32_t row) {
      if (!finding)
        return;
      bool known = forEachRelation(rank, row, [&](const Relation &relation) {
        if (finding && !holds(relation))
          finding = {
              Finding::Kind::Unknown,
              fmt::format(
                  "no order of rank {} was found in which `{}` is after `{}`",
                  rank, describe(rank, row),
                  describe(relation.source.rank, relation.source.row))};
      });
      if (!known && finding)
        finding = {Finding::Kind::Unknown,
                   fmt::format("the action that `{}` of rank {} waits for "
                               "advances by other steps",
                               describe(rank, row), rank)};
    });
    return finding;
  }

  /// Whether something lets each event that leads to these come no sooner: a
  /// relation that has no slack.
  bool isTight(std::vector<Event> open, const Timing &timing) const {
    std::vector<std::vector<char>> seen; // By rank and event.
    for (const auto &rows : program.ranks)
      seen.emplace_back(2 * rows.size());
    while (!open.empty()) {
      Event event = open.back();
      open.pop_back();
      if (std::exchange(seen[event.rank][2 * event.row + event.isEnd], 1))
        continue;
      Domain whole = fullDomain(event.rank, event.row);
      if (!event.isEnd &&
          isZero(timing.times.ranks[event.rank][event.row].start, whole))
        continue;
      std::vector<Domain> pieces;
      auto add = [&](const Relation &relation) {
        if (relation.target.isEnd == event.isEnd &&
            isZero(slack(timing, relation), relation.domain)) {
          pieces.push_back(relation.domain);
          open.push_back(relation.source);
        }
      };
      forEachOwnRelation(event.rank, event.row, add);
      if (covers(pieces, whole)) // Most are.
        continue;
      forEachOtherRelation(event.rank, event.row, add);
      if (!covers(pieces, whole))
        return false;
    }
    return true;
  }

  const Template &program;
  const Topology &head;
  const Transport *transport;
  Declared declared;
  std::vector<std::vector<Relation>> before;     ///< By rank, those of each row
  std::vector<std::vector<uint32_t>> beforeEnds; ///< up to here.
  std::map<Key, Sequence> producers;             ///< What plays which role.
  std::vector<std::vector<Affine>> positions;    ///< On lanes, by rank and row.
  std::map<std::pair<uint32_t, uint32_t>, Sequence> receives; ///< By lane.
  std::string misplaced; ///< What is wrong with the template,
  Finding workFinding;   ///< and with its work.
};

} // namespace

std::unique_ptr<const Checker> Checker::of(const Template &program,
                                           const Transport *transport) {
  return std::make_unique<Relations>(program, transport);
}
