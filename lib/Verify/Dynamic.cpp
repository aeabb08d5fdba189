// Checks the orders of runtimes that take a program as a hint.
//
// Such a runtime (RRFP, arXiv 2605.18750) lets each rank start what is ready,
// so that the order depends on how fast ranks and messages are. Messages carry
// tags and never wait; what may wait is memory: a rank starts an action only
// where what it takes still fits under the limit.
//
// Rule `hint`: a rank starts the first ready action of its order after which
// the rest of that order still fits. No order that this leads to can hang if
// the program is right. Proof: take the actions that are left. The program has
// no cycle, so the first that some rank has left is ready; by the rule it fits.
//
// Rule `ready`: a rank starts whatever is ready and fits. Here it can hang: a
// microbatch stops before an action that does not fit, for ever if its rank
// holds what other stopped microbatches wait for.
// Algorithm: what gives no memory back later only helps, so a microbatch stops
// at a *cut*: all that takes no memory and can run has run. Microbatches with
// the same actions and amounts share their cuts; a state is the number of
// microbatches at each cut. It hangs if some are short of the end, and each of
// these is before actions that do not fit. What others do then is all the same.
// Cuts are left out whose actions always fit; then states are searched, from
// the deepest cut up. None found: no order hangs, whatever actions take, since
// every state in which a run could end was looked at. Found: it can be reached
// if microbatches that run there one after another keep the limits.
// Cost: O(actions), and the states, of which it looks at `maxLooks` amounts at
// most. Example: stages 0 and 2 on rank 0, 1 and 3 on rank 1, limits of 2:
// microbatches 0 and 1 have run on stages 0 and 1, and stop before stage 2,
// since rank 0 holds 2 already.
#include "ProgramCheck.h"
#include "ppcc/Analysis/Index/Dependences.h"
#include "ppcc/Analysis/Report/MemoryCurve.h"
#include "ppcc/Analysis/Run/EventGraph.h"
#include "ppcc/Verify/Passes.h"

#include <map>
#include <set>

using namespace ppcc;

namespace {

/// Actions of a microbatch and places where it may stop; amounts that are kept
/// of these; and amounts that are looked at.
constexpr size_t maxPlaces = 1 << 12, maxAmounts = 1 << 22, maxLooks = 1 << 27;

/// What one or more microbatches do, each of them.
struct Job {
  struct Step {
    ActionId row;
    RankId rank;
    Amount amount; ///< Taken before it starts, or given back when it ends.
    bool freesRemainder;
    size_t pair; ///< The first step of its stage and slice.
    std::vector<size_t> needs;
  };
  std::vector<Step> steps;
  uint32_t count = 0; ///< Microbatches.
};

/// Where a microbatch may stop.
struct Cut {
  size_t job;
  std::vector<bool> done;               ///< By step.
  std::vector<decimal::Sum> held, peak; ///< By rank: there, and on the way.
  std::vector<decimal::Sum> ofPair;     ///< What stages hold.
  std::vector<size_t> next;  ///< The steps that it waits for; none at the end.
  uint32_t microbatches = 0; ///< That stop here, in the state looked at.
};

struct ReadyChecker : IndexedCheck {
  using IndexedCheck::IndexedCheck;

  void check() {
    for (RankId rank : program.ranks())
      if (auto limit = model.limitOf(rank))
        room.push_back(*limit - model.staticOf(rank));
    if (room.empty() || !findJobs() || !findCuts())
      return; // Without limits nothing waits for memory.
    if (givesTooMuch) {
      report<diag::DynamicUnsupported>(
          *givesTooMuch, cell(*givesTooMuch),
          "gives back more memory than its stage has taken");
      return;
    }
    leaveOut();
    held.resize(room.size());
    if (searchOne() || search(cuts.size()))
      reportDeadlock();
    else if (looked > maxLooks)
      undecided("too many states may hang");
    else if (isUnreached)
      undecided("what was found needs more memory on the way there");
  }

private:
  bool undecided(const std::string &why) const {
    return context.diags.report<diag::DynamicUndecided>(
        Location(program.name()), why);
  }

