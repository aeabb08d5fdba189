// Runs the head and the body of `on rank` on affine forms. A question with two
// answers divides the numbers; all ways are gone.
#include "Layout.h"
#include "Simplex.h"
#include "ppcc/Family/Terms.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/Sequence.h"

using namespace ppcc;
using namespace ppcc::every;
using namespace ppcc::sema;

bool every::implies(const Forms &premises, const Form &goal) {
  Forms all = premises;
  all.push_back(Form(-1) - goal);
  auto multipliers = multipliersFor(all, -1);
  return multipliers && shows(all, -1, *multipliers);
}

namespace {

constexpr size_t mostPaths = 64; ///< Through a head, or the body of a rank.

[[noreturn]] void refuse(SourceRange place, std::string why) {
  throw Refusal{place, std::move(why)};
}

/// Ranks whose numbers leave one remainder, at most.
constexpr int64_t mostParts = 4;

/// Ends the head of what is not admitted.
struct NotAdmitted {
  SourceRange place;
  std::string why;
};

/// A question whose answer changes at this turn of a loop.
struct Cut {
  Form turn;
};

/// Actions that are owed, in turns: in each of the `count` turns these, of the
/// next microbatches.
struct Owed {
  struct Item {
    uint32_t chunk;
    KindId kind;
    Form first;
    bool operator==(const Item &) const = default;
  };
  std::vector<Item> items;
  Form count;
  bool operator==(const Owed &) const = default;
};

/// A segment that is laid out.
struct Loop {
  Form count;
  std::vector<Unit> units;
};

struct State {
  std::vector<Form> issued; ///< By chunk and slot.
  std::vector<Owed> queue;
  bool operator==(const State &) const = default;

  /// All that turns of a loop change.
  std::vector<Form *> numbers() {
    std::vector<Form *> all;
    for (Form &count : issued)
      all.push_back(&count);
    for (Owed &owed : queue) {
      all.push_back(&owed.count);
      for (Owed::Item &item : owed.items)
        all.push_back(&item.first);
    }
    return all;
  }
};

/// The answers of one way, and those of the next.
struct Way {
  std::vector<bool> answers;
  size_t given = 0;

  bool toNext() {
    while (!answers.empty() && !answers.back())
      answers.pop_back();
    if (answers.empty())
      return false;
    answers.back() = false;
    given = 0;
    return true;
  }
};

/// Answers questions to forms by what is known of their numbers.
class Questions {
public:
  using Number = Form;
  static constexpr uint64_t mostSteps = 400'000;
  static Form checked(const Form &form, SourceRange) { return form; }
  [[noreturn]] static void refuse(bool, SourceRange place, std::string why) {
    ::refuse(place, std::move(why));
  }
  [[noreturn]] static void exclude(SourceRange place, std::string why) {
    throw NotAdmitted{place, std::move(why)};
  }

  Questions(const Forms &facts, Way &way) : facts(facts), way(way) {}

  bool isNatural(const Form &form, SourceRange place) {
    if (form.isConstant())
      return form.at[One] >= 0;
    if (implies(facts, form))
      return true;
    if (implies(facts, Form(-1) - form))
      return false;
    if (isBound)
      refuse(false, place, "it depends on the numbers");
    if (int64_t perTurn = form.at[Turn]) {
      Form whole = quotient(form.with(Turn, 0), std::abs(perTurn), place);
      throw Cut{perTurn > 0 ? -1 * whole : whole + 1};
    }
    if (way.given == way.answers.size())
      way.answers.push_back(true);
    if (way.answers.size() > mostPaths)
      refuse(false, place, "there are too many cases");
    bool answer = way.answers[way.given++];
    facts.push_back((answer ? form : Form(-1) - form).tightened());
    return answer;
  }
  bool isZero(const Form &form, SourceRange place) {
    return isNatural(form, place) && isNatural(-1 * form, place);
  }
  int64_t constant(const Form &form, SourceRange place, const char *) const {
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
    if (b.isConstant() && b.at[One] > 0 && !isBound)
      for (Dim dim : {P, M, Rank, every::Turn})
        if (int64_t parts = b.at[One] / std::gcd(b.at[One], a.at[dim]);
            parts != 1)
          throw Parts{dim, parts};
    refuse(false, at, "a quotient that is no affine form");
  }
  Form remainder(const Form &a, const Form &b, SourceRange at) const {
    return a - product(quotient(a, b, at), b, at);
  }

