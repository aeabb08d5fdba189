// Expands a schedule whose free parameter is base + step n, for all n at once,
// into one template: its rows are affine in n and the iteration j of a loop.
//
// Algorithm: symbolic execution (King 1976) of `on rank` on numbers
// c + a n + b j. A loop whose trip count grows with n is peeled into prologue,
// steady state and epilogue (modulo scheduling, Rau 1994). An iteration after
// the prologue yields the change of the state. The symbolic iteration j is the
// inductive step: from state + j change it must reach state + (j + 1) change.
// Where answers differ between n or iterations, AffineDomain throws a case
// split or residue split, or a retry with more iterations peeled.
// Invariant: by induction, the rows of iteration j are right for all j in 0..n.
// Cost: such a loop's body runs for each peeled iteration and 2 unrollFactor
// times more; all statements together run at most AffineDomain::maxSteps times.
// Example: `repeat M { F; B; }` for M = 3 + n, peeled on both sides:
//   prologue      F 0, B 0
//   steady state  F 1 + j, B 1 + j for j = 0..n
//   epilogue      F 2 + n, B 2 + n

#include "ppcc/Family/SymbolicExpand.h"
#include "Insert.h"

#include "llvm/ADT/ScopeExit.h"

using namespace ppcc;
using namespace ppcc::family;
using namespace ppcc::sema;
using Kind = Outcome::Kind;

namespace {

struct Chunk {
  PipeId pipe;
  StageId stage;
};

/// What is deferred. An entry of a segment is there for the iterations 0..n.
struct PendingEntry {
  const Chunk *chunk;
  Affine index;
  KindId kind;
  uint32_t segment = 0; ///< Entries with the same number take turns; 0 for one.
  bool operator==(const PendingEntry &) const = default;
  void addNumbers(std::vector<Affine *> &all) { all.push_back(&index); }
};

class Run final : public SymbolicBody<Run, AffineDomain, Chunk, PendingEntry> {
public:
  Run(const Module &module, const Schedule &schedule,
      ArrayRef<ParamValue> values, const Family &family, const Instance *sample,
      ArrayRef<TripCounts> counts, const PeelHints &hints,
      TripCounts *tripCountsOut)
      : SymbolicBody(module, sample), schedule(schedule), family(family),
        values(values), counts(counts), hints(hints),
        tripCountsOut(tripCountsOut) {
    numbers.last = family.last;
    numbers.hints = &this->hints;
  }

  Outcome run() {
    Outcome outcome;
    outcome.program.last = family.last;
    Affine number{family.base, family.step, 0};
    head(schedule, values,
         [&](size_t i) { return i == family.param ? &number : nullptr; });
    requireConstantHead(*this, schedule);
    if (!sample)
      return outcome;
    for (size_t decl = 0; decl != schedule.pipes.size(); ++decl)
      pipes(decl);
    disjoint();
    for (uint32_t r = 0; r != sample->program.numRanks; ++r)
      rank(r);
    outcome.program.pipes = std::move(ranges);
    outcome.program.ranks = std::move(ranks);
    return outcome;
  }

private:
  friend Body;
  friend SymbolicBody;

  // ---- Microbatches ----

  /// The pipes that a declaration makes.
  void pipes(size_t number) {
    const PipeDecl &decl = schedule.pipes[number];
    auto add = [&] {
      declOf.push_back(&decl);
      microbatches(decl, sample->program.pipes[ranges.size()]);
    };
    if (!decl.loop)
      return add();
    Frame frame(*this, schedule.headerLocals);
    SmallVector<AbstractValue> made;
    int64_t to = evalInt(decl.loop->to).c;
    for (int64_t i = evalInt(decl.loop->from).c; i < to; ++i) {
      local(slotOf(decl.loop)) = {.i = i};
      // Their numbers stand after those of all that has a name.
      made.push_back({.i = int64_t(schedule.pipes.size() +
                                   schedule.parts.size() + loopPipes++)});
      add();
    }
    if (number < schedule.pipeSlots.size())
      globals[schedule.pipeSlots[number]] = makeList(made);
  }

