// Expands a schedule for all P and M of a region: into classes of ranks whose
// actions and trip counts are affine in P, M, the rank and the iteration.
//
// Algorithm: symbolic execution (King 1976) with backtracking over paths. Each
// question is whether a form is >= 0; `implies` decides it by Farkas' lemma.
// If both answers are possible, the run takes yes, and a later run no. Loops
// are shown by induction as in Family/SymbolicExpand.cpp. A loop in which an
// answer changes is divided there (index-set splitting, Griebl, Feautrier and
// Lengauer 2000); a remainder divides iterations, ranks, or P and M.
// Invariant: form >= 0 and -1 - form >= 0 exclude each other and cover all
// integers, so the paths partition the region and its ranks.
// Cost: at most maxPaths paths of FormDomain::maxSteps statements; a question
// takes at most two linear programs.
// Example: `if r < M { F; }` asks whether r - M >= 0:
//   yes: the class 0 <= r <= P - 1, r - M >= 0, without actions;
//   no:  the class 0 <= r <= P - 1, M - 1 - r >= 0, with F 0.
#include "SymbolicExpand.h"
#include "Simplex.h"
#include "ppcc/Family/SymbolicEvaluator.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/Sequence.h"

using namespace ppcc;
using namespace ppcc::every;
using namespace ppcc::sema;

bool every::implies(const Forms &premises, const Form &goal) {
  Forms all = premises;
  all.push_back(Form(-1) - goal);
  auto multipliers = multipliersFor(all, -1);
  return multipliers && checkMultipliers(all, -1, *multipliers);
}

namespace {

constexpr size_t maxPaths = 64; ///< Through a head, or the body of a rank.

[[noreturn]] void refuse(SourceRange place, std::string why) {
  throw Refusal{place, std::move(why)};
}

/// Ranks whose numbers leave one remainder, at most.
constexpr int64_t maxResidues = 4;

/// Ends the head of what is not admitted.
struct NotAdmitted {
  SourceRange place;
  std::string why;
  bool isInvalid = false; ///< Without a `require` that says so.
};

/// A question whose answer changes at this iteration of a loop.
struct CaseSplit {
  Form iteration;
};

/// A chunk of the ranks of a class.
struct RankChunk {
  PipeId pipe;
};

/// Actions that are pending, in rounds: in each of the `count` rounds these, of
/// the next microbatches.
struct PendingEntry {
  struct Item {
    const RankChunk *chunk;
    KindId kind;
    Form first;
    bool operator==(const Item &) const = default;
  };
  std::vector<Item> items;
  Form count;
  bool operator==(const PendingEntry &) const = default;
  void addNumbers(std::vector<Form *> &all) {
    all.push_back(&count);
    for (Item &item : items)
      all.push_back(&item.first);
  }
};

/// A segment that is laid out.
struct Loop {
  Form count;
  std::vector<Unit> units;
};

/// The answers of one way, and those of the next.
struct BranchPath {
  std::vector<bool> answers;
  size_t consumed = 0;

  bool nextPath() {
    while (!answers.empty() && !answers.back())
      answers.pop_back();
    if (answers.empty())
      return false;
    answers.back() = false;
    consumed = 0;
    return true;
  }
};

/// Answers questions to forms by what is known of their numbers.
class FormDomain {
public:
  using Number = Form;
  static constexpr uint64_t maxSteps = 400'000;
  static Form checked(const Form &form, SourceRange) { return form; }
  [[noreturn]] static void refuse(bool, SourceRange place, std::string why) {
    ::refuse(place, std::move(why));
  }
  [[noreturn]] static void exclude(SourceRange place, std::string why) {
    throw NotAdmitted{place, std::move(why)};
  }

  FormDomain(const Forms &facts, BranchPath &path) : facts(facts), path(path) {}

