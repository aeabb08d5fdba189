// Checks that an order takes a makespan, and that no order takes less than a
// bound: certificates of `ppcc synthesize`. It searches nothing.
//
// Model: each action runs `count` times. Its run m starts after the runs m of
// the actions that it waits for, and their latencies. A rank does one thing at
// a time. What it holds grows by `takes` when a run starts, shrinks by `frees`
// when it ends, and stays within its limit. Times are whole numbers.
//
// Makespan: the certificate has the start of each run.
//
// Bound, by the load of a rank: let its first run of the actions `begin` start
// at t, and the last one of `end` end at e. Before t it can only do what does
// not wait for `begin`, as much as its memory allows; likewise after e what
// `end` does not wait for. The rest of its work is between t and e; t is at
// least the longest path to `begin`, and the path after `end` follows on e.
//
// Bound, by cases: assume a makespan below it. Each run starts within a window.
// Windows are narrowed by what runs wait for, and, on some ranks, by dynamic
// programming over states, the numbers of runs that each action has done:
// a path through them that keeps the limit is an order of the rank. A case is
// refuted when a window is empty, or else both of its cases are: a run starts
// until a time, or after it.
// Two properties make this complete. Starts are whole: an order whose runs all
// start as early as they can has sums of times. Runs m and m + 1 of an action
// start in this order: sort the starts of each action, and the n-th still
// follows the n-th of what it waits for; no rank holds other amounts.
// Cost: of a case, O(states * actions of the rank) for each round that narrows.
#include "ppcc/Proof/Optimality.h"
#include "CertificateJson.h"

using namespace ppcc;
using namespace ppcc::proof;

namespace {

/// Sums of numbers in a certificate stay below `maxSum`, which stands for no
/// limit, too.
constexpr int64_t maxNumber = int64_t(1) << 50, maxSum = int64_t(1) << 60,
                  maxRuns = 1 << 20, maxMoves = 1 << 22, maxDepth = 4096,
                  maxChain = 4;

int64_t number(const json::Value &from, StringRef key, int64_t max = maxSum) {
  int64_t value = *require(from.getAsInteger(), key);
  if (value < 0 || value > max)
    refuse(fmt::format("`{}` has a number out of range", key));
  return value;
}
std::vector<int64_t> numbers(const json::Value *from, StringRef key,
                             int64_t max, size_t maxSize = maxItems) {
  const json::Array &list = *require(require(from, key)->getAsArray(), key);
  if (list.size() > maxSize)
    refuse(fmt::format("`{}` has too many items", key));
  std::vector<int64_t> result;
  for (const json::Value &value : list)
    result.push_back(number(value, key, max));
  return result;
}

struct Action {
  struct Wait {
    uint32_t action;
    int64_t latency;
  };
  uint32_t rank, count;
  uint32_t first; ///< Of all runs, the number of its run 0.
  int64_t time, takes, frees;
  std::vector<Wait> waits;
  int64_t head = 0, tail = 0; ///< The longest path to its start, from its end.

  int64_t keeps() const { return takes - frees; }
};

/// Something that a rank may do so often.
struct Item {
  int64_t time, size, count;
};

/// The most time of items that fit, at least: what has much room, or small
/// sizes, is rounded in their favour.
int64_t knapsackBound(std::vector<Item> items, int64_t room) {
  constexpr int64_t maxRoom = 1 << 16;
  for (const Item &item : items)
    room -= std::min<int64_t>(item.size, 0) * item.count;
  int64_t scale = std::max<int64_t>(room, maxRoom), all = 0;
  room = std::clamp<int64_t>(room, 0, maxRoom);
  std::vector<int64_t> best(room + 1);
  for (Item &item : items) {
    if (scale != maxRoom)
      item.size = static_cast<__int128>(item.size) * maxRoom / scale;
    if (item.size <= 0)
      all += item.time * item.count;
    else // Some number of 1, 2, 4, ... and of the rest at once.
      for (int64_t n = 1; item.count > 0; item.count -= n, n *= 2) {
        n = std::min(n, item.count);
        for (int64_t used = room; used / n >= item.size; --used)
          best[used] =
              std::max(best[used], best[used - n * item.size] + n * item.time);
      }
  }
  return all + best.back();
}

class Checker {
public:
  explicit Checker(const json::Object &file) : file(file) {}

