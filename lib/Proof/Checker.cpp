// The relations between the events of a template, and what follows from them.
#include "ppcc/Proof/Checker.h"

#include "Declared.h"

using namespace ppcc;
using namespace ppcc::proof;

namespace {

/// What a row does for a microbatch, for others to look for.
enum class Role : uint8_t { Makes, Sends, Receives };

/// How long: no time, that of the target, or that of what comes from another
/// rank.
enum class Wait : uint8_t { None, Own, Link };

/// The target is never before the source, and with times `wait` behind it.
struct Relation {
  Event target, source; ///< The turn of the source follows from the target's.
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
      rows.fill({0, rows.count()}, program.last);
    for (auto &[key, rows] : made)
      if (Finding finding =
              rows.fill(program.pipes[key >> 32 & 0xFFFF], program.last);
          finding.kind == Finding::Kind::Fails) {
        const Sequence::Member &first = rows.all().front();
        shortage = finding;
        shortage.why =
            fmt::format("`{}` is there too {}", describe(first.rank, first.row),
                        finding.why);
        break;
      } else if (shortage) {
        shortage = finding;
      }
  }

  Finding complete() const override {
    if (!misplaced.empty())
      return {Finding::Kind::Unknown, misplaced};
    size_t expected = 0;
    Finding missing;
    auto expect = [&](Role role, PipeId pipe, StageId stage, StageId peer,
                      uint8_t slotBit) {
      ++expected;
      if (!find(role, pipe, stage, peer, slotBit) && missing)
        missing = {
            role == Role::Makes ? Finding::Kind::Fails : Finding::Kind::Unknown,
            fmt::format("stage {} does not do all of its work", stage.value)};
    };
    uint8_t wanted = head.hasBackward ? 7 : unsigned(slot::Output);
    for (PipeId p : head.pipeIds())
      for (const Pipe &pipe = head.pipes[p.value];
           StageId stage : pipe.stages())
        for (uint8_t slotBit : slotsIn(wanted)) {
          expect(Role::Makes, p, stage, nobody, slotBit);
          if (transport)
            for (StageId reader : readersOf(pipe, stage, slotBit))
              if (isRemote(pipe, stage, reader))
                for (Role role : {Role::Sends, Role::Receives})
                  expect(role, p, stage, reader, slotBit);
        }
    for (const Finding &finding : {missing, shortage})
      if (finding.kind == Finding::Kind::Fails)
        return finding;
    if (!missing || !shortage)
      return missing ? shortage : missing;
    if (expected != made.size())
      return {Finding::Kind::Unknown, "there are messages that nobody reads"};
    return declared.complete();
  }

  Finding matched() const override {
    Finding finding;
    for (uint32_t rank = 0; rank != positions.size(); ++rank)
      for (uint32_t row = 0; row != program.ranks[rank].size(); ++row)
        if (infoOf(rank, row).isSend() &&
            !partnersOf(rank, row, [&](Event recv, const Domain &domain) {
              if (!isZero(
                      positions[rank][row] -
                          substitute(positions[recv.rank][recv.row], recv.turn),
                      domain) &&
                  finding)
                finding = {Finding::Kind::Unknown,
                           "messages are sent and received in other orders"};
            }))
          return {Finding::Kind::Unknown, "messages advance in other steps"};
    return finding;
  }

  Finding forward(const Times &order) const override {
    return all([&](const Relation &relation) {
      return atLeast(distance(order, relation), relation.domain, 1);
    });
  }