  bool isNonNegative(const Form &form, SourceRange place) {
    if (form.isConstant())
      return form.at[One] >= 0;
    if (implies(facts, form))
      return true;
    if (implies(facts, Form(-1) - form))
      return false;
    if (forbidsBranching)
      refuse(false, place, "it depends on the numbers");
    if (int64_t coefficient = form.at[Iteration]) {
      Form whole =
          quotient(form.with(Iteration, 0), std::abs(coefficient), place);
      throw CaseSplit{coefficient > 0 ? -1 * whole : whole + 1};
    }
    if (path.consumed == path.answers.size())
      path.answers.push_back(true);
    if (path.answers.size() > maxPaths)
      refuse(false, place, "there are too many cases");
    bool answer = path.answers[path.consumed++];
    facts.push_back((answer ? form : Form(-1) - form).tightened());
    return answer;
  }
  bool isZero(const Form &form, SourceRange place) {
    return isNonNegative(form, place) && isNonNegative(-1 * form, place);
  }
  int64_t constant(const Form &form, SourceRange place, StringRef) const {
    if (!form.isConstant())
      refuse(false, place,
             "this depends on the rank, or on the free parameters");
    return form.at[One];
  }
  Form product(const Form &a, const Form &b, SourceRange place) const {
    if (!a.isConstant() && !b.isConstant())
      refuse(false, place, "two numbers that both grow are multiplied");
    return a.isConstant() ? a.at[One] * b : b.at[One] * a;
  }
  /// Rounded down.
  Form quotient(const Form &a, const Form &b, SourceRange at) const {
    if (b.isConstant() && b.at[One] > 0) {
      int64_t by = b.at[One];
      Form result;
      bool isWhole = true;
      for (unsigned dim = P; dim != numDims; ++dim) {
        isWhole &= a.at[dim] % by == 0;
        result.at[dim] = a.at[dim] / by;
      }
      result.at[One] = (a.at[One] - ((a.at[One] % by) + by) % by) / by;
      if (isWhole)
        return result;
    }
    if (implies(facts, b - 1))
      for (int64_t whole : {0, 1, 2, 3, 4, 5, 6, 7, 8})
        if (Form rest = a - whole * b;
            implies(facts, rest) && implies(facts, b - 1 - rest))
          return whole;
    if (b.isConstant() && b.at[One] > 0 && !forbidsBranching)
      for (Dim dim : {P, M, Rank, every::Iteration})
        if (int64_t parts = b.at[One] / std::gcd(b.at[One], a.at[dim]);
            parts != 1)
          throw ResidueSplit{dim, parts};
    refuse(false, at, "a quotient is not affine");
  }
  Form remainder(const Form &a, const Form &b, SourceRange at) const {
    return a - product(quotient(a, b, at), b, at);
  }

