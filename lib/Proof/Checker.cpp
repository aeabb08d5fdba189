// The relations between the events of a template, and what follows from them.
#include "ppcc/Proof/Checker.h"

#include "Domain.h"

#include "ppcc/Support/CheckedInt.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

#include <fmt/format.h>

#include <map>
#include <numeric>
#include <set>

using namespace ppcc;
using namespace ppcc::proof;
using llvm::ArrayRef;

namespace {

/// What a row does for a microbatch, for others to look for.
enum class Role : uint8_t { Makes, Sends, Receives };

/// The rows that play one role, by the remainder of their microbatches, in the
/// order of these.
struct Chain {
  struct Link {
    uint32_t rank, row;
    Affine lo, hi; ///< Microbatches; all that are `stride` apart.
  };
  std::vector<Link> links;
  int64_t stride = 0; ///< 0 where it is not clear.
  std::vector<std::vector<Link>> byRemainder;
  Finding finding;
};

enum class Wait : uint8_t { None, Own, Message };

/// The target is never before the source, and with times `wait` behind it.
struct Relation {
  Event target, source; ///< The turn of the source follows from the target's.
  Domain domain;
  Wait wait;
};

std::string describe(const Template &program, const Row &row) {
  return fmt::format("{}{}", row.stage.value,
                     program.head->kinds[row.kind].letters);
}

} // namespace

class Checker::Impl {
public:
  Impl(const Template &program, const Transport *transport)
      : program(program), head(*program.head), transport(transport) {
    for (uint32_t rank = 0; rank != program.ranks.size(); ++rank)
      link(rank);
    if (transport)
      for (uint32_t rank = 0; rank != program.ranks.size(); ++rank)
        positions.push_back(positionsOf(rank));
    for (auto &[key, chain] : chains)
      arrange(key, chain);
  }

  Finding complete() const {
    if (!misplaced.empty())
      return {Finding::Kind::Unknown, misplaced};
    size_t expected = 0;
    Finding unknown;
    auto expect = [&](Role role, uint32_t pipe, StageId stage, StageId peer,
                      uint8_t slotBit) -> std::optional<Finding> {
      ++expected;
      const Chain *chain = find(role, PipeId(pipe), stage, peer, slotBit);
      if (!chain)
        return Finding{
            role == Role::Makes ? Finding::Kind::Fails : Finding::Kind::Unknown,
            fmt::format("stage {} does not do all of its work", stage.value)};
      if (chain->finding.kind == Finding::Kind::Fails)
        return chain->finding;
      if (!chain->finding)
        unknown = chain->finding;
      return std::nullopt;
    };
    uint8_t wanted = head.hasBackward ? 7 : unsigned(slot::Output);
    for (uint32_t pipe = 0; pipe != head.pipes.size(); ++pipe)
      for (StageId stage : head.pipes[pipe].stages())
        for (uint8_t slotBit : slotsIn(wanted)) {
          if (auto bad = expect(Role::Makes, pipe, stage,
                                StageId(Action::noPeer), slotBit))
            return *bad;
          if (!transport)
            continue;
          for (StageId reader : readersOf(head.pipes[pipe], stage, slotBit))
            if (isRemote(head.pipes[pipe], stage, reader))
              for (Role role : {Role::Sends, Role::Receives})
                if (auto bad = expect(role, pipe, stage, reader, slotBit))
                  return *bad;
        }
    if (!unknown)
      return unknown;
    if (expected != chains.size())
      return {Finding::Kind::Unknown, "there are messages that nobody reads"};
    return {};
  }

  Finding matched() const {
    Finding finding;
    for (uint32_t rank = 0; rank != positions.size(); ++rank)
      for (uint32_t row = 0; row != program.ranks[rank].size(); ++row) {
        if (!infoOf(rank, row).isSend())
          continue;
        bool known = forEachPartner(rank, row, [&](Event recv, Domain domain) {
          if (!isZero(positions[rank][row] -
                          substitute(positions[recv.rank][recv.row], recv.turn),
                      domain) &&
              finding)
            finding = {Finding::Kind::Unknown,
                       "messages are sent and received in other orders"};
        });
        if (!known)
          return {Finding::Kind::Unknown, "messages advance in other steps"};
      }
    return finding;
  }

  Finding forward(const Times &order) const {
    return all([&](const Relation &relation) {
      return atLeast(distance(order, relation), relation.domain, 1);
    });
  }