  std::optional<Makespan> makespan(const Times &times,
                                   const Costs &costs) const override {
    Timing timing{times, costs, timesOf(program, costs)};
    if (!timing.taken || !respects(timing))
      return std::nullopt;
    std::vector<std::pair<Affine, Event>> ends;
    forEachItem([&](uint32_t rank, uint32_t row) {
      Affine end = times.ranks[rank][row].end;
      ends.push_back({substitute(end, {}), {rank, row, true, {}}});
      if (hasTurns(rank, row))
        ends.push_back(
            {substitute(end, lastTurn), {rank, row, true, lastTurn}});
    });
    if (ends.empty())
      return std::nullopt;
    auto [value, last] = *llvm::max_element(ends, [](auto &a, auto &b) {
      return std::pair(a.first.n, a.first.c) < std::pair(b.first.n, b.first.c);
    });
    for (const auto &[end, event] : ends)
      if (!atLeast(value - end, {0, program.last, false, {}, {}}, 0))
        return std::nullopt;
    return Makespan{value, isTight({last}, timing)};
  }

  bool isRun(const Times &times, const Costs &costs) const override {
    Timing timing{times, costs, timesOf(program, costs)};
    std::vector<Event> ends;
    forEachItem([&](uint32_t rank, uint32_t row) {
      ends.push_back({rank, row, true, {}});
    });
    return timing.taken && respects(timing) && isTight(std::move(ends), timing);
  }

  bool forEachInput(uint32_t rank, uint32_t row,
                    function_ref<void(const Event &, const Domain &, StageId)>
                        visit) const override {
    return readsOf(rank, row, visit);
  }
  bool forEachMaker(uint32_t rank, uint32_t row, Visit visit) const override {
    const Row &at = rowAt(rank, row);
    const Sequence *rows = find(Role::Makes, at.pipe, at.stage, nobody,
                                infoOf(rank, row).mainSlot());
    return rows && rows->find(at.microbatch, wholeOf(rank, row), visit);
  }
  bool forEachPartner(uint32_t rank, uint32_t row, Visit visit) const override {
    return partnersOf(rank, row, visit);
  }

  bool isCircle(ArrayRef<Event> circle, int64_t from) const override {
    Domain later{from, program.last, false, {}, {}};
    auto lies = [&](Affine turn, Affine low, Affine high) {
      return atLeast(turn - low, later, 0) && atLeast(high - turn, later, 0);
    };
    for (size_t i = 0; i != circle.size(); ++i) {
      const Event &target = circle[i],
                  &source = circle[(i + 1) % circle.size()];
      if (hasTurns(target.rank, target.row) && !lies(target.turn, {}, lastTurn))
        return false;
      bool found = isBehind(target, source, later);
      forEachRelation(
          target.rank, itemOf(target), [&](const Relation &relation) {
            const Event &at = relation.source;
            const Domain &domain = relation.domain;
            found |=
                relation.target.isEnd == target.isEnd &&
                at.rank == source.rank && at.row == itemOf(source) &&
                at.isEnd == source.isEnd && domain.from <= from &&
                domain.to >= program.last &&
                (!domain.hasTurns || lies(target.turn, domain.lo, domain.hi)) &&
                (!hasTurns(source.rank, source.row) ||
                 isZero(substitute(at.turn, target.turn) - source.turn, later));
          });
      if (!found)
        return false;
    }
    return !circle.empty();
  }

private:
  using Key = uint64_t;
  static constexpr StageId nobody{noPeer};