  void microbatches(const PipeDecl &decl, const Pipe &pipe) {
    const ast::MicrobatchesItem &item = *decl.microbatches;
    Affine first = item.first ? evalInt(item.first) : 0;
    Affine count = evalInt(item.end) - first;
    Affine pad = item.pad ? evalInt(item.pad) : count;
    auto need = [&](Affine x, const ast::Expr *expr, const char *why) {
      if (!numbers.isNonNegative(x, expr->range))
        stop(Kind::Invalid, expr->range, why);
    };
    need(first, item.end, "the first microbatch is below 0");
    need(count - 1, item.end, "it has no microbatches");
    need(pad - count, item.pad ? item.pad : item.end,
         "the padded number of microbatches is too small");
    for (Affine x : {count, pad})
      if (pipe.slices != 1 &&
          !numbers.isZero(numbers.remainder(x, pipe.slices, decl.slices->range),
                          decl.slices->range))
        stop(Kind::Invalid, decl.slices->range,
             "the microbatches are not whole sequences of slices");
    ranges.push_back({first, count});
    padded.push_back(pad);
  }

  void disjoint() {
    for (size_t a = 0; a != ranges.size(); ++a)
      for (size_t b = 0; b != a; ++b) {
        SourceRange place = declOf[a]->range;
        if (!numbers.isNonNegative(
                ranges[a].first - ranges[b].first - ranges[b].count, place) &&
            !numbers.isNonNegative(
                ranges[b].first - ranges[a].first - ranges[a].count, place))
          stop(Kind::Invalid, place, "two pipes share microbatches");
      }
  }

  // ---- Ranks ----

  void rank(uint32_t r) {
    chunks.clear();
    for (auto [p, pipe] : llvm::enumerate(sample->program.pipes))
      for (StageId stage : pipe.stages())
        if (pipe.rankOfStage[stage.value].value == r)
          chunks.push_back({PipeId(p), stage});
    beginRank();
    rows = &ranks.emplace_back();
    number = r;
    loops.clear();
    occurrences.clear();
    Frame frame(*this, schedule.numLocals);
    local(0) = {.i = int64_t(r)};
    const ast::OnRankItem *onRank = sample->onRank(RankId(r));
    body(onRank->body);
    if (!state.queue.empty())
      stop(Kind::Invalid, onRank->range,
           fmt::format("`{}` is left pending on rank {}",
                       module.kinds[state.queue.front().kind].mnemonic, r));
    Inserter inserter(*this, sample->program, r, loops, *rows);
    for (const BoundRule &rule : sample->rules)
      for (const Insertion &insertion : rule.rule->inserts)
        inserter.follow(rule, insertion);
  }

  // ---- Loops ----

  void loop(const ast::Stmt *stmt, const Affine &iterations,
            LoopBody runBody) override {
    if (iterations.isConstant() || family.last == 0) {
      for (int64_t i = 0; i < iterations.c; ++i)
        runBody(i);
      return;
    }
    if (!numbers.isNonNegative(iterations - 1, stmt->range))
      return;
    if (numbers.inLoop)
      stop(Kind::Undecided, stmt->range,
           "a loop that grows with the microbatches is nested in another");
    if (iterations.n < 0)
      stop(Kind::Undecided, stmt->range,
           "a loop gets shorter with more microbatches");
    expandLoop(stmt, iterations.c, iterations.n, runBody);
  }

  uint32_t openLoop() {
    loops.push_back(numbers.steadyLoop);
    return loops.size() - 1;
  }

