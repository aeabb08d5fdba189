// How stages save what their gradients need: which compute it again or bring it
// to the host, and for which microbatches.
#include "Task.h"

#include "llvm/ADT/Sequence.h"

using namespace ppcc;
using namespace ppcc::synthesis;

using Saving = Workload::Saving;
using enum Workload::Part;

namespace {

/// Of the microbatches of a stage, so many at least and at most are saved.
struct Share {
  uint32_t least, most;
};

/// The work with each stage in up to three parts, by the microbatches that are
/// kept, may be saved, which then costs no time, and are saved.
Workload split(const Workload &kept, const Workload &saved,
               ArrayRef<Share> shares) {
  Workload load;
  load.room = kept.room;
  load.backward = kept.backward;
  load.ofRank.resize(kept.ofRank.size());
  std::vector<uint32_t> first;
  for (auto [share, one, other] :
       llvm::zip(shares, kept.stages, saved.stages)) {
    first.push_back(load.stages.size());
    auto add = [&](const Workload::Stage &from, uint32_t count, Time free) {
      if (count == 0 &&
          (from.microbatches != 0 || first.back() != load.stages.size()))
        return;
      Workload::Stage part = from;
      // What is computed again may be while the gradient is on its way.
      part.time[I] -= from.again;
      part.work[I] -= free;
      part.microbatches = count;
      for (unsigned i = 0; i != Workload::numParts; ++i)
        part.sum[i] = part.work[i] * count;
      load.ofRank[part.rank.value].push_back(load.stages.size());
      load.stages.push_back(std::move(part));
    };
    add(one, one.microbatches - share.most, 0);
    add(other, share.most - share.least, other.again);
    add(other, share.least, 0);
  }
  // Those that are quickest come first.
  for (Workload::Stage &stage : load.stages)
    for (auto *edges : {&stage.below, &stage.above})
      for (Workload::Edge &edge : *edges)
        edge.stage = first[edge.stage];
  return load;
}

/// That the copies of a rank follow one another.
ResourceBound boundOfCopies(const Workload &saved, ArrayRef<Share> shares,
                            RankId rank, ArrayRef<Time> firstF, bool isSpan) {
  constexpr Time far = std::numeric_limits<Time>::max() / 4;
  ResourceBound bound;
  bound.kind = ResourceBound::Kind::Copies;
  bound.rank = rank;
  Time begin = far, head = far, tail = far;
  for (uint32_t s : saved.ofRank[rank.value]) {
    const Workload::Stage &stage = saved.stages[s];
    begin = std::min(begin, firstF[s]);
    head = std::min(head, firstF[s] + stage.time[F]);
    tail = std::min(tail, stage.in + stage.time[I]);
    bound.work += stage.out * shares[s].least;
  }
  if (bound.work == 0)
    return {};
  bound.head = head - (isSpan ? begin : 0);
  bound.tail = tail;
  bound.time = bound.head + bound.work + bound.tail;
  return bound;
}

/// Each stage in the way in which it holds least.
Workload leastOf(const Savings &savings) {
  Workload least = savings.load(savings.ways().front());
  for (Saving how : savings.ways())
    for (auto [one, other] : llvm::zip(least.stages, savings.load(how).stages))
      if (other.heldBehindF() < one.heldBehindF())
        one = other;
  return least;
}

/// Of the choices within these shares, what none of a rank's is better than.
ResourceBound boundOf(const Savings &savings, const Workload &saved,
                      ArrayRef<Share> shares, RankId rank,
                      ArrayRef<Time> firstF, Objective objective) {
  ResourceBound bound =
      resourceBoundOf(split(savings.kept(), saved, shares), rank, objective);
  ResourceBound copies =
      boundOfCopies(saved, shares, rank, firstF, objective == Objective::Span);
  return copies.time > bound.time ? copies : bound;
}

std::vector<Share> freeShares(const Workload &load) {
  std::vector<Share> shares;
  for (const Workload::Stage &stage : load.stages)
    shares.push_back({0, stage.microbatches});
  return shares;
}

/// What no choice is better than: of the choices of each rank the least, in
/// ranges, as if the others saved in no time.
ResourceBound boundOfAll(const Savings &savings, ArrayRef<Time> firstF,
                         Objective objective) {
  constexpr uint64_t mostChoices = 256;
  const Workload &load = savings.kept();
  const Workload saved = leastOf(savings);
  const std::vector<Share> all = freeShares(load);
  ResourceBound bound;
  for (RankId rank : firstIds<RankId>(load.ofRank.size())) {
    ArrayRef<uint32_t> own = load.ofRank[rank.value];
    if (own.empty())
      continue;
    uint64_t steps = mostChoices, choices = 1;
    while (steps > 1 && std::pow(steps, own.size()) > mostChoices)
      --steps;
    if (savings.ways().size() > 1)
      steps = 1;
    for (size_t i = 0; i != own.size(); ++i)
      choices *= steps;
    std::optional<ResourceBound> least;
    for (uint64_t choice = 0; choice != choices; ++choice) {
      std::vector<Share> shares = all;
      uint64_t rest = choice;
      for (uint32_t s : own) {
        uint64_t count = load.stages[s].microbatches + 1, step = rest % steps;
        rest /= steps;
        uint64_t begin = count * step / steps, end = count * (step + 1) / steps;
        // Where there are fewer counts than steps, some are there twice.
        shares[s] = {uint32_t(begin), uint32_t(std::max(begin + 1, end) - 1)};
      }
      ResourceBound one =
          boundOf(savings, saved, shares, rank, firstF, objective);
      if (!least || one.time < least->time)
        least = one;
      if (least->time <= bound.time)
        break;
    }
    if (least->time > bound.time)
      bound = *least;
  }
  return bound;
}

/// A choice with what a quick search makes of it.
struct Choice {
  std::vector<StageSaving> stages;
  Copies copies;
  std::optional<Time> value; ///< Nothing where ranks have no room.
  decimal::Sum saved = 0;    ///< Less of it is better.