  Forms facts;
  BranchPath &path;
  bool forbidsBranching = false; ///< No question may have two answers.
};

class Run final
    : public family::SymbolicBody<Run, FormDomain, RankChunk, PendingEntry> {
public:
  Run(const Module &module, const Schedule &schedule,
      const FreeParameters &free, const Forms &facts, BranchPath &path)
      : SymbolicBody(module, nullptr, facts, path), facts(numbers.facts),
        schedule(schedule), free(free) {}

  Forms &facts;

  // ---- The head ----

  void head() {
    for (auto [position, param] : llvm::enumerate(schedule.params)) {
      SourceRange place = param.decl->name.range;
      auto consumed =
          findBy(free.values, param.decl->name.text, &ParamValue::name);
      if (param.type != Type::Int && param.type != Type::Bool)
        refuse(place, "a parameter is not an int");
      if (consumed && !parse(param.type, consumed->value))
        refuse(place, param.type == Type::Bool
                          ? "its value is neither true nor false"
                          : "its value is not an int");
    }
    SymbolicBody::head(schedule, free.values, [&](size_t position) {
      return position == free.ranks          ? &free.numRanks
             : position == free.microbatches ? &free.numMicrobatches
                                             : nullptr;
    });
    for (const ast::Stmt *item : schedule.header)
      if (auto *ranks = dyn_cast<ast::RanksItem>(item)) {
        if (evalInt(ranks->count) != free.numRanks)
          refuse(ranks->count->range,
                 "the number of ranks is not the first parameter of `--for`");
      } else if (auto *backward = dyn_cast<ast::BackwardItem>(item)) {
        hasBackward = !backward->condition || evalBool(backward->condition);
      } else if (!isa<ast::LetStmt, ast::RequireItem>(item)) {
        refuse(item->range, "this is not known to be the same for all ranks");
      }
    refuseOthers();
    for (const PipeDecl &decl : schedule.pipes)
      pipe(decl);
  }

  /// Adds what ranks of this number do for which the way holds: the body of `on
  /// rank`.
  void rank(const Form &number, Statements &to) {
    RankClass ranks;
    size_t ofRegion = facts.size();
    ranks.rank = number;
    facts.push_back(Form::of(Rank));
    facts.push_back((free.numRanks - 1 - number).tightened());
    for (auto [p, decl] : llvm::enumerate(schedule.pipes))
      for (int64_t c = 0; c != copies[p]; ++c)
        ranks.chunks.push_back({uint32_t(p), chunk(decl, c, number)});
    for (const Chunk &chunk : ranks.chunks)
      chunks.push_back({PipeId(chunk.pipe)});
    beginRank();
    Frame frame(*this, schedule.numLocals);
    local(0) = {.i = number};
    body(schedule.onRank->body);
    if (isPending(schedule.onRank->range))
      refuse(schedule.onRank->range, "something is left pending");
    // What is there for no number would fit anywhere.
    for (Loop &loop : loops) {
      if (implies(facts, loop.count) && implies(facts, -1 * loop.count))
        continue;
      uint32_t begin = to.units.size();
      for (Unit &unit : loop.units)
        to.units.push_back({std::move(unit.rows), 1,
                            uint32_t(to.classes.size()),
                            uint32_t(ranks.segments.size())});
      ranks.segments.push_back({loop.count, begin, uint32_t(to.units.size())});
    }
    ranks.where.assign(facts.begin() + ofRegion, facts.end());
    to.classes.push_back(std::move(ranks));
  }

  bool hasBackward = true;
  std::vector<every::Pipe> pipes;

private:
  friend Body;
  friend SymbolicBody;

  void refuseOthers() {
    if (!schedule.onRank)
      refuse(schedule.range, "some ranks have a body of their own");
    if (!schedule.rules.empty() || !module.applications.empty())
      refuse(schedule.range, "rules add actions");
    for (const ast::Stmt *item : schedule.decl->items)
      if (isa<ast::SettingItem, ast::ModelItem, ast::ClusterItem>(item))
        refuse(item->range, "costs may differ between ranks");
  }

  void pipe(const PipeDecl &decl) {
    const ast::MicrobatchesItem &item = *decl.microbatches;
    if (decl.loop || !decl.edges.empty() || decl.slices || item.pad)
      refuse(decl.range.valid() ? decl.range : item.range,
             item.pad ? "microbatches are padded"
                      : "a pipe has edges, slices or copies");
    Form first = item.first ? evalInt(item.first) : Form();
    Form count = evalInt(item.end) - first;
    if (!numbers.isNonNegative(first, item.range) ||
        !numbers.isNonNegative(count - 1, item.range))
      throw NotAdmitted{item.end->range, "it has no microbatches", true};
    Form stages = ofPlacement(
        decl, [&] { return evalInt(mappingOf(decl).stages->count); });
    int64_t chunks = stages.at[P] / free.numRanks.at[P];
    if (stages != chunks * free.numRanks || chunks < 1)
      refuse(mappingOf(decl).stages->range,
             "ranks have no fixed number of stages");
    for (size_t i = 0; i != pipes.size(); ++i)
      if (!numbers.isNonNegative(first - pipes[i].first - pipes[i].count,
                                 item.range) &&
          !numbers.isNonNegative(pipes[i].first - first - count, item.range))
        refuse(item.range, "two pipes share microbatches");
    pipes.push_back({stages, first, count});
    padded.push_back(count);
    copies.push_back(chunks);
  }

  const Placement *placementOf(const PipeDecl &decl) const {
    return decl.placement ? &module.placements[slotOf(decl.placement)]
                          : nullptr;
  }
  const StageMapping &mappingOf(const PipeDecl &decl) const {
    const Placement *placement = placementOf(decl);
    return placement ? static_cast<const StageMapping &>(*placement) : decl;
  }
  /// Evaluates in the frame of a placement.
  template <class Fn> Form ofPlacement(const PipeDecl &decl, Fn evaluate) {
    SmallVector<AbstractValue> args;
    size_t size = schedule.headerLocals;
    if (const Placement *placement = placementOf(decl)) {
      size = placement->numLocals;
      for (const ast::Expr *arg : decl.placement->args)
        args.push_back(eval(arg));
    }
    Frame frame(*this, size, args);
    return evaluate();
  }

  /// The stage of a rank's chunk: of the stages c P .. c P + P - 1 the one that
  /// is placed on the rank. Together these are all stages.
  Form chunk(const PipeDecl &decl, int64_t c, const Form &rank) {
    const auto &[stages, map, slot] = mappingOf(decl);
    numbers.forbidsBranching = true;
    for (Form stage :
         {c * free.numRanks + rank, (c + 1) * free.numRanks - 1 - rank}) {
      try {
        if (ofPlacement(decl, [&] {
              local(slot) = {.i = stage};
              return evalInt(map->rank);
            }) == rank) {
          numbers.forbidsBranching = false;
          return stage;
        }
      } catch (const Refusal &) { // Perhaps it is the other.
      }
    }
    refuse(map->rank->range, "the placement is not affine");
  }

  // ---- Loops ----

  void loop(const ast::Stmt *stmt, const Form &iterations,
            LoopBody runBody) override {
    if (iterations.isConstant()) {
      for (int64_t i = 0; i < iterations.at[One]; ++i)
        runBody(Form(i));
      return;
    }
    if (loopStep)
      refuse(stmt->range, "a loop of symbolic length is nested in another");
    if (numbers.isNonNegative(iterations, stmt->range))
      expandLoop(stmt, Form(), iterations, runBody);
  }

  /// The iterations from `begin` to `end`, of which there are 0 or more, `step`
  /// at a time.
  void expandLoop(const ast::Stmt *stmt, const Form &begin, const Form &end,
                  LoopBody runBody, int64_t step = 1) {
    Form all = end - begin;
    // Where there is no iteration, each question would have every answer.
    if (implies(facts, -1 * all))
      return;
    auto single = [&](const Form &from, int64_t count) {
      for (int64_t i = 0; i < count; ++i)
        runBody(from + i);
    };
    if (all.isConstant())
      return single(begin, all.at[One]);
    Form count = numbers.quotient(all, step, stmt->range);
    const State before = state;
    const std::vector<Loop> rowsBefore = loops;
    auto restore = [&, outer = std::tuple(stack, defer, inGroup, groupRows)] {
      state = before;
      loops = rowsBefore;
      std::tie(stack, defer, inGroup, groupRows) = outer;
      isOpen = false;
    };
    // Answers that are given meanwhile divide the ranks, and stay.
    auto assuming = [&](Forms assumed, const Form &number) {
      size_t from = facts.size();
      facts.insert(facts.end(), assumed.begin(), assumed.end());
      loops.push_back({count, {}});
      isOpen = false;
      loopStep = step;
      auto end = llvm::make_scope_exit([&] {
        loopStep = 0;
        facts.erase(facts.begin() + from,
                    facts.begin() + from + assumed.size());
      });
      single(begin + step * number, step);
    };
    try {
      // Its first iteration tells how the state changes,
      assuming({count - 1}, Form());
      loops = rowsBefore;
      State start = before, change = changeOf(start, state, stmt);
      // and any iteration that it does so always.
      Form some = Form::of(every::Iteration);
      state = moved(start, change, some);
      assuming({some, count - 1 - some}, some);
      if (state != moved(start, change, some + 1))
        refuse(stmt->range, "the actions of a loop differ between iterations");
      if (loops.back().units.empty())
        loops.pop_back();
      state = moved(start, change, count);
      llvm::erase_if(state.queue, [](const PendingEntry &entry) {
        return entry.count == Form();
      });
      isOpen = false;
    } catch (const CaseSplit &cut) {
      restore();
      Form root = cut.iteration;
      if (!numbers.isNonNegative(root, stmt->range) ||
          !numbers.isNonNegative(count - root, stmt->range))
        return expandLoop(stmt, begin, end, runBody, step);
      expandLoop(stmt, begin, begin + step * root, runBody);
      return expandLoop(stmt, begin + step * root, end, runBody);
    } catch (const ResidueSplit &parts) {
      if (parts.dim != every::Iteration)
        throw;
      restore();
      return expandLoop(stmt, begin, end, runBody, step * parts.number);
    }
    Form rest = all - step * count;
    single(begin + step * count, numbers.constant(rest, stmt->range, ""));
  }

  /// By how much an iteration changes each number. What an iteration begins to
  /// owe is there before it, too: none of it.
  State changeOf(State &before, State after, const ast::Stmt *stmt) {
    std::vector<PendingEntry> &was = before.queue, &is = after.queue;
    if (is.size() > was.size()) {
      PendingEntry grown = is[was.size()];
      // Several, each once, are pending in rounds.
      for (size_t i = was.size() + 1; i != is.size(); ++i) {
        if (grown.count != Form(1) || is[i].count != Form(1))
          refuse(stmt->range, "the deferred actions change their order");
        llvm::append_range(grown.items, is[i].items);
      }
      is.resize(was.size());
      is.push_back(grown);
      grown.count = Form();
      was.push_back(grown);
    }
    auto isLike = [](const PendingEntry &a, const PendingEntry &b) {
      return std::ranges::equal(
          a.items, b.items,
          [](const PendingEntry::Item &x, const PendingEntry::Item &y) {
            return x.chunk == y.chunk && x.kind == y.kind;
          });
    };
    if (!std::ranges::equal(was, is, isLike))
      refuse(stmt->range, "the deferred actions change their order");
    return difference(before, after, stmt->range,
                      "this depends on the rank, or on the free parameters");
  }

  // ---- Actions ----

  static bool isIn(int64_t part, const RankChunk &chunk) {
    return part == chunk.pipe.value;
  }
  static PipeId pipeOf(int64_t part) { return PipeId(part); }
  [[noreturn]] static RankChunk *unresolved(const std::optional<ChunkArg> &,
                                            SourceRange range, StringRef,
                                            size_t) {
    refuse(range, "it does not say which chunk of a rank");
  }

  static bool admits(const KindInfo &info, const ast::Stmt *stmt) {
    if (info.isDeclared())
      refuse(stmt->range, "there are declared actions");
    return true;
  }

  bool choose(const ast::Stmt *stmt, const KindInfo &info,
              const RankChunk &chunk, const std::optional<Form> &microbatch,
              Form &index) {
    const every::Pipe &pipe = pipes[chunk.pipe.value];
    if (microbatch)
      index = *microbatch - pipe.first;
    if (!numbers.isNonNegative(index, stmt->range) ||
        !numbers.isNonNegative(pipe.count - index - 1, stmt->range))
      refuse(stmt->range, "no microbatch is left for `" + info.mnemonic + "`");
    return true;
  }

  bool issueDeferred(const ast::Stmt *stmt, KindId,
                     const std::optional<ChunkArg> &chunkArg,
                     const std::optional<Form> &microbatch) {
    if (chunkArg || microbatch)
      refuse(stmt->range, "it runs one of several deferred actions");
    if (!isPending(stmt->range))
      refuse(stmt->range, "nothing is pending");
    return takeOldest(stmt);
  }

  /// Adds to what is pending; what goes on as before is one iteration more of
  /// it.
  void enqueue(const RankChunk &chunk, const Form &index, KindId kind,
               const ast::Stmt *) {
    auto &queue = state.queue;
    queue.push_back({{{&chunk, kind, index}}, 1});
    for (size_t iterations = 1; iterations < queue.size(); ++iterations) {
      PendingEntry &before = queue[queue.size() - 1 - iterations];
      auto continues = [&](size_t i) {
        PendingEntry::Item next = before.items[i];
        next.first = next.first + before.count;
        return queue[queue.size() - iterations + i] == PendingEntry{{next}, 1};
      };
      if (before.items.size() == iterations &&
          llvm::all_of(llvm::seq<size_t>(0, iterations), continues)) {
        before.count = before.count + 1;
        queue.resize(queue.size() - iterations);
        return;
      }
    }
  }

  /// Adds a row.
  bool emit(KindId kind, const RankChunk &chunk, const Form &index,
            const ast::Stmt *) {
    if (!hasBackward && module.kinds[kind].defines != slot::Output)
      return true;
    if (!loopStep && !isOpen) {
      loops.push_back({1, {}});
      isOpen = true;
    }
    auto &units = loops.back().units;
    if (!inGroup || groupRows++ == 0)
      units.emplace_back();
    units.back().rows.push_back({kind, uint32_t(&chunk - chunks.data()),
                                 pipes[chunk.pipe.value].first + index});
    return true;
  }

  /// How many are deferred, of all chunks.
  Form pendingOf(const RankChunk *chunk, SourceRange place) const {
    if (chunk)
      refuse(place, "this is not known for all ranks");
    Form count;
    for (const PendingEntry &entry : state.queue)
      count = count + int64_t(entry.items.size()) * entry.count;
    return count;
  }
  bool isPending(SourceRange place) {
    return numbers.isNonNegative(pendingOf(nullptr, place) - 1, place);
  }

  /// Runs the first that is pending, which is there.
  bool takeOldest(const ast::Stmt *stmt) {
    step(stmt->range);
    auto &queue = state.queue;
    for (size_t at = 0; at != queue.size(); ++at) {
      if (!numbers.isNonNegative(queue[at].count - 1, stmt->range))
        continue;
      int64_t iterations = queue[at].items.size();
      if (loopStep % iterations != 0)
        throw ResidueSplit{every::Iteration, iterations};
      PendingEntry::Item item = queue[at].items[0];
      std::vector<PendingEntry> others; // Of the first iteration.
      for (const PendingEntry::Item &other :
           ArrayRef(queue[at].items).drop_front())
        others.push_back({{other}, 1});
      for (PendingEntry::Item &each : queue[at].items)
        each.first = each.first + 1;
      queue[at].count = queue[at].count - 1;
      if (queue[at].count == Form())
        queue.erase(queue.begin() + at);
      queue.insert(queue.begin() + at, others.begin(), others.end());
      issue(item, 1, stmt);
      return true;
    }
    refuse(stmt->range, "nothing is pending");
  }

  void issue(const PendingEntry::Item &item, const Form &count,
             const ast::Stmt *stmt) {
    Form &issued = issuedOf(*item.chunk, item.kind);
    issued = issued + count;
    emit(item.kind, *item.chunk, item.first, stmt);
  }

  using SymbolicBody::run;

  [[noreturn]] bool run(const ast::WhileStmt *stmt) {
    refuse(stmt->range, "the iterations of a `while` are not known");
  }
  static bool endless(const ast::WhileStmt *) {
    llvm_unreachable("there is no `while`");
  }

  bool drain(const RankChunk *only, const ast::DrainStmt *stmt) {
    if (loopStep)
      refuse(stmt->range, "a loop runs actions that other loops deferred");
    std::vector<PendingEntry> queue = std::move(state.queue);
    state.queue.clear();
    for (const PendingEntry &entry : queue) {
      PendingEntry left{{}, entry.count};
      loops.push_back({entry.count, {}});
      isOpen = false;
      loopStep = 1;
      for (PendingEntry::Item item : entry.items)
        if (only && item.chunk != only) {
          left.items.push_back(item);
        } else if (entry.count != Form()) {
          item.first = item.first + Form::of(every::Iteration);
          issue(item, entry.count, stmt);
        }
      loopStep = 0;
      if (loops.back().units.empty())
        loops.pop_back();
      if (!left.items.empty())
        state.queue.push_back(std::move(left));
    }
    return true;
  }

  AbstractValue counterValue(Builtin id, KindId kind,
                             const std::optional<ChunkArg> &arg,
                             SourceRange place) override {
    if (id == Builtin::Ranks)
      return {.i = free.numRanks};
    return {.i = *counterOf(id, kind, arg, place)};
  }

  const Schedule &schedule;
  const FreeParameters &free;
  std::vector<int64_t> copies; ///< By pipe: the stages of a rank.

  std::vector<Loop> loops;
  bool isOpen = false;  ///< Single actions go on in the last segment.
  int64_t loopStep = 0; ///< Turns of its loop that are one; 0 outside.
};

} // namespace