  /// A loop of `iterations` + `unrollFactor` n iterations: some of them, a
  /// window, the rest.
  void expandLoop(const ast::Stmt *stmt, int64_t iterations,
                  int64_t unrollFactor, LoopBody runBody) {
    auto hint = hints.find(stmt->id);
    PeelCounts peeled = hint == hints.end() ? PeelCounts() : hint->second;
    int64_t spare = iterations - unrollFactor - peeled.before - peeled.after;
    if (spare < 0)
      stop(Kind::CaseSplit, stmt->range, "a loop has too few iterations",
           (-spare + unrollFactor - 1) / unrollFactor);
    int64_t early = family.peeledSide == PeeledSide::Both     ? spare / 2
                    : family.peeledSide == PeeledSide::Before ? spare
                                                              : 0;
    peeled.before += early;
    peeled.after += spare - early;
    int64_t at = 0;
    for (; at != peeled.before; ++at)
      runBody(at);

    numbers.steadyLoop = {stmt->id, peeled, unrollFactor};
    // Its first iteration tells how the state changes,
    State before = state;
    size_t rowsBefore = rows->size();
    for (int64_t i = 0; i != unrollFactor; ++i)
      runBody(at + i);
    rows->resize(rowsBefore);
    std::vector<PendingEntry> grown;
    State change = changeOf(before, state, grown, stmt);
    // and any iteration that it does so always.
    State atTurn = moved(before, change, {0, 0, 1});
    state = atTurn;
    size_t queued = state.queue.size();
    if (!grown
             .empty()) // What iterations before have left, which none may take.
      state.queue.push_back({nullptr, {}, KindId(), noSegment});
    numbers.inLoop = true;
    currentLoop = openLoop();
    for (int64_t i = 0; i != unrollFactor; ++i)
      runBody({at + i, 0, unrollFactor});
    currentLoop = proof::noLoop;
    numbers.inLoop = false;
    State wanted = moved(before, change, {1, 0, 1});
    std::vector<PendingEntry> segment;
    if (!grown.empty()) {
      if (state.queue.size() != queued + 1 + grown.size())
        stop(Kind::Undecided, stmt->range,
             "one loop both adds to the deferred actions and runs them");
      segment.assign(state.queue.begin() + queued + 1, state.queue.end());
      state.queue.resize(queued);
    }
    if (state != wanted)
      stop(Kind::Undecided, stmt->range,
           "the actions of a loop differ between iterations");
    state = moved(before, change, {1, 1, 0});
    for (PendingEntry &entry : segment) {
      entry.segment = segments;
      state.queue.push_back(entry);
    }
    segments += !segment.empty();
    for (at += unrollFactor; at != iterations; ++at)
      runBody({at, unrollFactor, 0});
  }

  /// By how much an iteration changes each number; what it adds to the queue
  /// without taking anything goes to `grown`.
  State changeOf(const State &before, State after,
                 std::vector<PendingEntry> &grown, const ast::Stmt *stmt) {
    size_t size = before.queue.size();
    if (after.queue.size() < size)
      numbers.peelPrologue(stmt->range,
                           "a loop runs actions that were deferred before it");
    bool isKept = std::equal(before.queue.begin(), before.queue.end(),
                             after.queue.begin());
    if (after.queue.size() > size && !isKept)
      numbers.peelPrologue(
          stmt->range,
          "one loop both adds to the deferred actions and runs them");
    grown.assign(after.queue.begin() + size, after.queue.end());
    after.queue.resize(size);
    auto isLike = [](const PendingEntry &a, const PendingEntry &b) {
      return a.chunk == b.chunk && a.kind == b.kind && a.segment == b.segment;
    };
    if (!std::ranges::equal(before.queue, after.queue, isLike))
      numbers.peelPrologue(stmt->range,
                           "the deferred actions change their order");
    return difference(
        before, after, stmt->range,
        "an effect of a loop depends on the parameter of `--for`");
  }

  using SymbolicBody::run;

  bool run(const ast::WhileStmt *stmt) {
    auto continues = [&] { return evalBool(stmt->condition); };
    auto key = std::pair(number, stmt->id);
    size_t occurrence = numbers.inLoop ? 0 : occurrences[stmt->id]++;
    int64_t iterations = 0, unrollFactor = 0;
    if (!numbers.inLoop && counts.size() > 2) {
      auto of = [&](size_t n) -> int64_t {
        auto found = counts[n].find(key);
        return found == counts[n].end() || found->second.size() <= occurrence
                   ? -1
                   : found->second[occurrence];
      };
      iterations = of(0);
      unrollFactor = of(1) - iterations;
      if (iterations < 0 || of(1) < 0 || of(2) - of(1) != unrollFactor)
        unrollFactor = 0;
    }
    if (unrollFactor > 0) {
      expandLoop(stmt, iterations, unrollFactor, [&](const Affine &) {
        if (!continues())
          stop(Kind::Undecided, stmt->range,
               "the iterations of the loop do not grow evenly");
        iterate(stmt);
      });
      iterations = 0;
    }
    int64_t more = 0;
    for (; continues(); ++more) {
      if (unrollFactor > 0)
        stop(Kind::Undecided, stmt->range,
             "the iterations of the loop do not grow evenly");
      iterate(stmt);
    }
    if (tripCountsOut)
      (*tripCountsOut)[key].push_back(more);
    return true;
  }
  [[noreturn]] bool endless(const ast::WhileStmt *stmt) {
    stop(Kind::Invalid, stmt->range, "the loop does not end");
  }