  /// Finds what microbatches, or sequences of slices, do.
  bool findJobs() {
    std::map<std::pair<PipeId, uint32_t>, std::vector<ActionId>> rowsOf;
    auto place = [&](ActionId row) {
      Action action = program[row];
      const Pipe &pipe = program.pipe(action.pipe);
      uint32_t number = action.microbatch - pipe.firstMicrobatch;
      return std::tuple(action.pipe, number / pipe.slices, number % pipe.slices,
                        action.stage, action.kind);
    };
    for (ActionId row : program.rows()) {
      if (!program.kindOf(row).isCompute())
        continue;
      if (program[row].hasMicrobatch()) {
        auto [pipe, number, slice, stage, kind] = place(row);
        rowsOf[{pipe, number}].push_back(row);
      } else if (model.of(program[row]) != 0)
        return report<diag::DynamicUnsupported>(
            row, cell(row), "takes memory for all microbatches");
    }
    std::map<std::vector<std::tuple<PipeId, uint32_t, StageId, KindId, Amount>>,
             size_t>
        known;
    for (auto &[key, rows] : rowsOf) {
      llvm::sort(rows,
                 [&](ActionId a, ActionId b) { return place(a) < place(b); });
      decltype(known)::key_type does;
      for (ActionId row : rows) {
        auto [pipe, number, slice, stage, kind] = place(row);
        does.emplace_back(pipe, slice, stage, kind, model.of(program[row]));
      }
      auto [job, isNew] = known.try_emplace(std::move(does), jobs.size());
      if (isNew && !addJob(rows))
        return false;
      ++jobs[job->second].count;
    }
    return true;
  }

  bool addJob(ArrayRef<ActionId> rows) {
    if (rows.size() > maxPlaces)
      return undecided(
          fmt::format("a microbatch has more than {} actions", maxPlaces));
    Job &job = jobs.emplace_back();
    for (ActionId row : rows) {
      Action action = program[row];
      auto *first = llvm::find_if(rows, [&](ActionId other) {
        return program[other].stage == action.stage &&
               program[other].microbatch == action.microbatch;
      });
      job.steps.push_back({row,
                           program.rankOf(row),
                           model.of(action),
                           model.freesRemainder(action),
                           size_t(first - rows.begin()),
                           {}});
      bool isOwn = true;
      forEachDependence(program, index, row, [&](ActionId need) {
        auto *found = llvm::find(rows, need);
        isOwn &= found != rows.end();
        job.steps.back().needs.push_back(found - rows.begin());
      });
      if (!isOwn)
        return report<diag::DynamicUnsupported>(
            row, cell(row), "waits for more than its microbatch");
    }
    return true;
  }

  /// Runs a step of a microbatch that stops at `cut`.
  void run(size_t number, Cut &cut) {
    const Job::Step &step = jobs[cut.job].steps[number];
    decimal::Sum &ofPair = cut.ofPair[step.pair];
    decimal::Sum &held = cut.held[step.rank.value];
    decimal::Sum &peak = cut.peak[step.rank.value];
    peak = std::max(peak, held + std::max<Amount>(step.amount, 0));
    decimal::Sum change = step.freesRemainder ? -ofPair : step.amount;
    ofPair += change;
    held += change;
    if (ofPair < 0)
      givesTooMuch = step.row;
    cut.done[number] = true;
  }

  /// Runs what takes no memory, and finds what is next.
  void settle(Cut &cut) {
    for (bool isChanged = true; std::exchange(isChanged, false);) {
      cut.next.clear();
      for (auto [number, step] : llvm::enumerate(jobs[cut.job].steps)) {
        if (cut.done[number] || !llvm::all_of(step.needs, [&](size_t need) {
              return cut.done[need];
            }))
          continue;
        if (step.amount > 0) {
          cut.next.push_back(number);
        } else {
          run(number, cut);
          isChanged = true;
        }
      }
    }
  }