  bool isBetter(const Choice &other) const {
    return value && (!other.value || std::pair(*value, saved) <
                                         std::pair(*other.value, other.saved));
  }
};

class SavingSearch {
public:
  explicit SavingSearch(Task &task)
      : task(task), savings(*task.savings),
        kept(savings.kept(), task.asked.objective) {}

  /// Of those that save what is held longest, and of small changes to the best
  /// of them.
  void run() {
    const Workload &load = savings.kept();
    best = judge(std::vector<StageSaving>(load.stages.size()), {});
    SmallVector<uint32_t> stages = byAmount();
    for (Saving how : savings.ways())
      for (Copies copies : copiesFor(how)) {
        for (uint32_t percent : {50, 70, 85, 100, 120, 150, 200})
          offer(fitted(how, percent), copies);
        for (uint32_t n : {8, 4, 2, 6}) {
          std::vector<StageSaving> prefix(load.stages.size());
          for (uint32_t stage : stages) {
            prefix[stage] = {how, n};
            offer(prefix, copies);
          }
        }
      }
    for (bool goesOn = true; goesOn && !isDone();) {
      goesOn = false;
      // A rank holds up others that do the same: several change together.
      for (int by : {-1, 1, -2, 2}) {
        std::vector<StageSaving> changed = best.stages;
        for (StageSaving &one : changed)
          change(one, one.how, by);
        goesOn |= offer(changed, best.copies);
      }
      for (int by : {-1, 1})
        for (uint32_t Copies::*part :
             {&Copies::inFlight, &Copies::margin, &Copies::staged}) {
          Copies copies = best.copies;
          copies.*part = std::clamp<int>(int(copies.*part) + by, 1, mostCopies);
          if (llvm::any_of(best.stages, [](StageSaving one) {
                return one.is(Saving::Offload);
              }))
            goesOn |= offer(best.stages, copies);
        }
      for (uint32_t stage = 0; stage != load.stages.size(); ++stage)
        for (Saving how : savings.ways())
          for (int by : {-8, -1, 1, -2, 2, 8}) {
            std::vector<StageSaving> changed = best.stages;
            change(changed[stage], how, by);
            goesOn |= offer(changed, best.copies);
          }
    }
    savings.ofStage = best.stages;
    savings.copies = best.copies;
  }

private:
  static constexpr unsigned mostTries = 1000, turnsEach = 8, mostCopies = 8;