  Forms facts;
  Way &way;
  bool isBound = false; ///< No question may have two answers.
};

class Run final : public family::TermsOf<Questions> {
public:
  Run(const Module &module, const Schedule &schedule, const Free &free,
      const Forms &facts, Way &way)
      : TermsOf(module, nullptr, facts, way), facts(numbers.facts),
        schedule(schedule), free(free) {}

  Forms &facts;

  // ---- The head ----

  void head() {
    for (auto [position, param] : llvm::enumerate(schedule.params)) {
      SourceRange place = param.decl->name.range;
      auto given =
          findBy(free.values, param.decl->name.text, &ParamValue::name);
      int64_t number;
      if (param.type != Type::Int && param.type != Type::Bool)
        refuse(place, "a parameter is no int");
      if (given && param.type == Type::Bool && given->value != "true" &&
          given->value != "false")
        refuse(place, "its value is neither true nor false");
      if (given && param.type == Type::Int &&
          StringRef(given->value).getAsInteger(10, number))
        refuse(place, "its value is no int");
    }
    TermsOf::head(schedule, free.values, [&](size_t position) {
      return position == free.ranks          ? &free.numRanks
             : position == free.microbatches ? &free.numMicrobatches
                                             : nullptr;
    });
    for (const ast::Stmt *item : schedule.header)
      if (auto *ranks = dyn_cast<ast::RanksItem>(item)) {
        if (evalInt(ranks->count) != free.numRanks)
          refuse(ranks->count->range,
                 "the ranks are not those of the first parameter of `--for`");
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
    chunks = ranks.chunks;
    state.issued.resize(chunks.size() * slot::count);
    frame.assign(schedule.numLocals, Term());
    frame[0].i = number;
    body(schedule.onRank->body);
    if (numbers.isNatural(pending() - 1, schedule.onRank->range))
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
    if (!numbers.isNatural(first, item.range) ||
        !numbers.isNatural(count - 1, item.range))
      throw NotAdmitted{item.end->range, "there is no microbatch"};
    Form stages =
        ofPlacement(decl, [&] { return evalInt(stagesOf(decl)->count); });
    int64_t chunks = stages.at[P] / free.numRanks.at[P];
    if (stages != chunks * free.numRanks || chunks < 1)
      refuse(stagesOf(decl)->range, "ranks have no fixed number of stages");
    for (size_t i = 0; i != pipes.size(); ++i)
      if (!numbers.isNatural(first - pipes[i].first - pipes[i].count,
                             item.range) &&
          !numbers.isNatural(pipes[i].first - first - count, item.range))
        refuse(item.range, "two pipes share microbatches");
    pipes.push_back({stages, first, count});
    copies.push_back(chunks);
  }

  const Placement *placementOf(const PipeDecl &decl) const {
    return decl.placement
               ? &module.placements[module.stmts[decl.placement->id].index]
               : nullptr;
  }
  const ast::StagesItem *stagesOf(const PipeDecl &decl) const {
    const Placement *placement = placementOf(decl);
    return placement ? placement->stages : decl.stages;
  }
  /// Evaluates in the frame of a placement.
  template <class Fn> Form ofPlacement(const PipeDecl &decl, Fn evaluate) {
    const Placement *placement = placementOf(decl);
    std::vector<Term> inner(placement ? placement->numLocals
                                      : schedule.headerLocals);
    if (placement)
      for (size_t i = 0; i != decl.placement->args.size(); ++i)
        inner[i] = eval(decl.placement->args[i]);
    std::swap(frame, inner);
    Form result = evaluate();
    std::swap(frame, inner);
    return result;
  }

  /// The stage of a rank's chunk: of the stages c P .. c P + P - 1 the one that
  /// is placed on the rank. Together these are all stages.
  Form chunk(const PipeDecl &decl, int64_t c, const Form &rank) {
    const Placement *placement = placementOf(decl);
    const ast::StageMapItem *map =
        placement ? placement->stageMap : decl.stageMap;
    uint32_t slot = placement ? placement->stageSlot : decl.stageSlot;
    numbers.isBound = true;
    for (Form stage :
         {c * free.numRanks + rank, (c + 1) * free.numRanks - 1 - rank}) {
      std::vector<Term> outer = frame;
      try {
        if (ofPlacement(decl, [&] {
              frame[slot].i = stage;
              return evalInt(map->rank);
            }) == rank) {
          numbers.isBound = false;
          return stage;
        }
      } catch (const Refusal &) {
        frame = outer;
      }
    }
    refuse(map->rank->range, "stages lie on ranks in no affine way");
  }

  // ---- Loops ----

  void loop(const ast::Stmt *stmt, const Form &turns, Turn turn) override {
    if (turns.isConstant()) {
      for (int64_t i = 0; i < turns.at[One]; ++i)
        turn(Form(i));
      return;
    }
    if (stepOfWindow)
      refuse(stmt->range, "a loop that grows stands in another");
    if (numbers.isNatural(turns, stmt->range))
      window(stmt, Form(), turns, turn);
  }

  /// The turns from `begin` to `end`, of which there are 0 or more, `step` at a
  /// time.
  void window(const ast::Stmt *stmt, const Form &begin, const Form &end,
              Turn turn, int64_t step = 1) {
    Form all = end - begin;
    // Where there is no turn, each question would have every answer.
    if (implies(facts, -1 * all))
      return;
    auto single = [&](const Form &from, int64_t count) {
      for (int64_t i = 0; i < count; ++i)
        turn(from + i);
    };
    if (all.isConstant())
      return single(begin, all.at[One]);
    Form count = numbers.quotient(all, step, stmt->range);
    const State before = state;
    const std::vector<Loop> rowsBefore = loops;
    auto restore = [&, outer = std::tuple(frame, defer, inGroup, groupRows)] {
      state = before;
      loops = rowsBefore;
      std::tie(frame, defer, inGroup, groupRows) = outer;
      isOpen = false;
    };
    // Answers that are given meanwhile divide the ranks, and stay.
    auto assuming = [&](Forms assumed, const Form &number) {
      size_t from = facts.size();
      facts.insert(facts.end(), assumed.begin(), assumed.end());
      loops.push_back({count, {}});
      isOpen = false;
      stepOfWindow = step;
      auto end = llvm::make_scope_exit([&] {
        stepOfWindow = 0;
        facts.erase(facts.begin() + from,
                    facts.begin() + from + assumed.size());
      });
      single(begin + step * number, step);
    };
    try {
      // Its first turn tells how the state changes,
      assuming({count - 1}, Form());
      loops = rowsBefore;
      State start = before, change = difference(start, state, stmt);
      // and any turn that it does so always.
      Form some = Form::of(every::Turn);
      state = moved(start, change, some);
      assuming({some, count - 1 - some}, some);
      if (state != moved(start, change, some + 1))
        refuse(stmt->range, "what a loop does changes from turn to turn");
      if (loops.back().units.empty())
        loops.pop_back();
      state = moved(start, change, count);
      llvm::erase_if(state.queue,
                     [](const Owed &owed) { return owed.count == Form(); });
      isOpen = false;
    } catch (const Cut &cut) {
      restore();
      Form root = cut.turn;
      if (!numbers.isNatural(root, stmt->range) ||
          !numbers.isNatural(count - root, stmt->range))
        return window(stmt, begin, end, turn, step);
      window(stmt, begin, begin + step * root, turn);
      return window(stmt, begin + step * root, end, turn);
    } catch (const Parts &parts) {
      if (parts.dim != every::Turn)
        throw;
      restore();
      return window(stmt, begin, end, turn, step * parts.number);
    }
    Form rest = all - step * count;
    single(begin + step * count, numbers.constant(rest, stmt->range, ""));
  }

  /// By how much a turn changes each number. What a turn begins to owe is there
  /// before it, too: none of it.
  State difference(State &before, State after, const ast::Stmt *stmt) {
    std::vector<Owed> &was = before.queue, &is = after.queue;
    if (is.size() > was.size()) {
      Owed grown = is[was.size()];
      // Several, each once, are owed in turns.
      for (size_t i = was.size() + 1; i != is.size(); ++i) {
        if (grown.count != Form(1) || is[i].count != Form(1))
          refuse(stmt->range, "what is deferred changes its order");
        llvm::append_range(grown.items, is[i].items);
      }
      is.resize(was.size());
      is.push_back(grown);
      grown.count = Form();
      was.push_back(grown);
    }
    auto isLike = [](const Owed &a, const Owed &b) {
      return std::ranges::equal(a.items, b.items,
                                [](const Owed::Item &x, const Owed::Item &y) {
                                  return x.chunk == y.chunk && x.kind == y.kind;
                                });
    };
    if (!std::ranges::equal(was, is, isLike))
      refuse(stmt->range, "what is deferred changes its order");
    State change = before;
    for (auto [by, from, to] :
         llvm::zip(change.numbers(), before.numbers(), after.numbers()))
      *by = numbers.constant(*to - *from, stmt->range, "");
    return change;
  }

  static State moved(State state, State change, const Form &turns) {
    for (auto [number, by] : llvm::zip(state.numbers(), change.numbers()))
      *number = *number + by->at[One] * turns;
    return state;
  }

  // ---- Actions ----

  uint32_t resolve(const ast::Expr *arg, SourceRange place) {
    if (arg && type(arg) == Type::Part)
      refuse(place, "parts are not known here");
    int64_t value = arg ? numbers.constant(evalInt(arg), arg->range, "") : 0;
    uint32_t found = 0, matches = 0;
    for (auto [i, chunk] : llvm::enumerate(chunks))
      if (!arg || (type(arg) == Type::Pipe ? chunk.pipe == value
                                           : int64_t(i) == value)) {
        found = i;
        ++matches;
      }
    if (matches != 1)
      refuse(place, "it does not say which chunk of a rank");
    return found;
  }

  Form &issuedOf(uint32_t chunk, KindId kind) {
    return state
        .issued[chunk * slot::count +
                std::countr_zero(unsigned(module.kinds[kind].mainSlot()))];
  }

  void action(const ast::ActionStmt *stmt) override {
    KindId kind = KindId(module.stmts[stmt->id].index);
    const ast::Expr *chunkArg = nullptr, *microbatch = nullptr;
    for (const ast::Argument &arg : stmt->args)
      (arg.label.text.empty() ? chunkArg : microbatch) = arg.value;
    if (module.kinds[kind].isDeclared())
      refuse(stmt->range, "there are declared actions");
    if (deferred.count(kind.value)) {
      if (chunkArg || microbatch)
        refuse(stmt->range, "it takes one of many deferred actions");
      if (!numbers.isNatural(pending() - 1, stmt->range))
        refuse(stmt->range, "nothing is pending");
      return take(stmt);
    }
    if (defer.active)
      if (auto rest = module.kinds.without(kind, defer.kind))
        kind = *rest;
    uint32_t chunk = resolve(chunkArg, stmt->range);
    const every::Pipe &pipe = pipes[chunks[chunk].pipe];
    Form &issued = issuedOf(chunk, kind);
    Form index = microbatch ? evalInt(microbatch) - pipe.first : issued;
    if (!numbers.isNatural(index, stmt->range) ||
        !numbers.isNatural(pipe.count - index - 1, stmt->range))
      refuse(stmt->range,
             "no microbatch is left for `" + module.kinds[kind].letters + "`");
    issued = issued + 1;
    if (auto left = leaves.find(kind.value); left != leaves.end())
      owe({chunk, left->second, index});
    emit(kind, chunk, index);
    if (!inGroup)
      takeLate(stmt);
  }

  /// Adds to what is owed; what goes on as before is one turn more of it.
  void owe(const Owed::Item &item) {
    auto &queue = state.queue;
    queue.push_back({{item}, 1});
    for (size_t turns = 1; turns < queue.size(); ++turns) {
      Owed &before = queue[queue.size() - 1 - turns];
      auto goesOn = [&](size_t i) {
        Owed::Item next = before.items[i];
        next.first = next.first + before.count;
        return queue[queue.size() - turns + i] == Owed{{next}, 1};
      };
      if (before.items.size() == turns &&
          llvm::all_of(llvm::seq<size_t>(0, turns), goesOn)) {
        before.count = before.count + 1;
        queue.resize(queue.size() - turns);
        return;
      }
    }
  }

  /// Adds a row.
  void emit(KindId kind, uint32_t chunk, const Form &index) {
    if (!hasBackward && module.kinds[kind].defines != slot::Output)
      return;
    if (!stepOfWindow && !isOpen) {
      loops.push_back({1, {}});
      isOpen = true;
    }
    auto &units = loops.back().units;
    if (!inGroup || groupRows++ == 0)
      units.emplace_back();
    units.back().rows.push_back(
        {kind, chunk, pipes[chunks[chunk].pipe].first + index});
  }

  Form pending() const {
    Form count;
    for (const Owed &owed : state.queue)
      count = count + int64_t(owed.items.size()) * owed.count;
    return count;
  }

  /// Does the first of what is owed, which is there.
  void take(const ast::Stmt *stmt) {
    step(stmt->range);
    auto &queue = state.queue;
    for (size_t at = 0; at != queue.size(); ++at) {
      if (!numbers.isNatural(queue[at].count - 1, stmt->range))
        continue;
      int64_t turns = queue[at].items.size();
      if (stepOfWindow % turns != 0)
        throw Parts{every::Turn, turns};
      Owed::Item item = queue[at].items[0];
      std::vector<Owed> others; // Of the first turn.
      for (const Owed::Item &other : ArrayRef(queue[at].items).drop_front())
        others.push_back({{other}, 1});
      for (Owed::Item &each : queue[at].items)
        each.first = each.first + 1;
      queue[at].count = queue[at].count - 1;
      if (queue[at].count == Form())
        queue.erase(queue.begin() + at);
      queue.insert(queue.begin() + at, others.begin(), others.end());
      return issue(item, 1);
    }
    refuse(stmt->range, "nothing is pending");
  }

  void issue(const Owed::Item &item, const Form &count) {
    Form &issued = issuedOf(item.chunk, item.kind);
    issued = issued + count;
    emit(item.kind, item.chunk, item.first);
  }

  void takeLate(const ast::Stmt *stmt) override {
    while (defer.active && defer.lag &&
           numbers.isNatural(pending() - *defer.lag - 1, stmt->range))
      take(stmt);
  }

  void whileLoop(const ast::WhileStmt *stmt) override {
    refuse(stmt->range, "the turns of a `while` are not known");
  }

  void drain(const ast::DrainStmt *stmt) override {
    if (stepOfWindow)
      refuse(stmt->range, "a loop takes what loops deferred");
    std::optional<uint32_t> only;
    if (stmt->chunk)
      only = resolve(stmt->chunk, stmt->range);
    std::vector<Owed> queue = std::move(state.queue);
    state.queue.clear();
    for (const Owed &owed : queue) {
      Owed left{{}, owed.count};
      loops.push_back({owed.count, {}});
      isOpen = false;
      stepOfWindow = 1;
      for (Owed::Item item : owed.items)
        if (only && item.chunk != *only) {
          left.items.push_back(item);
        } else if (owed.count != Form()) {
          item.first = item.first + Form::of(every::Turn);
          issue(item, owed.count);
        }
      stepOfWindow = 0;
      if (loops.back().units.empty())
        loops.pop_back();
      if (!left.items.empty())
        state.queue.push_back(std::move(left));
    }
  }

  Term counter(Builtin id, KindId kind, const ast::Expr *arg,
               SourceRange place) override {
    if (id == Builtin::Ranks)
      return {free.numRanks};
    if (id == Builtin::Issued)
      return {issuedOf(resolve(arg, place), kind)};
    if (id == Builtin::Pending && !arg)
      return {pending()};
    if (id == Builtin::Padded && !arg && pipes.size() == 1)
      return {pipes[0].count};
    refuse(place, "this is not known for all ranks");
  }

  const Schedule &schedule;
  const Free &free;
  std::vector<int64_t> copies; ///< By pipe: the stages of a rank.

  std::vector<Chunk> chunks;
  State state;
  std::vector<Loop> loops;
  bool isOpen = false;      ///< Single actions go on in the last segment.
  int64_t stepOfWindow = 0; ///< Turns of its loop that are one; 0 outside.
};

} // namespace

std::vector<Region> every::regionsOf(const Module &module,
                                     const Schedule &schedule, const Free &free,
                                     int64_t least) {
  std::vector<Region> regions;
  Way way;
  do {
    Forms facts = {(free.numRanks - least).tightened(),
                   (free.numMicrobatches - 1).tightened(), Form::of(P),
                   Form::of(M)};
    Run run(module, schedule, free, facts, way);
    Region region;
    try {
      run.head();
    } catch (const NotAdmitted &not_) {
      region = {{}, false, not_.place, not_.why};
    }
    region.facts = run.facts;
    regions.push_back(std::move(region));
    if (regions.size() > mostPaths)
      refuse(schedule.range, "there are too many cases");
  } while (way.toNext());
  return regions;
}

Statements every::layOut(const Module &module, const Schedule &schedule,
                         const Free &free, const Forms &facts) {
  Statements statements;
  statements.region = facts;
  statements.kinds = module.kinds;
  std::vector<Form> numbers = {Form::of(Rank)}; // All ranks, in parts.
  while (!numbers.empty()) {
    Form number = numbers.back();
    numbers.pop_back();
    size_t before = statements.classes.size();
    try {
      Way way;
      do {
        Run run(module, schedule, free, facts, way);
        run.head();
        statements.hasBackward = run.hasBackward;
        statements.pipes = run.pipes;
        run.rank(number, statements);
        if (statements.classes.size() > mostPaths)
          refuse(schedule.onRank->range, "there are too many cases");
      } while (way.toNext());
    } catch (const Parts &parts) {
      if (parts.dim != Rank || number.at[Rank] > mostParts)
        throw;
      statements.classes.resize(before);
      llvm::erase_if(statements.units,
                     [&](const Unit &unit) { return unit.ofClass >= before; });
      for (int64_t i = parts.number; i-- > 0;)
        numbers.push_back(number.with(Rank, Form::of(Rank, parts.number) + i));
    }
  }
  return statements;
}