  /// Each stands after those that lead to it.
  bool findCuts() {
    for (size_t job = 0; job != jobs.size(); ++job) {
      std::set<std::vector<bool>> known;
      auto add = [&](Cut cut) {
        settle(cut);
        if (known.insert(cut.done).second)
          cuts.push_back(std::move(cut));
      };
      size_t numSteps = jobs[job].steps.size(), at = cuts.size();
      std::vector<decimal::Sum> nothing(room.size());
      add({job,
           std::vector<bool>(numSteps),
           nothing,
           nothing,
           std::vector<decimal::Sum>(numSteps),
           {}});
      for (; at != cuts.size(); ++at)
        for (size_t number : std::vector(cuts[at].next)) {
          Cut after = cuts[at];
          run(number, after);
          add(std::move(after));
          if (cuts.size() > maxPlaces ||
              cuts.size() * (room.size() + numSteps) > maxAmounts)
            return undecided("microbatches may stop at too many places");
        }
    }
    return true;
  }

  const Job::Step &step(const Cut &cut, size_t number) const {
    return jobs[cut.job].steps[number];
  }

  /// The most that a rank can hold beside what is in `held`, if the
  /// microbatches that are left stop at the first `end` cuts.
  decimal::Sum most(RankId rank, size_t end) const {
    looked += end + jobs.size();
    std::vector<decimal::Sum> ofJob(jobs.size());
    for (const Cut &cut : ArrayRef(cuts).take_front(end))
      ofJob[cut.job] = std::max(ofJob[cut.job], cut.held[rank.value]);
    decimal::Sum sum = 0;
    for (auto [job, most] : llvm::zip(jobs, ofJob))
      sum += job.count * most;
    return std::min(sum, room[rank.value] - held[rank.value]);
  }

  /// Whether all that a microbatch waits for at a cut can be too much, when the
  /// first `end` cuts are still open.
  bool canStop(const Cut &cut, size_t end) const {
    return llvm::all_of(cut.next, [&](size_t number) {
      const Job::Step &next = step(cut, number);
      return held[next.rank.value] + most(next.rank, end) + next.amount >
             room[next.rank.value];
    });
  }

  /// Leaves out the cuts at which nothing can stop, and the end where nothing
  /// is held there.
  void leaveOut() {
    held.assign(room.size(), 0);
    llvm::erase_if(cuts, [](const Cut &cut) {
      return cut.next.empty() &&
             llvm::all_of(cut.held, [](decimal::Sum sum) { return sum == 0; });
    });
    for (size_t before = 0; before != cuts.size() && looked <= maxLooks;) {
      before = cuts.size();
      for (size_t at = cuts.size(); at-- != 0;)
        if (!canStop(cuts[at], cuts.size()))
          cuts.erase(cuts.begin() + at);
    }
  }

  /// Tries how many microbatches stop at each of the first `end` cuts; true
  /// when none of all can go on.
  bool search(size_t end) {
    looked += cuts.size();
    if (looked > maxLooks)
      return false;
    bool isAnyStopped = false;
    for (const Cut &cut : ArrayRef(cuts).drop_front(end)) {
      if (cut.microbatches != 0 && !canStop(cut, end))
        return false;
      isAnyStopped |= cut.microbatches != 0 && !cut.next.empty();
    }
    if (end == 0) {
      bool isFound = isAnyStopped && isReachable();
      isUnreached |= isAnyStopped && !isFound;
      return isFound;
    }
    Cut &cut = cuts[end - 1];
    stop(cut, maxStops(cut, isAnyStopped));
    for (;; stop(cut, -1)) {
      if (search(end - 1))
        return true;
      if (cut.microbatches == 0)
        return false;
    }
  }

  /// Tries the states in which all that stop do so at one cut.
  bool searchOne() {
    for (Cut &cut : cuts) {
      stop(cut, maxStops(cut, false));
      if (search(0))
        return true;
      stop(cut, -int64_t(cut.microbatches));
    }
    return false;
  }

  /// How many more microbatches can stop at a cut. Where they hold nothing they
  /// make nothing else wait, and one stands for all.
  int64_t maxStops(const Cut &cut, bool isAnyStopped) const {
    decimal::Sum most = jobs[cut.job].count;
    bool holdsAny = false;
    for (auto [own, all, limit] : llvm::zip(cut.held, held, room))
      if (own > 0) {
        most = std::min(most, std::max<decimal::Sum>(limit - all, 0) / own);
        holdsAny = true;
      }
    return int64_t(holdsAny ? most
                            : std::min<decimal::Sum>(most, !isAnyStopped));
  }