  std::optional<Makespan>
  makespan(const Times &times,
           const std::vector<std::vector<Time>> &durations) const {
    auto slack = [&](const Relation &relation) {
      uint32_t row = relation.wait == Wait::None ? 0 : relation.target.row;
      Time wait = relation.wait == Wait::None
                      ? 0
                      : durations[relation.target.rank][row];
      return distance(times, relation) - Affine{wait, 0, 0};
    };
    if (!all([&](const Relation &relation) {
          return atLeast(slack(relation), relation.domain, 0);
        }))
      return std::nullopt;
    std::vector<std::pair<Affine, Event>> ends;
    bool natural = true;
    forEachItem([&](uint32_t rank, uint32_t row) {
      auto [start, end] = times.ranks[rank][row];
      bool inWindow = rowAt(rank, row).window != noWindow;
      natural &= atLeast(start, wholeOf(rank, row), 0);
      for (Affine turn : {Affine{}, Affine{0, 1, 0}})
        if (inWindow || turn == Affine{})
          ends.push_back({substitute(end, turn), {rank, row, true, turn}});
    });
    if (!natural || ends.empty())
      return std::nullopt;
    auto [value, last] = *llvm::max_element(ends, [](auto &a, auto &b) {
      return std::pair(a.first.n, a.first.c) < std::pair(b.first.n, b.first.c);
    });
    for (const auto &[end, event] : ends)
      if (!atLeast(value - end, Domain{0, program.last, false, {}, {}}, 0))
        return std::nullopt;
    return Makespan{value, isTight(last, times, slack)};
  }

  bool isCircle(ArrayRef<Event> circle, int64_t from) const {
    for (size_t i = 0; i != circle.size(); ++i) {
      const Event &target = circle[i],
                  &source = circle[(i + 1) % circle.size()];
      Domain later{from, program.last, false, {}, {}};
      if (rowAt(target.rank, target.row).window != noWindow &&
          (!atLeast(target.turn, later, 0) ||
           !atLeast(Affine{0, 1, 0} - target.turn, later, 0)))
        return false;
      bool found = isBehind(target, source, later);
      forEachRelation(
          target.rank, itemOf(target), [&](const Relation &relation) {
            Domain domain = relation.domain;
            if (found || relation.target.isEnd != target.isEnd ||
                relation.source.rank != source.rank ||
                relation.source.row != itemOf(source) ||
                relation.source.isEnd != source.isEnd || domain.from > from ||
                domain.to < program.last)
              return;
            domain.from = from;
            domain.hasTurns = false;
            found = (!relation.domain.hasTurns ||
                     (atLeast(target.turn - domain.lo, domain, 0) &&
                      atLeast(domain.hi - target.turn, domain, 0))) &&
                    (rowAt(source.rank, source.row).window == noWindow ||
                     isZero(substitute(relation.source.turn, target.turn) -
                                source.turn,
                            domain));
          });
      if (!found)
        return false;
    }
    return !circle.empty();
  }

private:
  using Key = uint64_t;
  static constexpr uint32_t none = 0xFFFFFFFF;

  const Row &rowAt(uint32_t rank, uint32_t row) const {
    return program.ranks[rank][row];
  }
  const KindInfo &infoOf(uint32_t rank, uint32_t row) const {
    return head.kinds[rowAt(rank, row).kind];
  }
  uint32_t peerOf(const Row &row) const {
    return head.pipes[row.pipe.value].rankOfStage[row.peer.value].value;
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
    bool hasTurns = rowAt(rank, row).window != noWindow;
    return {0, program.last, hasTurns, {}, {0, 1, 0}};
  }
  template <class Visit> void forEachItem(Visit visit) const {
    for (uint32_t rank = 0; rank != program.ranks.size(); ++rank)
      for (uint32_t row = 0; row != program.ranks[rank].size(); ++row)
        if (!rowAt(rank, row).joined)
          visit(rank, row);
  }