  Optimality run() {
    checkKeys(file, {"format", "version", "time_unit", "memory_unit", "limits",
                     "actions", "order", "makespan", "bound", "proof"});
    integer(file, "version", 1, 1);
    Optimality shown;
    shown.unit = string(file, "time_unit");
    if (shown.unit.find_first_not_of("0123456789.") != std::string::npos)
      refuse("`time_unit` is not a number");
    json::Object given{{"memory_unit", string(file, "memory_unit")}};
    for (StringRef key : {"time_unit", "limits", "actions"})
      given[key] = *require(file.get(key), key);
    llvm::raw_string_ostream(shown.given) << json::Value(std::move(given));
    readModel();
    shown.makespan = integer(file, "makespan", 0, maxSum);
    if (runOrder() != shown.makespan)
      refuse("the order takes another time than `makespan`");
    shown.bound = integer(file, "bound", 0, maxSum);
    const json::Object &proof = object(file, "proof");
    if (proof.get("cases")) {
      refute(proof, shown.bound - 1);
      size_t cases = proof.getArray("cases")->size() / 2 + 1;
      shown.argument =
          cases == 1 ? "windows" : fmt::format("windows in {} cases", cases);
    } else {
      if (loadBound(proof) < shown.bound)
        refuse("the load of the rank is less than `bound`");
      shown.argument = fmt::format("the load of rank {}", rank);
    }
    return shown;
  }

private:
  void readModel() {
    for (const json::Value &limit : array(file, "limits"))
      limits.push_back(limit.getAsNull() ? maxSum : number(limit, "limits"));
    __int128 sum = 0;
    for (const json::Value &item : array(file, "actions")) {
      const json::Object &from = *require(item.getAsObject(), "actions");
      checkKeys(from,
                {"name", "rank", "count", "time", "takes", "frees", "waits"});
      string(from, "name");
      auto read = [&](StringRef key, int64_t min, int64_t max) {
        return integer(from, key, min, max);
      };
      Action action;
      action.rank = read("rank", 0, int64_t(limits.size()) - 1);
      action.count = read("count", 1, maxRuns);
      action.first = actionOf.size();
      action.time = read("time", 0, maxNumber);
      action.takes = read("takes", 0, maxNumber);
      action.frees = read("frees", 0, maxNumber);
      __int128 all = action.time + action.takes + action.frees;
      for (const json::Value &wait : array(from, "waits")) {
        auto pair = numbers(&wait, "waits", maxNumber);
        if (pair.size() != 2 || pair[0] >= int64_t(actions.size()) ||
            actions[pair[0]].count != action.count)
          refuse("an action waits for what is not before it in the list, or "
                 "runs another number of times");
        const Action &source = actions[pair[0]];
        action.waits.push_back({uint32_t(pair[0]), pair[1]});
        action.head =
            std::max(action.head, source.head + source.time + pair[1]);
        all += pair[1];
      }
      sum += all * action.count;
      if (sum > maxSum || actionOf.size() + action.count > maxRuns)
        refuse("the actions are too many, or too long");
      actionOf.insert(actionOf.end(), action.count, actions.size());
      actions.push_back(std::move(action));
    }
    for (const Action &action : llvm::reverse(actions))
      for (auto [source, latency] : action.waits)
        actions[source].tail =
            std::max(actions[source].tail, latency + action.time + action.tail);
  }