  void stop(Cut &cut, int64_t count) {
    cut.microbatches += count;
    jobs[cut.job].count -= count;
    for (auto [own, all] : llvm::zip(cut.held, held))
      all += count * own;
  }

  /// Whether microbatches that run to their cuts one after another fit: first
  /// those that give back the most on the way.
  bool isReachable() const {
    std::vector<const Cut *> order;
    for (const Cut &cut : cuts)
      order.insert(order.end(), cut.microbatches, &cut);
    auto givesBack = [](const Cut *cut) {
      decimal::Sum most = 0;
      for (auto [peak, held] : llvm::zip(cut->peak, cut->held))
        most = std::max(most, peak - held);
      return most;
    };
    llvm::stable_sort(order, [&](const Cut *a, const Cut *b) {
      return givesBack(a) > givesBack(b);
    });
    std::vector<decimal::Sum> sum(room.size());
    for (const Cut *cut : order)
      for (auto [all, own, peak, limit] :
           llvm::zip(sum, cut->held, cut->peak, room)) {
        if (peak > 0 && all + peak > limit)
          return false;
        all += own;
      }
    return true;
  }

  void reportDeadlock() const {
    /// By what they wait for.
    std::map<std::tuple<PipeId, StageId, KindId>, std::pair<uint32_t, ActionId>>
        stopped;
    std::set<RankId> full;
    for (const Cut &cut : cuts)
      for (size_t number : cut.next) {
        const Job::Step &next = step(cut, number);
        Action action = program[next.row];
        if (cut.microbatches == 0)
          continue;
        full.insert(next.rank);
        stopped
            .try_emplace({action.pipe, action.stage, action.kind}, 0, next.row)
            .first->second.first += cut.microbatches;
      }
    auto builder = context.diags.report<diag::DynamicDeadlock>(
        Location(program.name()), full.size() == 1 ? "rank" : "ranks",
        rankList(std::vector(full.begin(), full.end())),
        full.size() == 1 ? "waits" : "wait");
    for (const auto &[what, found] : stopped) {
      auto [count, row] = found;
      auto amount = [&](decimal::Sum sum) {
        return program.units().memory(sum);
      };
      RankId rank = program.rankOf(row);
      builder.note(place(row),
                   "{} microbatch{} before {} of stage {}{}, which takes {}; "
                   "rank {} holds {} of {}",
                   count, count == 1 ? " stops" : "es stop",
                   program.kindOf(row).mnemonic, program[row].stage.value,
                   ofPipe(program[row].pipe), amount(model.of(program[row])),
                   rank.value, amount(held[rank.value] + model.staticOf(rank)),
                   amount(*model.limitOf(rank)));
    }
  }

  MemoryModel model{program};
  std::vector<decimal::Sum> room, held; ///< By rank: for microbatches.
  std::vector<Job> jobs; ///< Whose counts are of those that are left.
  std::vector<Cut> cuts;
  mutable size_t looked = 0;            ///< Amounts.
  std::optional<ActionId> givesTooMuch; ///< An action, if any does.
  bool isUnreached = false; ///< A state that hangs, as far as is known.
};

/// Reports the first action that the rules say nothing of.
bool isCovered(const Program &program, PassContext &context) {
  for (ActionId row : program.rows()) {
    const KindInfo &info = program.kindOf(row);
    if (!info.isCompute())
      continue;
    StringRef why = info.isAsync()        ? "runs beside the compute actions"
                    : info.restores       ? "restores what another gives back"
                    : info.isCollective() ? "meets actions of other ranks"
                                          : "";
    if (!why.empty())
      return reportAt<diag::DynamicUnsupported>(program, context, row,
                                                cell(program, row), why);
  }
  return true;
}

} // namespace

Pass ppcc::verifyDynamic(DynamicRule rule) {
  return checkPass([=](const Program &program, PassContext &context) {
    if (isCovered(program, context) && rule == DynamicRule::Ready)
      checkIndexed<ReadyChecker>(program, context);
  });
}