  const Row &rowAt(uint32_t rank, uint32_t row) const {
    return program.ranks[rank][row];
  }
  const KindInfo &infoOf(uint32_t rank, uint32_t row) const {
    return head.kinds[rowAt(rank, row).kind];
  }
  bool hasTurns(uint32_t rank, uint32_t row) const {
    return rowAt(rank, row).window != noWindow;
  }
  std::string describe(uint32_t rank, uint32_t row) const {
    return fmt::format("{}{}", rowAt(rank, row).stage.value,
                       infoOf(rank, row).letters);
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
  Domain wholeOf(uint32_t rank, uint32_t row) const {
    return proof::wholeOf(program, rowAt(rank, row));
  }
  template <class Visit> void forEachItem(Visit visit) const {
    for (uint32_t rank = 0; rank != program.ranks.size(); ++rank)
      for (uint32_t row = 0; row != program.ranks[rank].size(); ++row)
        if (!rowAt(rank, row).joined)
          visit(rank, row);
  }

  /// Whether the start of an action is behind the end of another, which is
  /// before it in the same queue.
  bool isBehind(const Event &target, const Event &source,
                const Domain &domain) const {
    if (target.rank != source.rank || target.isEnd || !source.isEnd ||
        queueOf(target.rank, target.row) != queueOf(source.rank, source.row))
      return false;
    uint32_t after = itemOf(target), before = itemOf(source);
    uint32_t window = rowAt(target.rank, after).window;
    if (window == noWindow || rowAt(source.rank, before).window != window)
      return before < after;
    return atLeast(target.turn - source.turn, domain, before < after ? 0 : 1);
  }

  // ---- Who does what ----

  static Key keyOf(Role role, PipeId pipe, StageId stage, StageId peer,
                   uint8_t slotBit) {
    return Key(role) << 56 | Key(slotBit) << 48 | Key(pipe.value) << 32 |
           stage.value << 16 | peer.value;
  }
  const Sequence *find(Role role, PipeId pipe, StageId stage, StageId peer,
                       uint8_t slotBit) const {
    auto found = made.find(keyOf(role, pipe, stage, peer, slotBit));
    return found == made.end() ? nullptr : &found->second;
  }
  /// The stages of a message, from where it comes on.
  std::pair<StageId, StageId> wayOf(uint32_t rank, uint32_t row) const {
    const Row &at = rowAt(rank, row);
    return infoOf(rank, row).isSend() ? std::pair(at.stage, at.peer)
                                      : std::pair(at.peer, at.stage);
  }

  /// Notes what a rank does, and what stands before what in its queues.
  void link(uint32_t rank) {
    const auto &rows = program.ranks[rank];
    before.emplace_back(rows.size());
    forEachLast(
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
        [&](uint32_t row, uint32_t last, Affine turn, const Domain &domain) {
          before[rank][row].push_back(
              {{rank, row, false, ownTurn}, {rank, last, true, turn}, domain});
        });
    for (uint32_t row = 0; row != rows.size(); ++row)
      note(rank, row);
    if (!transport)
      return;
    using Lane = std::pair<uint32_t, bool>; // The other rank, and the way.
    positions.push_back(placesOf(rows, [&](uint32_t row) {
      const KindInfo &info = infoOf(rank, row);
      return info.isCompute()
                 ? std::nullopt
                 : std::optional(Lane{peerOf(rows[row]), info.isSend()});
    }));
    for (uint32_t row = 0; row != rows.size(); ++row)
      if (infoOf(rank, row).isRecv())
        receives[{peerOf(rows[row]), rank}].add(
            {rank, row, positions[rank][row], hasTurns(rank, row)});
  }

  void note(uint32_t rank, uint32_t row) {
    const Row &at = rowAt(rank, row);
    const KindInfo &info = infoOf(rank, row);
    auto inGroup = [](const KindInfo &info) {
      return info.occupiesRank() && !info.meets();
    };
    if (head.rankOfStage(at.pipe, at.stage).value != rank)
      misplaced = "a row stands on a rank that does not host its stage";
    else if (at.joined && (!inGroup(info) || row == 0 ||
                           rowAt(rank, row - 1).window != at.window ||
                           !inGroup(infoOf(rank, row - 1))))
      misplaced = "a group holds more than compute actions";
    else if (!info.isCompute() && !transport)
      misplaced = "there are messages";
    auto way =
        info.isCompute() ? std::pair(at.stage, nobody) : wayOf(rank, row);
    Role role = info.isCompute() ? Role::Makes
                : info.isSend()  ? Role::Sends
                                 : Role::Receives;
    for (uint8_t slotBit : slotsIn(info.defines))
      made[keyOf(role, at.pipe, way.first, way.second, slotBit)].add(
          {rank, row, at.microbatch, at.window != noWindow});
  }

  /// The queue of a row on its rank; 0 is that of the compute actions.
  uint32_t queueOf(uint32_t rank, uint32_t row) const {
    const KindInfo &info = infoOf(rank, row);
    uint32_t peers = program.ranks.size();
    QueueLayout layout =
        transport ? transport->layout : QueueLayout::StreamPerEdge;
    bool oneOfMessages =
        layout == QueueLayout::One || layout == QueueLayout::Stream;
    if (info.isBeside() && !(info.lane == lane::Comm && oneOfMessages))
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
  /// of a row, moved by some, in the turns in which they do. False where that
  /// is not known.
  template <class Visit>
  bool solve(uint32_t rank, uint32_t row, const Sequence *rows, Visit visit,
             int64_t moved = 0) const {
    return rows &&
           rows->find(rowAt(rank, row).microbatch + moved, wholeOf(rank, row),
                      [&](Event event, const Domain &domain) {
                        event.row = itemOf(event);
                        visit(event, domain);
                      });
  }

  /// The same for the other end of a message.
  template <class Visit>
  bool partnersOf(uint32_t rank, uint32_t row, Visit visit) const {
    const KindInfo &info = infoOf(rank, row);
    auto [from, to] = wayOf(rank, row);
    return solve(rank, row,
                 find(info.isSend() ? Role::Receives : Role::Sends,
                      rowAt(rank, row).pipe, from, to, info.mainSlot()),
                 visit);
  }

  // ---- Who waits for whom ----

  /// Calls `visit` for all that the start and the end of an item wait for.
  /// False where some of it is not known.
  template <class Visit>
  bool forEachRelation(uint32_t rank, uint32_t item, Visit visit) const {
    const auto &rows = program.ranks[rank];
    const KindInfo &info = infoOf(rank, item);
    Event start{rank, item, false, ownTurn}, end{rank, item, true, ownTurn};
    for (const Relation &relation : before[rank][item])
      visit(relation);
    if (!info.isCompute() && !transport)
      return false;
    bool known = true;
    auto await = [&](const Event &target, Wait wait) {
      return [&visit, target, wait](const Event &source, const Domain &domain) {
        visit(Relation{target, source, domain, wait});
      };
    };
    bool meets = !info.isCompute() && transport->sendWait == SendWait::Receive;
    await(end, meets || info.isCompute() ? Wait::Own : Wait::None)(
        start, wholeOf(rank, item));
    uint32_t row = item;
    do {
      auto whenReady = await(start, Wait::None);
      known &= declared.forEachNeed(rank, row,
                                    [&](Event source, const Domain &domain) {
                                      source.row = itemOf(source);
                                      whenReady(source, domain);
                                    });
      if (info.isCompute())
        known &= readsOf(
            rank, row,
            [&](const Event &source, const Domain &domain, StageId from) {
              bool isNear = transport || source.rank == rank;
              visit(Relation{start, source, domain,
                             isNear ? Wait::None : Wait::Link, row, from});
            });
    } while (++row != rows.size() && rows[row].joined);
    if (info.meets())
      known &= declared.forEachMember(rank, item, await(end, Wait::Own));
    if (info.isCompute())
      return known;
    const Row &at = rows[item];
    if (info.isSend())
      known &=
          solve(rank, item,
                find(Role::Makes, at.pipe, at.stage, nobody, info.mainSlot()),
                await(start, Wait::None));
    if (meets || info.isRecv())
      known &= partnersOf(rank, item, [&](Event other, const Domain &domain) {
        other.isEnd = !meets;
        await(end, Wait::Own)(other, domain);
      });
    // A receive makes room, `capacity` messages earlier on the lane.
    auto lane = receives.find({rank, peerOf(at)});
    if (info.isSend() && transport->sendWait == SendWait::Capacity &&
        lane != receives.end())
      known &= lane->second.find(positions[rank][item] - transport->capacity,
                                 wholeOf(rank, item), await(end, Wait::None));
    return known;
  }

  /// Calls `visit(event, domain, stage)` for all that a compute action reads.
  template <class Visit>
  bool readsOf(uint32_t rank, uint32_t row, Visit visit) const {
    const Row &at = rowAt(rank, row);
    const Pipe &pipe = head.pipes[at.pipe.value];
    const KindInfo &info = infoOf(rank, row);
    bool known = true;
    auto read = [&](StageId source, uint8_t slotBit, int64_t moved = 0) {
      bool viaMessage = transport && isRemote(pipe, source, at.stage);
      known &= solve(
          rank, row,
          find(viaMessage ? Role::Receives : Role::Makes, at.pipe, source,
               viaMessage ? at.stage : nobody, slotBit),
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
      if (pipe.slices == 1 || !(slotBit & slot::moving))
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

  // ---- What follows ----

  static Affine distance(const Times &times, const Relation &relation) {
    auto of = [&](const Event &event) {
      const Times::OfRow &row = times.ranks[event.rank][event.row];
      return event.isEnd ? row.end : row.start;
    };
    return of(relation.target) -
           substitute(of(relation.source), relation.source.turn);
  }

  /// When events are, and what they take.
  struct Timing {
    const Times &times;
    const Costs &costs;
    std::optional<RowDurations> taken;
  };

  /// How much later an event is than what it waits for lets it be.
  Affine slack(const Timing &timing, const Relation &relation) const {
    const auto &[to, source, domain, wait, reader, from] = relation;
    Affine left = distance(timing.times, relation);
    if (wait == Wait::Own)
      left = left - (*timing.taken)[to.rank][to.row];
    if (wait == Wait::Link) {
      const Row &row = rowAt(to.rank, reader);
      left = left - timeOf(timing.costs, row.pipe, from, row.stage);
    }
    return left;
  }

  /// Whether nothing starts before 0, or before what it waits for.
  bool respects(const Timing &timing) const {
    bool isNatural = true;
    forEachItem([&](uint32_t rank, uint32_t row) {
      isNatural &=
          atLeast(timing.times.ranks[rank][row].start, wholeOf(rank, row), 0);
    });
    return isNatural && all([&](const Relation &relation) {
             return atLeast(slack(timing, relation), relation.domain, 0);
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
                  "no order of rank {} was found in which `{}` stands behind "
                  "`{}`",
                  rank, describe(rank, row),
                  describe(relation.source.rank, relation.source.row))};
      });
      if (!known && finding)
        finding = {Finding::Kind::Unknown,
                   fmt::format(
                       "what `{}` of rank {} waits for advances in other steps",
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
      Domain whole = wholeOf(event.rank, event.row);
      if (!event.isEnd &&
          isZero(timing.times.ranks[event.rank][event.row].start, whole))
        continue;
      std::vector<Domain> pieces;
      forEachRelation(event.rank, event.row, [&](const Relation &relation) {
        if (relation.target.isEnd == event.isEnd &&
            isZero(slack(timing, relation), relation.domain)) {
          pieces.push_back(relation.domain);
          open.push_back(relation.source);
        }
      });
      if (!covers(pieces, whole))
        return false;
    }
    return true;
  }

  const Template &program;
  const Topology &head;
  const Transport *transport;
  Declared declared;
  std::vector<std::vector<std::vector<Relation>>> before; ///< By rank and row.
  std::map<Key, Sequence> made;               ///< What plays which role.
  std::vector<std::vector<Affine>> positions; ///< On lanes, by rank and row.
  std::map<std::pair<uint32_t, uint32_t>, Sequence> receives; ///< By lane.
  std::string misplaced; ///< What is wrong with the template,
  Finding shortage;      ///< and with its work.
};

} // namespace

std::unique_ptr<const Checker> Checker::of(const Template &program,
                                           const Transport *transport) {
  return std::make_unique<Relations>(program, transport);
}