  bool isDone() const {
    return tries >= mostTries || task.actions > task.budget() / 4 ||
           (task.asked.stop && *task.asked.stop) ||
           (best.value && *best.value <= task.bound->time);
  }

  static void change(StageSaving &one, Saving how, int by) {
    int n = (one.how == how ? int(one.n) : 0) + by;
    if (how != Saving::Keep)
      one = {how, uint32_t(std::clamp<int>(n, 0, StageSaving::of))};
  }

  /// Ways to begin with: copies that are back just in time, early enough for
  /// how long they take, and with less room for them.
  std::vector<Copies> copiesFor(Saving how) const {
    if (how != Saving::Offload)
      return {{}};
    Time longest = 0;
    uint32_t actions = 1;
    for (const auto &stages : savings.kept().ofRank)
      actions = std::max<uint32_t>(actions, 3 * stages.size());
    for (const Workload::Stage &stage : savings.load(how).stages)
      longest = std::max(longest, stage.in);
    uint32_t margin = std::min<decimal::Sum>(
        1 + decimal::Sum(longest) * actions / std::max<Time>(kept.period, 1),
        mostCopies - 2);
    std::vector<Copies> ways{{2, 1, 3}, {1, 1, 2}};
    if (margin > 1)
      ways.insert(ways.end(), {{2, margin, margin + 2}, {2, margin, margin}});
    return ways;
  }

  /// The stages, that with the most memory and time to its gradient first.
  SmallVector<uint32_t> byAmount() const {
    const Workload &load = savings.kept();
    auto stages = llvm::to_vector(llvm::seq<uint32_t>(load.stages.size()));
    llvm::stable_sort(stages, [&](uint32_t a, uint32_t b) {
      auto held = [&](uint32_t s) {
        return decimal::Sum(load.stages[s].heldBehindF()) * kept.away[s];
      };
      return held(a) > held(b);
    });
    return stages;
  }

  /// What keeps ranks busy while microbatches are away, or so many hundredths
  /// of it, and does not fit, is saved.
  std::vector<StageSaving> fitted(Saving how, uint32_t percent) const {
    const Workload &load = savings.kept();
    std::vector<StageSaving> stages(load.stages.size());
    for (uint32_t rank = 0; rank != kept.numRanks(); ++rank) {
      decimal::Sum wanted = 0;
      for (uint32_t s : load.ofRank[rank])
        wanted += decimal::Sum(load.stages[s].heldBehindF()) * kept.away[s] /
                  std::max<Time>(kept.period, 1) * percent / 100;
      if (!load.room[rank] || wanted <= *load.room[rank])
        continue;
      auto n = StageSaving::of * (wanted - *load.room[rank]) / wanted + 1;
      for (uint32_t s : load.ofRank[rank])
        stages[s] = {how, std::min(uint32_t(n), StageSaving::of)};
    }
    return stages;
  }

  bool offer(const std::vector<StageSaving> &stages, Copies copies) {
    if (isDone() || (stages == best.stages && copies == best.copies))
      return false;
    Choice other = judge(stages, copies);
    bool isBetter = other.isBetter(best);
    if (isBetter)
      best = std::move(other);
    return isBetter;
  }