  // ---- Actions ----

  bool isIn(int64_t part, const Chunk &chunk) const {
    return sample->parts[part].has(chunk.pipe, chunk.stage);
  }
  PipeId pipeOf(int64_t part) const {
    return sample->parts[part].stages.front().pipe;
  }
  [[noreturn]] Chunk *unresolved(const std::optional<ChunkArg> &arg,
                                 SourceRange range, StringRef, size_t) {
    if (arg && !arg->isPipe)
      stop(Kind::Invalid, arg->range,
           fmt::format("rank {} has no chunk {}", number, arg->value));
    stop(Kind::Invalid, range,
         chunks.empty()
             ? fmt::format("rank {} has no chunk", number)
             : fmt::format("it does not say which chunk of rank {}", number));
  }

  /// Ends with an error where x < 0 in some iteration: for all n, or for those
  /// from some on.
  void need(Affine x, SourceRange place, const std::string &why) {
    for (Affine f : {Affine{x.c, x.n, 0}, Affine{x.c, x.n + x.j, 0}}) {
      int64_t first = f.c >= 0 && f.n < 0 ? f.c / -f.n + 1 : 0;
      if (first > 0 && first <= family.last)
        stop(Kind::Invalid, place, why, first);
      if (!numbers.isNonNegative(f, place))
        stop(Kind::Invalid, place, why);
    }
  }

  bool admits(const KindInfo &info, const ast::Stmt *stmt) const {
    if (info.isMove())
      stop(Kind::Undecided, stmt->range,
           "`" + info.mnemonic + "` moves between ranks");
    return true;
  }

  bool choose(const ast::Stmt *stmt, const KindInfo &info, const Chunk &chunk,
              std::optional<Affine> microbatch, Affine &index) {
    const Affine pad = padded[chunk.pipe.value];
    if (microbatch) {
      index = *microbatch - ranges[chunk.pipe.value].first;
      for (Affine x : {index, pad - index - 1})
        need(x, stmt->range, "the stage has no such microbatch");
      return true;
    }
    need(pad - index - 1, stmt->range,
         "no microbatch is left for `" + info.mnemonic + "`");
    int64_t slices = sample->program.pipes[chunk.pipe.value].slices;
    if (slices != 1 && (info.defines & slot::InputGrad)) {
      Affine slice = numbers.remainder(index, slices, stmt->range);
      index = index - slice + slices - 1 - slice;
    }
    return true;
  }

  void enqueue(const Chunk &chunk, const Affine &index, KindId kind,
               const ast::Stmt *) {
    state.queue.push_back({&chunk, index, kind});
  }

  /// Adds the row, unless the microbatch is only padding.
  bool emit(KindId kind, const Chunk &chunk, Affine index,
            const ast::Stmt *stmt) {
    const proof::MicrobatchRange &range = ranges[chunk.pipe.value];
    if (!numbers.isNonNegative(range.count - index - 1, stmt->range))
      return true;
    // A schedule that only goes forward drops the rest.
    const KindInfo &info = module.kinds[kind];
    if (!sample->program.hasBackward && !info.isDeclared() &&
        info.defines != slot::Output)
      return true;
    proof::Row row;
    row.kind = kind;
    row.pipe = chunk.pipe;
    row.stage = chunk.stage;
    row.microbatch =
        info.scope == KindScope::Microbatch
            ? AffineDomain::checked(range.first + index, stmt->range)
            : Action::noMicrobatch;
    row.loop = currentLoop;
    row.joined = inGroup && groupRows++ != 0;
    row.sourceLoc = stmt->range.begin.raw;
    rows->push_back(row);
    return true;
  }

  bool take(size_t place, const ast::Stmt *stmt) {
    PendingEntry entry = state.queue[place];
    if (entry.segment)
      stop(Kind::Undecided, stmt->range,
           "it runs one deferred action of a number that grows");
    state.queue.erase(state.queue.begin() + place);
    issue(entry, stmt, 1);
    return true;
  }
  bool takeOldest(const ast::Stmt *stmt) { return take(0, stmt); }

  void issue(const PendingEntry &entry, const ast::Stmt *stmt, Affine count) {
    Affine &issued = issuedOf(*entry.chunk, entry.kind);
    issued = issued + count;
    ++progress;
    emit(entry.kind, *entry.chunk, entry.index, stmt);
  }