std::vector<Region> every::regionsOf(const Module &module,
                                     const Schedule &schedule,
                                     const FreeParameters &free,
                                     int64_t minRanks) {
  std::vector<Region> regions;
  BranchPath path;
  do {
    Forms facts = {(free.numRanks - minRanks).tightened(),
                   (free.numMicrobatches - 1).tightened(), Form::of(P),
                   Form::of(M)};
    Run run(module, schedule, free, facts, path);
    Region region;
    try {
      run.head();
    } catch (const NotAdmitted &not_) {
      region = {{}, false, not_.place, not_.why, not_.isInvalid};
    }
    region.facts = run.facts;
    regions.push_back(std::move(region));
    if (regions.size() > maxPaths)
      refuse(schedule.range, "there are too many cases");
  } while (path.nextPath());
  return regions;
}

Statements every::expandSymbolically(const Module &module,
                                     const Schedule &schedule,
                                     const FreeParameters &free,
                                     const Forms &facts) {
  Statements statements;
  statements.region = facts;
  statements.kinds = module.kinds;
  std::vector<Form> numbers = {Form::of(Rank)}; // All ranks, in parts.
  while (!numbers.empty()) {
    Form number = numbers.back();
    numbers.pop_back();
    size_t before = statements.classes.size();
    try {
      BranchPath path;
      do {
        Run run(module, schedule, free, facts, path);
        run.head();
        statements.hasBackward = run.hasBackward;
        statements.pipes = run.pipes;
        run.rank(number, statements);
        if (statements.classes.size() > maxPaths)
          refuse(schedule.onRank->range, "there are too many cases");
      } while (path.nextPath());
    } catch (const ResidueSplit &parts) {
      if (parts.dim != Rank || number.at[Rank] > maxResidues)
        throw;
      statements.classes.resize(before);
      llvm::erase_if(statements.units, [&](const Unit &unit) {
        return unit.rankClass >= before;
      });
      for (int64_t i = parts.number; i-- > 0;)
        numbers.push_back(number.with(Rank, Form::of(Rank, parts.number) + i));
    }
  }
  return statements;
}