  Choice judge(std::vector<StageSaving> stages, Copies copies) {
    ++tries;
    Choice choice;
    choice.stages = savings.ofStage = std::move(stages);
    choice.copies = savings.copies = copies;
    for (auto [stage, one] : llvm::zip(savings.kept().stages, savings.ofStage))
      if (one.how != Saving::Keep)
        choice.saved += decimal::Sum(one.n) * (stage.time[F] + 1);
    Problem problem(savings.kept(), task.asked.objective, &savings);
    if (!problem.hasRoom())
      return choice;
    SearchOptions options;
    options.budget = uint64_t(problem.numActions) * turnsEach;
    options.refines = false;
    Found found = task.search(problem, {}, std::move(options));
    if (found.order.empty())
      return choice;
    choice.value = found.value;
    // Copies may hold up what the order does not know of.
    if (savings.uses(Saving::Offload) &&
        !(best.value && found.value > *best.value)) {
      choice.value = task.judge(problem, found.order, std::nullopt).value;
      task.actions += problem.numActions * 64;
    }
    return choice;
  }

  Task &task;
  Savings &savings;
  const Problem kept; ///< With what is kept everywhere.
  Choice best;
  unsigned tries = 0;
};

} // namespace

SmallVector<Saving, 2> Savings::ways() const {
  SmallVector<Saving, 2> ways;
  for (Saving how : {Saving::Recompute, Saving::Offload})
    if (loads[static_cast<size_t>(how)])
      ways.push_back(how);
  return ways;
}

ResourceBound synthesis::boundOf(const Savings &savings, Objective objective,
                                 bool isFree) {
  const Workload &load = savings.kept();
  std::vector<Time> firstF = AloneTimes(load).firstF;
  if (isFree)
    return boundOfAll(savings, firstF, objective);
  std::vector<Share> shares = freeShares(load);
  for (auto [share, one] : llvm::zip(shares, savings.ofStage)) {
    uint32_t count = 0;
    for (uint32_t m = 0; m != share.most; ++m)
      count += one.has(m);
    share = {savings.ways().size() > 1 ? 0 : count, count};
  }
  Workload saved = leastOf(savings);
  ResourceBound bound;
  for (RankId rank : firstIds<RankId>(load.ofRank.size()))
    if (!load.ofRank[rank.value].empty())
      if (ResourceBound one =
              ::boundOf(savings, saved, shares, rank, firstF, objective);
          one.time > bound.time)
        bound = one;
  return bound;
}

bool synthesis::chooseSavings(Task &task) {
  const Program &program = task.program;
  const SynthesisRequest &asked = task.asked;
  if (program.pipes().size() > 1)
    return task.refuse("of several pipes it cannot choose what is saved");
  if (asked.recompute && !restoring(program))
    return task.refuse(
        "it has no action that restores F; say `with recompute;`");
  if (asked.offload && !offloading(program))
    return task.refuse("it has no actions that bring what F keeps to the host "
                       "and back; say `with offload;`");
  if (!task.instance()) // Without a choice, for what is wrong with it.
    return false;
  Savings &savings = task.savings.emplace();
  Durations durations(program);
  for (auto [how, isChoice] : {std::pair(Saving::Keep, true),
                               std::pair(Saving::Recompute, asked.recompute),
                               std::pair(Saving::Offload, asked.offload)})
    if (isChoice)
      savings.loads[static_cast<size_t>(how)] =
          Workload::of(program, durations, task.backward(), 1, how);
  savings.ofStage.resize(savings.kept().stages.size());
  task.bound = boundOf(savings, asked.objective, true);
  if (!Problem(savings.kept(), asked.objective, &savings).hasRoom()) {
    // The least that ranks can work with.
    savings.copies = {1, 1, 2};
    savings.ofStage.assign(savings.kept().stages.size(),
                           {savings.ways().front(), StageSaving::of});
    if (!task.instance())
      return false;
  }
  SavingSearch(task).run();
  return true;
}