  /// Whether the start of a compute action is behind the end of another, which
  /// is before it on the same rank.
  bool isBehind(const Event &target, const Event &source,
                const Domain &domain) const {
    if (target.rank != source.rank || target.isEnd || !source.isEnd ||
        !infoOf(target.rank, target.row).isCompute() ||
        !infoOf(source.rank, source.row).isCompute())
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
  const Chain *find(Role role, PipeId pipe, StageId stage, StageId peer,
                    uint8_t slotBit) const {
    auto found = chains.find(keyOf(role, pipe, stage, peer, slotBit));
    return found == chains.end() ? nullptr : &found->second;
  }
  std::pair<StageId, StageId> wayOf(const Row &row,
                                    const KindInfo &info) const {
    return info.isSend() ? std::pair(row.stage, row.peer)
                         : std::pair(row.peer, row.stage);
  }

  /// Notes what a rank does, and what stands before what in its queues.
  void link(uint32_t rank) {
    const auto &rows = program.ranks[rank];
    std::vector<Before> &befores = before.emplace_back(rows.size());
    std::map<uint32_t, uint32_t> last;
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> lastOfWindow;
    auto queueOf = [&](uint32_t row) { return this->queueOf(rank, row); };
    for (uint32_t row = 0; row != rows.size(); ++row)
      if (!rows[row].joined)
        lastOfWindow[{queueOf(row), rows[row].window}] = row;
    auto lastIn = [&](uint32_t queue, uint32_t row) {
      auto own = last.find(queue);
      auto again = lastOfWindow.find({queue, rows[row].window});
      Before::In in;
      in.row = own == last.end() ? none : own->second;
      if (rows[row].window != noWindow && again != lastOfWindow.end() &&
          (in.row == none || rows[in.row].window != rows[row].window))
        in.again = again->second;
      return in;
    };
    for (uint32_t row = 0; row != rows.size(); ++row) {
      const KindInfo &info = infoOf(rank, row);
      const Row &at = rows[row];
      const Pipe &pipe = head.pipes[at.pipe.value];
      if (info.isDeclared())
        misplaced = "there are declared actions";
      else if (pipe.rankOfStage[at.stage.value].value != rank)
        misplaced = "a row stands on a rank that does not host its stage";
      else if (at.joined && (!info.isCompute() || row == 0 ||
                             rows[row - 1].window != at.window ||
                             !infoOf(rank, row - 1).isCompute()))
        misplaced = "a group holds messages";
      for (uint8_t slotBit : slotsIn(info.defines)) {
        auto way = info.isCompute()
                       ? std::pair(at.stage, StageId(Action::noPeer))
                       : wayOf(at, info);
        Role role = info.isCompute() ? Role::Makes
                    : info.isSend()  ? Role::Sends
                                     : Role::Receives;
        chains[keyOf(role, at.pipe, way.first, way.second, slotBit)]
            .links.push_back({rank, row, {}, {}});
      }
      if (at.joined)
        continue;
      uint32_t queue = queueOf(row);
      befores[row].own = lastIn(queue, row);
      if (queue != 0)
        befores[row].issue = lastIn(0, row);
      last[queue] = row;
    }
  }

  /// The queue of a row on its rank; 0 is that of the compute actions.
  uint32_t queueOf(uint32_t rank, uint32_t row) const {
    const KindInfo &info = infoOf(rank, row);
    if (info.isCompute() || !transport || !transport->hasStreams())
      return 0;
    if (transport->layout == QueueLayout::Stream)
      return 1;
    uint32_t peer = peerOf(rowAt(rank, row));
    return transport->layout == QueueLayout::StreamPerPeer
               ? 1 + peer
               : 1 + 2 * peer + info.isRecv();
  }

  /// Sorts the rows of a chain, and sees whether they are all microbatches of
  /// the pipe.
  void arrange(Key key, Chain &chain) {
    const Range &range = program.pipes[key >> 32 & 0xFFFF];
    auto unknown = [&](const char *why) {
      chain.finding = {Finding::Kind::Unknown, why};
    };
    Affine count;
    for (Chain::Link &link : chain.links) {
      const Row &row = rowAt(link.rank, link.row);
      Affine first = row.microbatch;
      count =
          count + (row.window == noWindow ? Affine{1, 0, 0} : Affine{1, 1, 0});
      if (row.window != noWindow && first.j == 0)
        return unknown("a window does one microbatch again and again");
      int64_t step = std::abs(first.j);
      if (step != 0 && chain.stride != 0 && step != chain.stride) {
        chain.stride = 0;
        return unknown("microbatches advance in several steps");
      }
      chain.stride = step ? step : chain.stride;
      Affine final = substitute(
          first, row.window == noWindow ? Affine{} : Affine{0, 1, 0});
      link.lo = {first.c, first.n, 0};
      link.hi = final;
      if (first.j < 0)
        std::swap(link.lo, link.hi);
    }
    Affine missing = range.count - count;
    Domain all{0, program.last, false, {}, {}};
    if (atLeast(missing, all, 1) || atLeast(-1 * missing, all, 1)) {
      const Chain::Link &link = chain.links.front();
      chain.finding = {
          Finding::Kind::Fails,
          fmt::format("`{}` is there too {}",
                      describe(program, rowAt(link.rank, link.row)),
                      missing.at(program.last == endless ? 1 : program.last) > 0
                          ? "seldom"
                          : "often")};
    }
    chain.stride = std::max<int64_t>(chain.stride, 1);
    int64_t stride = chain.stride;
    Affine end = range.first + range.count;
    bool fits = range.first.n % stride == 0 && end.n % stride == 0;
    for (const Chain::Link &link : chain.links)
      fits &= link.lo.n % stride == 0;
    if (!fits || stride > int64_t(chain.links.size())) {
      chain.stride = 0;
      if (chain.finding)
        unknown("microbatches grow in other steps than n");
      return;
    }
    chain.byRemainder.resize(stride);
    for (const Chain::Link &link : chain.links)
      chain.byRemainder[*floorMod(link.lo.c, stride)].push_back(link);
    int64_t probe = std::min<int64_t>(program.last, 1 << 20);
    for (int64_t remainder = 0; remainder != stride; ++remainder) {
      auto &links = chain.byRemainder[remainder];
      llvm::sort(links, [&](const Chain::Link &a, const Chain::Link &b) {
        return a.lo.at(probe) < b.lo.at(probe);
      });
      Affine next = range.first;
      next.c += *floorMod(remainder - next.c, stride);
      for (const Chain::Link &link : links) {
        if (link.lo != next && chain.finding)
          unknown("microbatches are missing, or there twice");
        next = link.hi + Affine{stride, 0, 0};
      }
      Affine wanted = end;
      wanted.c += *floorMod(remainder - wanted.c, stride);
      if (next != wanted && chain.finding)
        unknown("microbatches are missing, or there twice");
    }
  }

  /// Calls `visit(event, domain)` for the ends of rows of a chain that do the
  /// microbatch `wanted` of a row, in the turns in which they do. False where
  /// that is not known.
  template <class Visit>
  bool solve(uint32_t rank, uint32_t row, Affine wanted, const Chain *chain,
             Visit visit) const {
    if (!chain || chain->stride == 0)
      return false;
    bool hasTurns = rowAt(rank, row).window != noWindow;
    int64_t stride = chain->stride;
    if (wanted.n % stride != 0 || wanted.j % stride != 0 ||
        hasTurns != (wanted.j != 0))
      return false;
    for (const Chain::Link &link :
         chain->byRemainder[*floorMod(wanted.c, stride)]) {
      Event event{link.rank, link.row, true, {}};
      event.row = itemOf(event);
      const Row &source = rowAt(link.rank, link.row);
      if (!forEachMeeting(program.last, wanted, source.microbatch,
                          source.window != noWindow,
                          [&](Affine turn, const Domain &domain) {
                            event.turn = turn;
                            visit(event, domain);
                          }))
        return false;
    }
    return true;
  }

  /// Calls `visit(event, domain)` for the receives that make room for a send:
  /// each is `capacity` messages before it on its lane.
  template <class Visit>
  bool forEachRoom(uint32_t rank, uint32_t row, Visit visit) const {
    uint32_t peer = peerOf(rowAt(rank, row));
    Affine wanted = positions[rank][row] - Affine{transport->capacity, 0, 0};
    for (uint32_t recv = 0; recv != program.ranks[peer].size(); ++recv) {
      const Row &other = rowAt(peer, recv);
      if (infoOf(peer, recv).isRecv() && peerOf(other) == rank &&
          !forEachMeeting(program.last, wanted, positions[peer][recv],
                          other.window != noWindow,
                          [&](Affine turn, const Domain &domain) {
                            visit(Event{peer, recv, true, turn}, domain);
                          }))
        return false;
    }
    return true;
  }

  template <class Visit>
  bool forEachPartner(uint32_t rank, uint32_t row, Visit visit) const {
    const Row &at = rowAt(rank, row);
    const KindInfo &info = infoOf(rank, row);
    auto way = wayOf(at, info);
    return solve(rank, row, at.microbatch,
                 find(info.isSend() ? Role::Receives : Role::Sends, at.pipe,
                      way.first, way.second, info.mainSlot()),
                 visit);
  }

  // ---- Who waits for whom ----

  /// Calls `visit` for all that the start and the end of an item wait for.
  /// False where some of it is not known.
  template <class Visit>
  bool forEachRelation(uint32_t rank, uint32_t item, Visit visit) const {
    const auto &rows = program.ranks[rank];
    Event start{rank, item, false, {0, 0, 1}}, end{rank, item, true, {0, 0, 1}};
    for (const Before::In &in :
         {before[rank][item].own, before[rank][item].issue})
      forEachBefore(start, in, visit);
    Domain whole = wholeOf(rank, item);
    const KindInfo &info = infoOf(rank, item);
    bool known = true;
    auto await = [&](const Event &target, Wait wait) {
      return [&visit, target, wait](const Event &source, const Domain &domain) {
        visit({target, source, domain, wait});
      };
    };
    auto fromStart = [&](Wait wait) { visit({end, start, whole, wait}); };
    if (info.isCompute()) {
      fromStart(Wait::Own);
      for (uint32_t row = item;
           row == item || (row != rows.size() && rows[row].joined); ++row)
        known &= forEachInput(rank, row, await(start, Wait::None));
      return known;
    }
    const Row &at = rows[item];
    auto way = wayOf(at, info);
    bool meets = transport->sendWait == SendWait::Receive;
    fromStart(meets ? Wait::Message : Wait::None);
    if (info.isSend())
      known &= solve(rank, item, at.microbatch,
                     find(Role::Makes, at.pipe, way.first,
                          StageId(Action::noPeer), info.mainSlot()),
                     await(start, Wait::None));
    if (meets || info.isRecv())
      known &= forEachPartner(rank, item, [&](Event other, Domain domain) {
        other.isEnd = !meets;
        visit({end, other, domain, Wait::Message});
      });
    if (info.isSend() && transport->sendWait == SendWait::Capacity)
      known &= forEachRoom(rank, item, await(end, Wait::None));
    return known;
  }

  /// The items of a queue in front of another item.
  struct Before {
    struct In {
      uint32_t row = none;   ///< In the same turn, or before the window.
      uint32_t again = none; ///< In the turn before; `row` is for the first.
    };
    In own, issue;
  };

  template <class Visit>
  void forEachBefore(const Event &start, Before::In in, Visit visit) const {
    const Row &at = rowAt(start.rank, start.row);
    Domain domain = wholeOf(start.rank, start.row);
    if (in.again != none) {
      if (program.last > 0) {
        Domain later = domain;
        later.from = 1;
        later.lo = {1, 0, 0};
        visit({start,
               {start.rank, in.again, true, {-1, 0, 1}},
               later,
               Wait::None});
      }
      domain.hi = {};
    }
    if (in.row == none)
      return;
    uint32_t window = rowAt(start.rank, in.row).window;
    Affine turn = window == noWindow    ? Affine{}
                  : window == at.window ? Affine{0, 0, 1}
                                        : Affine{0, 1, 0};
    visit({start, {start.rank, in.row, true, turn}, domain, Wait::None});
  }

  /// Calls `visit(event, domain)` for all that a compute action reads.
  template <class Visit>
  bool forEachInput(uint32_t rank, uint32_t row, Visit visit) const {
    const Row &at = rowAt(rank, row);
    const Pipe &pipe = head.pipes[at.pipe.value];
    const KindInfo &info = infoOf(rank, row);
    StageId nobody(Action::noPeer);
    bool known = true;
    for (uint8_t slotBit : slotsIn(info.needs))
      known &=
          solve(rank, row, at.microbatch,
                find(Role::Makes, at.pipe, at.stage, nobody, slotBit), visit);
    for (uint8_t slotBit : slotsIn(info.defines)) {
      for (StageId source : sourcesOf(pipe, at.stage, slotBit)) {
        bool viaMessage = transport && isRemote(pipe, source, at.stage);
        known &=
            solve(rank, row, at.microbatch,
                  viaMessage
                      ? find(Role::Receives, at.pipe, source, at.stage, slotBit)
                      : find(Role::Makes, at.pipe, source, nobody, slotBit),
                  visit);
      }
      if (pipe.slices == 1 || !(slotBit & slot::moving))
        continue;
      Affine place = at.microbatch - program.pipes[at.pipe.value].first;
      if (place.n % pipe.slices != 0 || place.j % pipe.slices != 0)
        return false;
      int64_t slice = *floorMod(place.c, pipe.slices);
      bool isOutput = slotBit == slot::Output;
      if (slice != (isOutput ? 0 : pipe.slices - 1))
        known &=
            solve(rank, row, at.microbatch + Affine{isOutput ? -1 : 1, 0, 0},
                  find(Role::Makes, at.pipe, at.stage, nobody, slotBit), visit);
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

  template <class Holds> Finding all(Holds holds) const {
    Finding finding;
    forEachItem([&](uint32_t rank, uint32_t row) {
      if (!finding)
        return;
      bool known = forEachRelation(rank, row, [&](const Relation &relation) {
        if (finding && !holds(relation))
          finding = {
              Finding::Kind::Unknown,
              fmt::format("no order of rank {} was found in which `{}` stands "
                          "behind `{}`",
                          rank, describe(program, rowAt(rank, row)),
                          describe(program, rowAt(relation.source.rank,
                                                  relation.source.row)))};
      });
      if (!known && finding)
        finding = {Finding::Kind::Unknown,
                   fmt::format(
                       "what `{}` of rank {} waits for advances in other steps",
                       describe(program, rowAt(rank, row)), rank)};
    });
    return finding;
  }

  /// Whether something lets each event that leads to `last` come no sooner.
  template <class Slack>
  bool isTight(const Event &last, const Times &times, Slack slack) const {
    std::set<std::tuple<uint32_t, uint32_t, bool>> seen;
    std::vector<Event> open{last};
    while (!open.empty()) {
      Event event = open.back();
      open.pop_back();
      if (!seen.insert({event.rank, event.row, event.isEnd}).second)
        continue;
      Domain whole = wholeOf(event.rank, event.row);
      if (!event.isEnd &&
          isZero(times.ranks[event.rank][event.row].start, whole))
        continue;
      std::vector<Domain> pieces;
      forEachRelation(event.rank, event.row, [&](const Relation &relation) {
        if (relation.target.isEnd == event.isEnd &&
            isZero(slack(relation), relation.domain)) {
          pieces.push_back(relation.domain);
          open.push_back(relation.source);
        }
      });
      if (!covers(pieces, whole))
        return false;
    }
    return true;
  }

  /// Of the messages of each lane on a rank, how many are before a row.
  std::vector<Affine> positionsOf(uint32_t rank) const {
    using Lane = std::tuple<uint32_t, bool>; ///< The other rank, and the way.
    const auto &rows = program.ranks[rank];
    std::vector<Affine> positions(rows.size());
    std::map<Lane, Affine> counts;
    auto laneOf = [&](const Row &row) {
      return Lane{peerOf(row), head.kinds[row.kind].isSend()};
    };
    for (uint32_t begin = 0, end; begin != rows.size(); begin = end) {
      uint32_t window = rows[begin].window;
      std::map<Lane, int64_t> ofTurn;
      for (end = begin;
           end == begin || (end != rows.size() && window != noWindow &&
                            rows[end].window == window);
           ++end)
        if (!infoOf(rank, end).isCompute())
          positions[end] = counts[laneOf(rows[end])] +
                           Affine{ofTurn[laneOf(rows[end])]++, 0, 0};
      for (uint32_t row = begin; window != noWindow && row != end; ++row)
        if (!infoOf(rank, row).isCompute())
          positions[row].j = ofTurn[laneOf(rows[row])];
      for (auto [lane, count] : ofTurn)
        counts[lane] =
            counts[lane] + (window == noWindow ? Affine{count, 0, 0}
                                               : Affine{count, count, 0});
    }
    return positions;
  }

  const Template &program;
  const Head &head;
  const Transport *transport;
  std::vector<std::vector<Before>> before; ///< By rank and row.
  std::map<Key, Chain> chains;
  std::vector<std::vector<Affine>> positions; ///< On lanes, by rank and row.
  std::string misplaced; ///< What is wrong with the template.
};

Checker::Checker(const Template &program, const Transport *transport)
    : impl(std::make_unique<Impl>(program, transport)) {}
Checker::~Checker() = default;
Finding Checker::complete() const { return impl->complete(); }
Finding Checker::matched() const { return impl->matched(); }
Finding Checker::forward(const Times &order) const {
  return impl->forward(order);
}
std::optional<Makespan>
Checker::makespan(const Times &times,
                  const std::vector<std::vector<Time>> &durations) const {
  return impl->makespan(times, durations);
}
bool Checker::isCircle(ArrayRef<Event> circle, int64_t from) const {
  return impl->isCircle(circle, from);
}