  bool issueDeferred(const ast::ActionStmt *stmt, KindId kind,
                     const std::optional<ChunkArg> &chunkArg,
                     std::optional<Affine> microbatch) {
    size_t place = 0;
    if (chunkArg || microbatch) {
      const Chunk *chunk =
          resolve(chunkArg, stmt->range, module.kinds[kind].mnemonic);
      Affine index;
      if (microbatch)
        index = *microbatch - ranges[chunk->pipe.value].first;
      for (; place != state.queue.size(); ++place) {
        const PendingEntry &entry = state.queue[place];
        if (entry.segment ||
            (entry.chunk == chunk &&
             (!microbatch || numbers.isZero(entry.index - index, stmt->range))))
          break;
      }
    }
    if (place == state.queue.size())
      stop(Kind::Invalid, stmt->range,
           "the action that it runs is not pending");
    return take(place, stmt);
  }

  /// How many are deferred, of a chunk or of all.
  Affine pendingOf(const Chunk *chunk, SourceRange place) const {
    Affine count;
    for (const PendingEntry &entry : state.queue) {
      if (entry.segment == noSegment)
        numbers.peelPrologue(place, "it counts actions that grow in a loop");
      if (!chunk || entry.chunk == chunk)
        count = count + (entry.segment ? Affine{1, 1, 0} : 1);
    }
    return count;
  }

  bool drain(const Chunk *chunk, const ast::DrainStmt *stmt) {
    std::vector<PendingEntry> rest, queue = std::move(state.queue);
    uint32_t open = 0; // The segment that is taken.
    for (const PendingEntry &entry : queue) {
      if (chunk && entry.chunk != chunk) {
        rest.push_back(entry);
        continue;
      }
      if (entry.segment && (numbers.inLoop || entry.segment == noSegment))
        stop(Kind::Undecided, stmt->range,
             "a loop runs actions that other loops deferred");
      if (!entry.segment) {
        issue(entry, stmt, 1);
        continue;
      }
      numbers.inLoop = true;
      // No loop of its iterations can begin, or end, elsewhere.
      numbers.steadyLoop = {stmt->id, {}, AffineDomain::maxPeeled + 1};
      if (std::exchange(open, entry.segment) != entry.segment)
        openLoop();
      currentLoop = loops.size() - 1;
      issue(entry, stmt, {1, 1, 0});
      numbers.inLoop = false;
      currentLoop = proof::noLoop;
    }
    state.queue = std::move(rest);
    return true;
  }

  AbstractValue counterValue(Builtin id, KindId kind,
                             const std::optional<ChunkArg> &arg,
                             SourceRange place) override {
    if (id == Builtin::Ranks && sample)
      return {.i = sample->program.numRanks};
    if (id == Builtin::Ranks)
      stop(Kind::Undecided, place,
           "the head of the schedule depends on the rank");
    return {.i = *counterOf(id, kind, arg, place)};
  }

  static constexpr uint32_t noSegment = 0xFFFFFFFF;

  const Schedule &schedule;
  const Family &family;
  ArrayRef<ParamValue> values;
  ArrayRef<TripCounts> counts;
  PeelHints hints;
  TripCounts *tripCountsOut;

  std::vector<proof::MicrobatchRange> ranges; ///< By pipe.
  std::vector<const PipeDecl *> declOf;       ///< By pipe.
  size_t loopPipes = 0;
  std::vector<std::vector<proof::Row>> ranks;

  // Of the rank that is laid out.
  uint32_t number = 0;
  std::vector<proof::Row> *rows = nullptr;
  std::vector<SteadyLoop> loops; ///< By number.
  uint32_t currentLoop = proof::noLoop;
  uint32_t segments = 1;
  std::map<uint32_t, size_t> occurrences; ///< Of `while`, by statement.
};

} // namespace

Outcome
family::expandSymbolically(const Module &module, const Schedule &schedule,
                           ArrayRef<ParamValue> values, const Family &family,
                           const Instance *sample, ArrayRef<TripCounts> counts,
                           const PeelHints &hints, TripCounts *tripCountsOut) {
  try {
    return Run(module, schedule, values, family, sample, counts, hints,
               tripCountsOut)
        .run();
  } catch (Stop &stopped) {
    return std::move(stopped.outcome);
  }
}