  /// The makespan of the order.
  int64_t runOrder() const {
    const json::Array &ofRanks = array(file, "order");
    if (ofRanks.size() != limits.size())
      refuse("`order` is of other ranks");
    struct Rank {
      std::vector<int64_t> list;
      size_t at = 0;
      int64_t end = 0, held = 0;
    };
    std::vector<Rank> ranks;
    for (const json::Value &list : ofRanks)
      ranks.push_back({numbers(&list, "order", maxSum, 2 * maxRuns)});
    std::vector<int64_t> starts(actionOf.size(), -maxSum);
    std::vector<uint32_t> done(actions.size());
    // Each rank until it waits: by starts alone, what takes no time could wait
    // for what is after it.
    for (bool again = true; again;) {
      again = false;
      for (auto [rank, of] : llvm::enumerate(ranks))
        for (; of.at < of.list.size(); of.at += 2, again = true) {
          size_t id = of.list[of.at];
          if (of.at + 1 == of.list.size() || id >= actions.size() ||
              actions[id].rank != rank || done[id] == actions[id].count)
            refuse(fmt::format("rank {} runs what it has not", rank));
          const Action &action = actions[id];
          int64_t start = of.list[of.at + 1], ready = of.end;
          bool isReady = true;
          for (auto [source, latency] : action.waits) {
            int64_t begin = starts[actions[source].first + done[id]];
            isReady &= begin >= 0;
            ready = std::max(ready, begin + actions[source].time + latency);
          }
          if (!isReady)
            break;
          of.held += action.takes;
          if (start < ready || of.held > limits[rank])
            refuse(fmt::format("rank {} starts something too early, or holds "
                               "more than its limit",
                               rank));
          of.held -= action.frees;
          of.end = start + action.time;
          starts[action.first + done[id]++] = start;
        }
    }
    int64_t makespan = 0;
    for (const Rank &rank : ranks)
      makespan = std::max(makespan, rank.end);
    for (auto [id, action] : llvm::enumerate(actions))
      if (done[id] != action.count)
        refuse("a rank does not run all that it has, or waits forever");
    return makespan;
  }

  std::vector<uint32_t> onRank() const {
    std::vector<uint32_t> result;
    for (uint32_t id = 0; id != actions.size(); ++id)
      if (actions[id].rank == rank)
        result.push_back(id);
    return result;
  }
  /// These actions with all that they wait for, or with all that wait for them.
  BitVector related(ArrayRef<int64_t> ids, bool isBefore) const {
    BitVector result(actions.size());
    for (int64_t id : ids)
      result.set(id);
    for (uint32_t i = 0; i != actions.size(); ++i) {
      uint32_t id = isBefore ? actions.size() - 1 - i : i;
      for (Action::Wait wait : actions[id].waits)
        if (result[isBefore ? id : wait.action])
          result.set(isBefore ? wait.action : id);
    }
    return result;
  }

  // ---- The load of a rank ----

  int64_t loadBound(const json::Object &proof) {
    checkKeys(proof, {"rank", "begin", "end", "chains"});
    rank = integer(proof, "rank", 0, int64_t(limits.size()) - 1);
    if (onRank().empty())
      refuse("the rank does nothing");
    auto ids = [&](const json::Value *from, StringRef key,
                   size_t maxSize = maxItems) {
      auto result = numbers(from, key, int64_t(actions.size()) - 1, maxSize);
      for (int64_t id : result)
        if (actions[id].rank != rank)
          refuse(fmt::format("`{}` is of another rank", key));
      return result;
    };
    auto begin = ids(proof.get("begin"), "begin"),
         end = ids(proof.get("end"), "end");
    BitVector notEarly = related(begin, false), notLate = related(end, true);
    int64_t start = maxSum, work = 0, kept = 0, held = 0;
    bool endsLater = begin.empty();
    std::vector<Item> early, late;
    for (uint32_t id : onRank()) {
      const Action &action = actions[id];
      int64_t keeps = action.keeps() * action.count;
      bool isEnd = llvm::is_contained(end, id);
      start = std::min(start, action.head);
      work += action.time * action.count;
      kept += keeps;
      if (!notEarly[id]) {
        early.push_back({action.time, action.keeps(), action.count});
        held += isEnd ? keeps : std::min<int64_t>(keeps, 0);
      } else {
        endsLater |= isEnd;
      }
    }
    // Else all of `end` was over before t, and in memory then.
    if (!end.empty() && !endsLater && held <= limits[rank])
      refuse("`end` may be over before `begin`");
    // Of a chain, each action runs at least as often after e as the one before
    // it, so all that runs then consists of ends of chains.
    for (const json::Value &chain : array(proof, "chains")) {
      Item item{0, 0, 0};
      std::optional<uint32_t> next;
      auto links = ids(&chain, "chains", maxChain);
      for (int64_t id : llvm::reverse(links)) {
        const Action &action = actions[id];
        if (end.empty() || notLate[id] ||
            (next && !findBy(actions[*next].waits, id, &Action::Wait::action)))
          refuse("`chains` has what is not in one");
        notLate.set(id);
        item = {item.time + action.time, item.size - action.keeps(),
                action.count};
        late.push_back(item);
        next = id;
      }
    }
    if (!end.empty() &&
        llvm::any_of(onRank(), [&](uint32_t id) { return !notLate[id]; }))
      refuse("`chains` does not have all that may follow `end`");
    int64_t t = begin.empty() ? start : maxSum, tail = end.empty() ? 0 : maxSum;
    for (int64_t id : begin)
      t = std::min(t, actions[id].head);
    for (int64_t id : end)
      tail = std::min(tail, actions[id].tail);
    // Less before t or after e is no shorter.
    int64_t before = std::min({knapsackBound(std::move(early), limits[rank]),
                               t - start, work}),
            after =
                std::min(knapsackBound(std::move(late), limits[rank] - kept),
                         work - before);
    return t + work - before - after + std::max(after, tail);
  }

  // ---- Cases ----

  struct Window {
    int64_t from, to;
  };
  /// A run of a rank, from one of its states to another.
  struct Move {
    uint32_t source, target, run;
  };
  struct States {
    uint32_t count = 1;
    std::vector<Move> moves; ///< In the order of their sources.
    bool isDirty = true;     ///< Whether a window has changed.
  };

  /// Shows that no order ends by `end`.
  void refute(const json::Object &proof, int64_t end) {
    checkKeys(proof, {"ranks", "cases"});
    states.resize(limits.size());
    for (int64_t id :
         numbers(proof.get("ranks"), "ranks", int64_t(limits.size()) - 1)) {
      rank = id;
      addStates();
    }
    possible.resize(actionOf.size());
    windows.assign(actionOf.size(), {0, maxSum});
    for (auto [run, id] : llvm::enumerate(actionOf))
      narrow(run, 0, end - actions[id].time);
    const json::Array &all = array(proof, "cases", maxRuns);
    ArrayRef<json::Value> cases(all.data(), all.size());
    refuteCase(cases, 0);
    if (!cases.empty())
      refuse("`cases` has more than one tree");
  }

  void refuteCase(ArrayRef<json::Value> &cases, int64_t depth) {
    if (cases.empty() || depth == maxDepth)
      refuse("`cases` ends too early, or is too deep");
    auto split = numbers(&cases.front(), "cases", maxSum);
    cases = cases.drop_front();
    narrowAll();
    if (split.empty() && !isEmpty)
      refuse("a case is not refuted");
    if (split.empty())
      return;
    if (split.size() != 4 || split[0] >= int64_t(actions.size()) ||
        split[1] >= actions[split[0]].count || split[3] > 1)
      refuse("a case is of a run that is not there");
    auto saved = std::pair(windows, isEmpty);
    for (bool isLate : {split[3] == 1, split[3] == 0}) {
      std::tie(windows, isEmpty) = saved;
      for (States &of : states)
        of.isDirty = false;
      narrow(actions[split[0]].first + split[1], isLate ? split[2] + 1 : 0,
             isLate ? maxSum : split[2]);
      refuteCase(cases, depth + 1);
    }
  }

  void narrow(uint32_t run, int64_t from, int64_t to) {
    Window &window = windows[run];
    if (from <= window.from && to >= window.to)
      return;
    window = {std::max(from, window.from), std::min(to, window.to)};
    states[actions[actionOf[run]].rank].isDirty = true;
    isEmpty |= window.from > window.to;
  }

  void narrowAll() {
    for (bool again = true; again && !isEmpty;) {
      narrowByWaits();
      again = false;
      for (rank = 0; rank != limits.size() && !isEmpty; ++rank)
        if (!states[rank].moves.empty() && states[rank].isDirty) {
          narrowByStates();
          again = true;
        }
    }
  }

  void narrowByWaits() {
    for (auto [id, action] : llvm::enumerate(actions))
      for (uint32_t m = 0; m != action.count; ++m) {
        int64_t from =
            m == 0 ? 0 : windows[action.first + m - 1].from + action.time;
        for (auto [source, latency] : action.waits)
          from = std::max(from, windows[actions[source].first + m].from +
                                    actions[source].time + latency);
        narrow(action.first + m, from, maxSum);
      }
    for (const Action &action : llvm::reverse(actions))
      for (uint32_t m = action.count; m-- != 0;) {
        int64_t to = windows[action.first + m].to;
        if (m != 0)
          narrow(action.first + m - 1, 0, to - action.time);
        for (auto [source, latency] : action.waits)
          narrow(actions[source].first + m, 0,
                 to - latency - actions[source].time);
      }
  }

  /// Lists the states of `rank`.
  void addStates() {
    States &of = states[rank];
    std::vector<uint32_t> ids = onRank();
    // A state is a number in a mixed radix; `needs` are among `ids`.
    std::vector<uint64_t> places, found{0};
    std::vector<SmallVector<uint32_t>> needs;
    unsigned __int128 place = 1;
    for (uint32_t id : ids) {
      places.push_back(place);
      place *= actions[id].count + 1;
      if (place >> 64)
        refuse("a rank has too many states");
      BitVector sources = related(int64_t(id), true);
      SmallVector<uint32_t> &list = needs.emplace_back();
      for (auto [i, other] : llvm::enumerate(ids))
        if (other != id && sources[other])
          list.push_back(i);
    }
    std::unordered_map<uint64_t, uint32_t> numberOf;
    std::vector<uint32_t> done(ids.size());
    for (uint32_t source = 0; source != found.size(); ++source) {
      int64_t held = 0;
      for (auto [i, id] : llvm::enumerate(ids)) {
        done[i] = found[source] / places[i] % (actions[id].count + 1);
        held += actions[id].keeps() * done[i];
      }
      for (auto [i, id] : llvm::enumerate(ids)) {
        const Action &action = actions[id];
        if (done[i] == action.count || held + action.takes > limits[rank] ||
            llvm::any_of(needs[i],
                         [&](uint32_t j) { return done[j] <= done[i]; }))
          continue;
        auto [target, isNew] =
            numberOf.try_emplace(found[source] + places[i], found.size());
        if (isNew)
          found.push_back(target->first);
        of.moves.push_back({source, target->second, action.first + done[i]});
        if (++numMoves > maxMoves)
          refuse("a rank has too many states");
      }
    }
    of.count = found.size();
  }

  void narrowByStates() {
    States &of = states[rank];
    std::vector<int64_t> earliest(of.count, maxSum), latest(of.count, -maxSum);
    earliest.front() = 0;
    latest.back() = maxSum; // The order has led there.
    auto timeOf = [&](uint32_t run) { return actions[actionOf[run]].time; };
    auto from = [&](const Move &move) {
      return std::max(earliest[move.source], windows[move.run].from);
    };
    for (const Move &move : of.moves) {
      possible[move.run] = {maxSum, -maxSum};
      if (from(move) <= windows[move.run].to)
        earliest[move.target] =
            std::min(earliest[move.target], from(move) + timeOf(move.run));
    }
    for (const Move &move : llvm::reverse(of.moves)) {
      int64_t to = std::min(latest[move.target] - timeOf(move.run),
                            windows[move.run].to);
      if (from(move) > to)
        continue;
      latest[move.source] = std::max(latest[move.source], to);
      Window &window = possible[move.run];
      window = {std::min(window.from, from(move)), std::max(window.to, to)};
    }
    for (const Move &move : of.moves)
      narrow(move.run, possible[move.run].from, possible[move.run].to);
    of.isDirty = false;
  }

  const json::Object &file;
  std::vector<int64_t> limits; ///< By rank.
  std::vector<Action> actions;
  std::vector<uint32_t> actionOf; ///< By run.
  uint32_t rank = 0;              ///< That is looked at.
  uint64_t numMoves = 0;
  std::vector<States> states;            ///< By rank, if they are used.
  std::vector<Window> windows, possible; ///< By run.
  bool isEmpty = false;                  ///< Whether some window is.
};

} // namespace

llvm::Expected<Optimality> ppcc::proof::checkOptimality(StringRef text) {
  try {
    json::Value file = parse(text, "ppcc.optimality");
    return Checker(*file.getAsObject()).run();
  } catch (const InvalidCertificate &refusal) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(), refusal.why);
  }
}
