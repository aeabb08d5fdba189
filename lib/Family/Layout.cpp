// Runs the body of `on rank` on numbers that depend on n.
#include "ppcc/Family/Layout.h"

#include "Number.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"

#include <fmt/format.h>

#include <cmath>

using namespace ppcc;
using namespace ppcc::family;
using namespace ppcc::sema;
using llvm::cast;
using llvm::dyn_cast;
using Kind = Outcome::Kind;

namespace {

/// A value; its type is known from the expression.
struct Term {
  Affine i;
  double f = 0;
  std::shared_ptr<const std::vector<Affine>> list = nullptr;
};

/// What a rank owes. An entry of a segment is there for the turns 0..n.
struct Owed {
  size_t chunk;
  Affine index;
  KindId kind;
  uint32_t segment = 0; ///< Entries with the same number take turns; 0 for one.
  bool operator==(const Owed &) const = default;
};

struct Chunk {
  PipeId pipe;
  StageId stage;
  Affine issued[slot::count];
};

/// What actions change.
struct State {
  std::vector<Chunk> chunks;
  std::vector<Owed> queue;
};

class Run {
public:
  Run(const Module &module, const Schedule &schedule,
      llvm::ArrayRef<ParamValue> values, const Family &family,
      const Instance *sample, llvm::ArrayRef<TurnCounts> counts,
      const Hints &hints, TurnCounts *counted)
      : module(module), schedule(schedule), values(values), family(family),
        sample(sample), counts(counts), hints(hints), counted(counted),
        globals(schedule.numGlobals) {
    numbers.last = family.last;
    numbers.hints = &this->hints;
    for (size_t whole = 0; whole != module.kinds.size(); ++whole)
      for (size_t part = 0; part != module.kinds.size(); ++part)
        if (auto rest = module.kinds.without(KindId(whole), KindId(part));
            rest &&
            (module.kinds[KindId(part)].needs & module.kinds[*rest].defines)) {
          leaves.try_emplace(rest->value, KindId(part));
          deferred.insert(part);
        }
  }

  Outcome run() {
    Outcome outcome;
    outcome.program.last = family.last;
    head();
    headIsConstant();
    if (!sample)
      return outcome;
    if (!sample->rules.empty())
      stop(Kind::Undecided, sample->rules.front().range, "rules add actions");
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
  // ---- The head ----

  void head() {
    size_t next = 0, nextUse = 0;
    for (auto [position, param] : llvm::enumerate(schedule.params)) {
      size_t i = schedule.firstGlobal + position;
      const ParamValue *given = nullptr;
      for (const ParamValue &value : values)
        if (param.decl->name.text == value.name)
          given = &value;
      if (position == family.param) {
        globals[i].i = {family.base, family.step, 0};
      } else if (given) {
        llvm::StringRef text = given->value;
        if (param.type == Type::Int)
          text.getAsInteger(10, globals[i].i.c);
        else if (isList(param.type))
          globals[i] = listOf(text);
        else if (param.type == Type::Float)
          text.getAsDouble(globals[i].f);
        else
          globals[i].i.c = text == "true";
      } else if (param.decl->defaultValue) {
        globals[i] = evalAs(param.decl->defaultValue, param.type);
      }
      inRange(param, globals[i]);
    }
    int64_t number = 0;
    for (uint32_t slot : schedule.pipeSlots)
      globals[slot].i.c = number++;
    number = schedule.pipes.size();
    for (const PartName &part : schedule.parts)
      globals[part.slot].i.c = number++;
    for (const ast::Stmt *item : schedule.header)
      if (auto *let = dyn_cast<ast::LetStmt>(item))
        globals[schedule.letSlots[next++]] = eval(let->value);
      else if (llvm::isa<ast::UseScheduleItem>(item))
        use(schedule.uses[nextUse++]);
      else if (auto *require = dyn_cast<ast::RequireItem>(item))
        if (!evalBool(require->condition))
          stop(Kind::Excluded, require->condition->range,
               require->message.empty()
                   ? "`" + source(require->condition) + "` does not hold"
                   : require->message.str());
  }

  /// Gives the parameters of an imported schedule their values.
  void use(const Use &use) {
    const Schedule &other = module.known[use.schedule];
    for (auto [i, param] : llvm::enumerate(other.params)) {
      const ast::Expr *arg =
          use.args[i] ? use.args[i] : param.decl->defaultValue;
      Term &place = globals[other.firstGlobal + i];
      place = evalAs(arg, param.type);
      inRange(param, place);
    }
  }

  /// The range of a parameter, which numbers may be outside of.
  void inRange(const ScheduleParam &param, const Term &value) {
    const ast::Parameter &decl = *param.decl;
    if (!decl.least)
      return;
    if (isList(param.type)) {
      for (Affine element : elementsOf(value))
        inRange(ScheduleParam{param.decl, Type::Int}, {element});
      return;
    }
    bool lies = param.type == Type::Float
                    ? value.f >= evalFloat(decl.least)
                    : numbers.isNatural(value.i - evalInt(decl.least),
                                        decl.least->range) &&
                          (!decl.end ||
                           numbers.isNatural(evalInt(decl.end) - value.i - one,
                                             decl.end->range));
    if (!lies)
      stop(Kind::Excluded, decl.name.range,
           "`" + decl.name.text.str() + "` is not in its range");
  }

  /// What follows from the sample must do so for all n.
  void headIsConstant() {
    for (const ast::Stmt *item : schedule.decl->items)
      refuseMention(item);
    for (const Use &use : schedule.uses)
      for (const ast::Stmt *item : module.known[use.schedule].decl->items)
        refuseMention(item);
    for (const KindCosts &costs : module.kindCosts)
      for (const ast::Expr *expr : {costs.time, costs.memory, costs.otherRank})
        if (expr)
          refuseMention(expr);
    if (!module.applications.empty())
      stop(Kind::Undecided, module.applications.front().range,
           "rules add actions");
  }

  static llvm::ArrayRef<Affine> elementsOf(const Term &list) {
    return list.list ? llvm::ArrayRef(*list.list) : llvm::ArrayRef<Affine>();
  }
  static bool isFree(const Term &term) {
    return !term.i.isConstant() ||
           llvm::any_of(elementsOf(term),
                        [](Affine element) { return !element.isConstant(); });
  }

  bool mentionsFree(const ast::Expr *expr) {
    const ExprInfo &info = module.exprs[expr->id];
    if (llvm::isa<ast::NameExpr>(expr) && info.ref == ExprInfo::Ref::Global &&
        isFree(globals[info.index]))
      return true;
    bool found = false;
    forEachChild(expr,
                 [&](const ast::Expr *child) { found |= mentionsFree(child); });
    if (info.ref == ExprInfo::Ref::Function &&
        inCheck.insert(info.index).second) {
      found |= mentionsFree(module.functions[info.index].item->value);
      inCheck.erase(info.index);
    }
    return found;
  }

  void refuseMention(const ast::Expr *expr) {
    if (expr && mentionsFree(expr))
      stop(Kind::Undecided, expr->range,
           "the head depends on the number of microbatches here");
  }

  void refuseMention(const ast::Stmt *stmt) {
    using ast::StmtKind;
    switch (stmt->kind) { // Those that are evaluated for themselves.
    case StmtKind::Microbatches:
    case StmtKind::Require:
    case StmtKind::UseSchedule:
    case StmtKind::Function:
    case StmtKind::Block:
    case StmtKind::Rule:
      return;
    case StmtKind::OnRank:
      return refuseMention(cast<ast::OnRankItem>(stmt)->ranks);
    case StmtKind::Let:
      if (llvm::is_contained(schedule.header, stmt))
        return;
      break;
    default:
      break;
    }
    ast::dispatch(stmt, [&](const auto &node) { refuseInFields(node); });
  }

  template <class Node> void refuseInFields(const Node &node) {
    forEachField(node, [&](const auto &field, llvm::StringRef) {
      using Field = std::decay_t<decltype(field)>;
      if constexpr (std::is_same_v<Field, const ast::Expr *>) {
        refuseMention(field);
      } else if constexpr (std::is_same_v<Field, ast::Exprs> ||
                           std::is_same_v<Field, ast::Body>) {
        for (const auto *child : field)
          if (child)
            refuseMention(child);
      } else if constexpr (requires {
                             field.begin();
                             field.size();
                           } && !std::is_same_v<Field, llvm::StringRef>) {
        for (const auto &child : field)
          if constexpr (std::is_class_v<std::decay_t<decltype(child)>> &&
                        !std::is_same_v<std::decay_t<decltype(child)>,
                                        ast::Identifier> &&
                        !std::is_same_v<std::decay_t<decltype(child)>,
                                        llvm::StringRef>)
            refuseInFields(child);
          else if constexpr (std::is_pointer_v<std::decay_t<decltype(child)>>)
            refuseInFields(*child);
      }
    });
  }

  /// The pipes that a declaration makes.
  void pipes(size_t number) {
    const PipeDecl &decl = schedule.pipes[number];
    auto add = [&] {
      declOf.push_back(&decl);
      microbatches(decl, sample->program.pipes[ranges.size()]);
    };
    if (!decl.loop)
      return add();
    frame.assign(schedule.headerLocals, Term());
    std::vector<Affine> made;
    Affine &turn = frame[slotOf(decl.loop)].i;
    int64_t to = evalInt(decl.loop->to).c;
    for (turn = evalInt(decl.loop->from); turn.c < to; ++turn.c) {
      // Their numbers stand behind those of all that has a name.
      made.push_back(
          {int64_t(schedule.pipes.size() + schedule.parts.size() + loopPipes++),
           0, 0});
      add();
    }
    if (number < schedule.pipeSlots.size())
      globals[schedule.pipeSlots[number]] = listOf(std::move(made));
  }

  void microbatches(const PipeDecl &decl, const Pipe &pipe) {
    const ast::MicrobatchesItem &item = *decl.microbatches;
    Affine first = item.first ? evalInt(item.first) : Affine{};
    Affine count = evalInt(item.end) - first;
    Affine pad = item.pad ? evalInt(item.pad) : count;
    auto need = [&](Affine x, const ast::Expr *expr, const char *why) {
      if (!numbers.isNatural(x, expr->range))
        stop(Kind::Wrong, expr->range, why);
    };
    need(first, item.end, "the first microbatch is below 0");
    need(count - one, item.end, "there is no microbatch");
    need(pad - count, item.pad ? item.pad : item.end,
         "the padded number of microbatches is too small");
    for (Affine x : {count, pad})
      if (pipe.slices != 1 &&
          !numbers.isZero(
              numbers.remainder(x, {pipe.slices, 0, 0}, decl.slices->range),
              decl.slices->range))
        stop(Kind::Wrong, decl.slices->range,
             "the microbatches are not whole sequences of slices");
    ranges.push_back({first, count});
    padded.push_back(pad);
  }

  void disjoint() {
    for (size_t a = 0; a != ranges.size(); ++a)
      for (size_t b = 0; b != a; ++b) {
        SourceRange place = declOf[a]->range;
        if (!numbers.isNatural(
                ranges[a].first - ranges[b].first - ranges[b].count, place) &&
            !numbers.isNatural(
                ranges[b].first - ranges[a].first - ranges[a].count, place))
          stop(Kind::Wrong, place, "two pipes share microbatches");
      }
  }

  // ---- Ranks ----

  void rank(uint32_t r) {
    state = {};
    for (auto [p, pipe] : llvm::enumerate(sample->program.pipes))
      for (StageId stage : pipe.stages())
        if (pipe.rankOfStage[stage.value].value == r)
          state.chunks.push_back({PipeId(p), stage, {}});
    rows = &ranks.emplace_back();
    number = r;
    windows = 0;
    occurrences.clear();
    frame.assign(schedule.numLocals, Term());
    frame[0].i.c = r;
    defer = {};
    const ast::OnRankItem *onRank = sample->onRank(RankId(r));
    body(onRank->body);
    if (!state.queue.empty())
      stop(Kind::Wrong, onRank->range,
           fmt::format("`{}` is left pending on rank {}",
                       module.kinds[state.queue.front().kind].letters, r));
  }

  void step(SourceRange place) {
    if (++steps > 20'000'000)
      stop(Kind::Undecided, place, "it takes too many steps");
  }

  void body(ast::Body statements) {
    for (const ast::Stmt *stmt : statements) {
      step(stmt->range);
      statement(stmt);
    }
  }

  void statement(const ast::Stmt *stmt) {
    using ast::StmtKind;
    switch (stmt->kind) {
    case StmtKind::Let: {
      Term value = eval(cast<ast::LetStmt>(stmt)->value);
      frame[slotOf(stmt)] = value;
      return;
    }
    case StmtKind::If:
      for (const ast::Branch &branch : cast<ast::IfStmt>(stmt)->branches)
        if (!branch.condition || evalBool(branch.condition))
          return body(branch.body);
      return;
    case StmtKind::For: {
      auto *s = cast<ast::ForStmt>(stmt);
      Affine from = evalInt(s->from), to = evalInt(s->to);
      return loop(stmt, to - from, [&](Affine turn) {
        frame[slotOf(stmt)].i = from + turn;
        body(s->body);
      });
    }
    case StmtKind::Repeat: {
      auto *s = cast<ast::RepeatStmt>(stmt);
      return loop(stmt, evalInt(s->count), [&](Affine) { body(s->body); });
    }
    case StmtKind::While:
      return whileLoop(cast<ast::WhileStmt>(stmt));
    case StmtKind::Phase:
      return body(cast<ast::PhaseStmt>(stmt)->body);
    case StmtKind::Overlap:
      inGroup = true;
      groupRows = 0;
      body(cast<ast::OverlapStmt>(stmt)->body);
      inGroup = false;
      return takeLate(stmt);
    case StmtKind::Defer: {
      auto *s = cast<ast::DeferStmt>(stmt);
      if (!s->fill.text.empty())
        stop(Kind::Undecided, stmt->range, "what is deferred fills gaps");
      Defer outer = defer;
      Defer inner{true, KindId(slotOf(stmt)), {}};
      if (s->lag)
        inner.lag = evalInt(s->lag);
      defer = inner;
      body(s->body);
      defer = outer;
      return;
    }
    case StmtKind::Drain:
      return drain(cast<ast::DrainStmt>(stmt));
    case StmtKind::Action:
      return module.stmts[stmt->id].isBlock
                 ? call(cast<ast::ActionStmt>(stmt))
                 : action(cast<ast::ActionStmt>(stmt));
    default:
      stop(Kind::Undecided, stmt->range, "a statement of an unknown kind");
    }
  }

  void call(const ast::ActionStmt *stmt) {
    const Block &block = module.blocks[module.stmts[stmt->id].index];
    std::vector<Term> inner(block.numLocals);
    for (size_t i = 0; i != stmt->args.size(); ++i)
      inner[i] = evalAs(stmt->args[i].value, block.params[i]);
    std::swap(frame, inner);
    body(block.item->body);
    std::swap(frame, inner);
  }

  // ---- Loops ----

  template <class Turn>
  void loop(const ast::Stmt *stmt, Affine turns, Turn turn) {
    if (turns.isConstant() || family.last == 0) {
      for (int64_t i = 0; i < turns.c; ++i) {
        step(stmt->range);
        turn({i, 0, 0});
      }
      return;
    }
    if (!numbers.isNatural(turns - one, stmt->range))
      return;
    if (numbers.inWindow)
      stop(Kind::Undecided, stmt->range,
           "a loop that grows with the microbatches stands in another");
    if (turns.n < 0)
      stop(Kind::Undecided, stmt->range,
           "a loop gets shorter with more microbatches");
    window(stmt, turns.c, turns.n, [&](Affine i) {
      step(stmt->range);
      turn(i);
    });
  }

  /// A loop of `turns` + `perTurn` n turns: some of them, a window, the rest.
  template <class Turn>
  void window(const ast::Stmt *stmt, int64_t turns, int64_t perTurn,
              Turn turn) {
    auto hint = hints.find(stmt->id);
    Margins margins = hint == hints.end() ? Margins() : hint->second;
    int64_t spare = turns - perTurn - margins.before - margins.behind;
    if (spare < 0)
      stop(Kind::Cut, stmt->range, "a loop has too few turns",
           (-spare + perTurn - 1) / perTurn);
    int64_t early = family.lean == Lean::Both     ? spare / 2
                    : family.lean == Lean::Before ? spare
                                                  : 0;
    margins.before += early;
    margins.behind += spare - early;
    int64_t at = 0;
    for (; at != margins.before; ++at)
      turn({at, 0, 0});

    numbers.loop = stmt->id;
    numbers.margins = margins;
    numbers.perTurn = perTurn;
    // Its first turn tells how the state changes,
    State before = state;
    size_t rowsBefore = rows->size();
    for (int64_t i = 0; i != perTurn; ++i)
      turn({at + i, 0, 0});
    rows->resize(rowsBefore);
    std::vector<Owed> grown;
    State change = difference(before, state, grown, stmt);
    // and any turn that it does so always.
    State atTurn = moved(before, change, {0, 0, 1});
    state = atTurn;
    size_t queued = state.queue.size();
    if (!grown.empty()) // What turns before have left, which none may take.
      state.queue.push_back({0, {}, KindId(), noSegment});
    numbers.inWindow = true;
    currentWindow = windows++;
    for (int64_t i = 0; i != perTurn; ++i)
      turn({at + i, 0, perTurn});
    currentWindow = proof::noWindow;
    numbers.inWindow = false;
    State wanted = moved(before, change, {1, 0, 1});
    std::vector<Owed> segment;
    if (!grown.empty()) {
      if (state.queue.size() != queued + 1 + grown.size() ||
          state.queue[queued].segment != noSegment)
        stop(Kind::Undecided, stmt->range,
             "what is deferred grows, and is taken, in one loop");
      segment.assign(state.queue.begin() + queued + 1, state.queue.end());
      state.queue.resize(queued);
    }
    if (!isSame(state, wanted))
      stop(Kind::Undecided, stmt->range,
           "what a loop does changes from turn to turn");
    state = moved(before, change, {1, 1, 0});
    for (Owed &owed : segment) {
      owed.segment = segments;
      state.queue.push_back(owed);
    }
    segments += !segment.empty();
    for (at += perTurn; at != turns; ++at)
      turn({at, perTurn, 0});
  }

  /// By how much a turn changes each number; what it adds to the queue without
  /// taking anything goes to `grown`.
  State difference(const State &before, const State &after,
                   std::vector<Owed> &grown, const ast::Stmt *stmt) {
    State change = before;
    auto difference = [&](Affine a, Affine b) {
      Affine change = b - a;
      if (!change.isConstant())
        stop(Kind::Undecided, stmt->range,
             "what a loop changes depends on the number of microbatches");
      return change;
    };
    for (size_t i = 0; i != change.chunks.size(); ++i)
      for (unsigned s = 0; s != slot::count; ++s)
        change.chunks[i].issued[s] =
            difference(before.chunks[i].issued[s], after.chunks[i].issued[s]);
    size_t size = before.queue.size();
    if (after.queue.size() < size)
      numbers.deepen(stmt->range, "a loop takes from what was deferred");
    bool isKept = std::equal(before.queue.begin(), before.queue.end(),
                             after.queue.begin());
    if (after.queue.size() > size && !isKept)
      numbers.deepen(stmt->range,
                     "what is deferred grows, and is taken, in one loop");
    grown.assign(after.queue.begin() + size, after.queue.end());
    for (size_t i = 0; i != size; ++i) {
      const Owed &a = before.queue[i], &b = after.queue[i];
      if (a.chunk != b.chunk || a.kind != b.kind || a.segment != b.segment)
        numbers.deepen(stmt->range, "what is deferred changes its order");
      change.queue[i].index = difference(a.index, b.index);
    }
    return change;
  }

  /// The state after `turns` turns.
  static State moved(State state, const State &change, Affine turns) {
    auto move = [&](Affine &x, Affine by) { x = x + by.c * turns; };
    for (size_t i = 0; i != state.chunks.size(); ++i)
      for (unsigned s = 0; s != slot::count; ++s)
        move(state.chunks[i].issued[s], change.chunks[i].issued[s]);
    for (size_t i = 0; i != state.queue.size(); ++i)
      move(state.queue[i].index, change.queue[i].index);
    return state;
  }

  static bool isSame(const State &a, const State &b) {
    for (size_t i = 0; i != a.chunks.size(); ++i)
      if (!std::equal(std::begin(a.chunks[i].issued),
                      std::end(a.chunks[i].issued), b.chunks[i].issued))
        return false;
    return a.queue == b.queue;
  }

  void whileLoop(const ast::WhileStmt *stmt) {
    auto goesOn = [&] { return evalBool(stmt->condition); };
    auto turn = [&](Affine) {
      step(stmt->range);
      uint64_t before = progress;
      body(stmt->body);
      if (progress == before)
        stop(Kind::Wrong, stmt->range, "the loop does not end");
    };
    auto key = std::pair(number, stmt->id);
    size_t occurrence = numbers.inWindow ? 0 : occurrences[stmt->id]++;
    int64_t turns = 0, perTurn = 0;
    if (!numbers.inWindow && counts.size() > 2) {
      auto of = [&](size_t n) -> int64_t {
        auto found = counts[n].find(key);
        return found == counts[n].end() || found->second.size() <= occurrence
                   ? -1
                   : found->second[occurrence];
      };
      turns = of(0);
      perTurn = of(1) - turns;
      if (turns < 0 || of(1) < 0 || of(2) - of(1) != perTurn)
        perTurn = 0;
    }
    if (perTurn > 0) {
      window(stmt, turns, perTurn, [&](Affine i) {
        if (!goesOn())
          stop(Kind::Undecided, stmt->range,
               "the turns of the loop do not grow evenly");
        turn(i);
      });
      turns = 0;
    }
    int64_t more = 0;
    for (; goesOn(); ++more) {
      if (perTurn > 0)
        stop(Kind::Undecided, stmt->range,
             "the turns of the loop do not grow evenly");
      turn({});
    }
    if (counted)
      (*counted)[key].push_back(more);
  }

  // ---- Actions ----

  size_t resolve(const ast::Expr *arg, SourceRange place) {
    size_t found = state.chunks.size(), matches = 0;
    const PipePart *part = nullptr;
    if (arg) {
      int64_t value = numbers.constant(evalInt(arg), arg->range, "the chunk");
      if (type(arg) != Type::Pipe && type(arg) != Type::Part) {
        if (value >= 0 && size_t(value) < state.chunks.size())
          return value;
        stop(Kind::Wrong, arg->range,
             fmt::format("rank {} has no chunk {}", number, value));
      }
      part = &sample->parts[value];
    }
    for (auto [i, chunk] : llvm::enumerate(state.chunks))
      if ((!part || part->has(chunk.pipe, chunk.stage)) && ++matches == 1)
        found = i;
    if (matches != 1)
      stop(Kind::Wrong, place,
           fmt::format("it does not say which chunk of rank {}", number));
    return found;
  }

  Affine &issuedOf(Chunk &chunk, const KindInfo &info, SourceRange place) {
    if (info.isDeclared())
      stop(Kind::Undecided, place, "there are declared actions");
    return chunk.issued[std::countr_zero(unsigned(info.mainSlot()))];
  }

  /// Ends with an error where x < 0 in some turn: for all n, or for those from
  /// some on.
  void need(Affine x, SourceRange place, const std::string &why) {
    for (Affine f : {Affine{x.c, x.n, 0}, Affine{x.c, x.n + x.j, 0}}) {
      int64_t first = f.c >= 0 && f.n < 0 ? f.c / -f.n + 1 : 0;
      if (first > 0 && first <= family.last)
        stop(Kind::Wrong, place, why, first);
      if (!numbers.isNatural(f, place))
        stop(Kind::Wrong, place, why);
    }
  }

  void action(const ast::ActionStmt *stmt) {
    KindId kind = KindId(module.stmts[stmt->id].index);
    const ast::Expr *chunkArg = nullptr, *microbatch = nullptr;
    for (const ast::Argument &arg : stmt->args)
      (arg.label.text.empty() ? chunkArg : microbatch) = arg.value;
    const KindInfo *info = &module.kinds[kind];
    if (info->isDeclared())
      stop(Kind::Undecided, stmt->range, "there are declared actions");
    if (deferred.count(kind.value))
      return takeNamed(stmt, chunkArg, microbatch);
    if (defer.active)
      if (auto rest = module.kinds.without(kind, defer.kind)) {
        kind = *rest;
        info = &module.kinds[kind];
      }
    size_t number = resolve(chunkArg, stmt->range);
    Chunk &chunk = state.chunks[number];
    const Affine pad = padded[chunk.pipe.value];
    Affine &issued = issuedOf(chunk, *info, stmt->range);
    Affine index = issued;
    if (microbatch) {
      index = evalInt(microbatch) - ranges[chunk.pipe.value].first;
      for (Affine x : {index, pad - index - one})
        need(x, stmt->range, "the stage has no such microbatch");
    } else {
      need(pad - index - one, stmt->range,
           "no microbatch is left for `" + info->letters + "`");
      int64_t slices = sample->program.pipes[chunk.pipe.value].slices;
      if (slices != 1 && (info->defines & slot::InputGrad)) {
        Affine slice = numbers.remainder(index, {slices, 0, 0}, stmt->range);
        index = index - slice + Affine{slices - 1, 0, 0} - slice;
      }
    }
    issued = issued + one;
    ++progress;
    if (auto owed = leaves.find(kind.value); owed != leaves.end())
      state.queue.push_back({number, index, owed->second});
    emit(kind, chunk, index, stmt);
    if (!inGroup)
      takeLate(stmt);
  }

  /// Adds the row, unless the microbatch is only padding.
  void emit(KindId kind, const Chunk &chunk, Affine index,
            const ast::Stmt *stmt) {
    const proof::Range &range = ranges[chunk.pipe.value];
    if (!numbers.isNatural(range.count - index - one, stmt->range))
      return;
    // A schedule that only goes forward drops the rest.
    if (!sample->program.hasBackward &&
        module.kinds[kind].defines != slot::Output)
      return;
    proof::Row row;
    row.kind = kind;
    row.pipe = chunk.pipe;
    row.stage = chunk.stage;
    row.microbatch = Numbers::checked(range.first + index, stmt->range);
    row.window = currentWindow;
    row.joined = inGroup && groupRows++ != 0;
    row.place = stmt->range.begin.raw;
    rows->push_back(row);
  }

  void take(size_t place, const ast::Stmt *stmt) {
    Owed owed = state.queue[place];
    if (owed.segment)
      stop(Kind::Undecided, stmt->range,
           "it takes one of many deferred actions, the number of which grows");
    state.queue.erase(state.queue.begin() + place);
    issue(owed, stmt, one);
  }

  void issue(const Owed &owed, const ast::Stmt *stmt, Affine count) {
    Chunk &chunk = state.chunks[owed.chunk];
    Affine &issued = issuedOf(chunk, module.kinds[owed.kind], stmt->range);
    issued = issued + count;
    ++progress;
    emit(owed.kind, chunk, owed.index, stmt);
  }

  void takeNamed(const ast::ActionStmt *stmt, const ast::Expr *chunkArg,
                 const ast::Expr *microbatch) {
    size_t place = 0;
    if (chunkArg || microbatch) {
      size_t chunk = resolve(chunkArg, stmt->range);
      Affine index;
      if (microbatch)
        index =
            evalInt(microbatch) - ranges[state.chunks[chunk].pipe.value].first;
      for (; place != state.queue.size(); ++place) {
        if (state.queue[place].segment)
          break;
        if (state.queue[place].chunk == chunk &&
            (!microbatch ||
             numbers.isZero(state.queue[place].index - index, stmt->range)))
          break;
      }
    }
    if (place == state.queue.size())
      stop(Kind::Wrong, stmt->range, "what it takes is not pending");
    take(place, stmt);
  }

  /// How many are deferred, of a chunk or of all.
  Affine pendingOf(std::optional<size_t> chunk, SourceRange place) const {
    Affine count;
    for (const Owed &owed : state.queue) {
      if (owed.segment == noSegment)
        numbers.deepen(place, "it counts what grows in a loop");
      if (!chunk || owed.chunk == *chunk)
        count = count + (owed.segment ? Affine{1, 1, 0} : one);
    }
    return count;
  }

  /// The deferred actions above the lag.
  void takeLate(const ast::Stmt *stmt) {
    if (!defer.active || !defer.lag)
      return;
    while (!state.queue.empty() &&
           numbers.isNatural(pendingOf(std::nullopt, stmt->range) - *defer.lag -
                                 one,
                             stmt->range))
      take(0, stmt);
  }

  void drain(const ast::DrainStmt *stmt) {
    std::optional<size_t> chunk;
    if (stmt->chunk)
      chunk = resolve(stmt->chunk, stmt->range);
    std::vector<Owed> rest, queue = std::move(state.queue);
    uint32_t open = 0; // The segment that is taken.
    for (const Owed &owed : queue) {
      if (chunk && owed.chunk != *chunk) {
        rest.push_back(owed);
        continue;
      }
      if (owed.segment && (numbers.inWindow || owed.segment == noSegment))
        stop(Kind::Undecided, stmt->range, "a loop takes what loops deferred");
      if (!owed.segment) {
        issue(owed, stmt, one);
        continue;
      }
      if (std::exchange(open, owed.segment) != owed.segment)
        ++windows;
      currentWindow = windows - 1;
      numbers.inWindow = true;
      numbers.loop = stmt->id;
      issue(owed, stmt, {1, 1, 0});
      numbers.inWindow = false;
      currentWindow = proof::noWindow;
    }
    state.queue = std::move(rest);
  }

  // ---- Expressions ----

  Type type(const ast::Expr *expr) const { return module.exprs[expr->id].type; }
  uint32_t slotOf(const ast::Stmt *stmt) const {
    return module.stmts[stmt->id].index;
  }
  Affine evalInt(const ast::Expr *expr) { return eval(expr).i; }
  bool evalBool(const ast::Expr *expr) { return eval(expr).i.c != 0; }
  static Term truth(bool value) { return {{value, 0, 0}, 0}; }
  double evalFloat(const ast::Expr *expr) {
    Term value = eval(expr);
    return type(expr) == Type::Int ? static_cast<double>(numbers.constant(
                                         value.i, expr->range, "a float"))
                                   : value.f;
  }
  Term evalAs(const ast::Expr *expr, Type wanted) {
    return wanted == Type::Float ? Term{{}, evalFloat(expr)} : eval(expr);
  }

  Term eval(const ast::Expr *expr) {
    step(expr->range);
    switch (expr->kind) {
    case ast::ExprKind::Int:
      return {Numbers::checked({cast<ast::IntExpr>(expr)->value, 0, 0},
                               expr->range),
              0};
    case ast::ExprKind::Float:
      return {{}, cast<ast::FloatExpr>(expr)->value};
    case ast::ExprKind::Bool:
      return truth(cast<ast::BoolExpr>(expr)->value);
    case ast::ExprKind::Name: {
      const ExprInfo &info = module.exprs[expr->id];
      if (info.ref == ExprInfo::Ref::Global)
        return globals[info.index];
      if (info.ref == ExprInfo::Ref::Local)
        return frame[info.index];
      return counter(static_cast<Builtin>(info.index), KindId(), nullptr,
                     expr->range);
    }
    case ast::ExprKind::Call:
      return call(cast<ast::CallExpr>(expr));
    case ast::ExprKind::Unary: {
      auto *unary = cast<ast::UnaryExpr>(expr);
      Term operand = eval(unary->operand);
      if (unary->op == ast::UnaryOp::Not)
        return truth(!operand.i.c);
      return {-1 * operand.i, -operand.f};
    }
    case ast::ExprKind::Binary:
      return binary(cast<ast::BinaryExpr>(expr));
    case ast::ExprKind::Conditional: {
      auto *s = cast<ast::ConditionalExpr>(expr);
      return evalAs(evalBool(s->condition) ? s->then : s->otherwise,
                    type(expr));
    }
    case ast::ExprKind::List: {
      std::vector<Affine> elements;
      for (const ast::Expr *element : cast<ast::ListExpr>(expr)->elements)
        elements.push_back(evalInt(element));
      return listOf(std::move(elements));
    }
    case ast::ExprKind::ListFor: {
      auto *each = cast<ast::ListForExpr>(expr);
      uint32_t slot = module.exprs[expr->id].index;
      int64_t from = length(each->from), to = length(each->to);
      std::vector<Affine> elements;
      for (int64_t i = from; i < to; ++i) {
        step(expr->range);
        if (slot >= frame.size())
          frame.resize(slot + 1);
        frame[slot].i = {i, 0, 0};
        elements.push_back(evalInt(each->element));
      }
      return listOf(std::move(elements));
    }
    case ast::ExprKind::Index: {
      auto *s = cast<ast::IndexExpr>(expr);
      Term list = eval(s->list);
      int64_t at =
          numbers.constant(evalInt(s->index), s->index->range, "the index");
      if (at < 0 || size_t(at) >= elementsOf(list).size())
        stop(Kind::Wrong, s->index->range, "the list has no such element");
      return {elementsOf(list)[at]};
    }
    }
    llvm_unreachable("all kinds are above");
  }

  static Term listOf(std::vector<Affine> elements) {
    return {{},
            0,
            std::make_shared<const std::vector<Affine>>(std::move(elements))};
  }
  /// That of `-D`: numbers with commas.
  static Term listOf(llvm::StringRef text) {
    std::vector<Affine> elements;
    llvm::SmallVector<llvm::StringRef> words;
    text.split(words, ',', -1, /*KeepEmpty=*/false);
    for (llvm::StringRef word : words)
      word.trim().getAsInteger(10, elements.emplace_back().c);
    return listOf(std::move(elements));
  }
  /// An end of the range of a list, whose length is one for all n.
  int64_t length(const ast::Expr *expr) {
    return numbers.constant(evalInt(expr), expr->range, "the length of a list");
  }

  Term call(const ast::CallExpr *expr) {
    const ExprInfo &info = module.exprs[expr->id];
    if (info.ref == ExprInfo::Ref::Builtin)
      return builtin(expr, static_cast<Builtin>(info.index));
    const Function &function = module.functions[info.index];
    std::vector<Term> inner;
    for (size_t i = 0; i != expr->args.size(); ++i)
      inner.push_back(evalAs(expr->args[i], function.params[i]));
    std::swap(frame, inner);
    Term result = eval(function.item->value);
    std::swap(frame, inner);
    return result;
  }

  Term builtin(const ast::CallExpr *expr, Builtin id) {
    llvm::ArrayRef<const ast::Expr *> args = expr->args;
    bool isFloat = type(expr) == Type::Float;
    switch (id) {
    case Builtin::Min:
    case Builtin::Max: {
      if (isList(type(args[0])))
        return ofList(expr, id);
      Term best = evalAs(args[0], type(expr));
      for (const ast::Expr *arg : args.drop_front()) {
        Term other = evalAs(arg, type(expr));
        bool isLess = isFloat
                          ? other.f < best.f
                          : !numbers.isNatural(other.i - best.i, expr->range);
        if (isLess == (id == Builtin::Min))
          best = other;
      }
      return best;
    }
    case Builtin::Abs: {
      Term value = evalAs(args[0], type(expr));
      if (isFloat)
        return {{}, std::fabs(value.f)};
      return numbers.isNatural(value.i, expr->range) ? value
                                                     : Term{-1 * value.i, 0};
    }
    case Builtin::Layout: {
      if (!sample || sample->program.stageLayers.empty())
        stop(Kind::Undecided, expr->range, "it asks for the layout");
      LayerCounts layers(sample->program.stageLayers);
      char letter = static_cast<char>(module.exprs[args[0]->id].index);
      if (args.size() == 1)
        return {{layers.total(letter), 0, 0}, 0};
      int64_t stage =
          numbers.constant(evalInt(args[1]), expr->range, "the stage");
      if (stage < 0 || size_t(stage) >= layers.numStages())
        stop(Kind::Wrong, expr->range, "there is no such stage");
      return {{layers.has(letter) ? layers.of(letter)[stage] : 0, 0, 0}, 0};
    }
    case Builtin::Len:
    case Builtin::Sum:
      return ofList(expr, id);
    case Builtin::Issued:
      return counter(id, KindId(module.exprs[args[0]->id].index),
                     args.size() > 1 ? args[1] : nullptr, expr->range);
    case Builtin::Pending:
    case Builtin::Padded:
      return counter(id, KindId(), args.empty() ? nullptr : args[0],
                     expr->range);
    default:
      stop(Kind::Undecided, expr->range, "a function of an unknown kind");
    }
  }

  Term ofList(const ast::CallExpr *expr, Builtin id) {
    Term list = eval(expr->args[0]);
    llvm::ArrayRef<Affine> elements = elementsOf(list);
    if (id == Builtin::Len)
      return {{int64_t(elements.size()), 0, 0}};
    Affine sum;
    if (id == Builtin::Sum) {
      for (Affine element : elements)
        sum = Numbers::checked(sum + element, expr->range);
      return {sum};
    }
    if (elements.empty())
      stop(Kind::Wrong, expr->range, "the list is empty");
    Affine best = elements.front();
    for (Affine element : elements)
      if (bool isLess = !numbers.isNatural(element - best, expr->range);
          isLess == (id == Builtin::Min))
        best = element;
    return {best};
  }

  Term counter(Builtin id, KindId kind, const ast::Expr *arg,
               SourceRange place) {
    if (id == Builtin::Ranks && sample)
      return {{sample->program.numRanks, 0, 0}, 0};
    if (id == Builtin::Ranks)
      stop(Kind::Undecided, place, "the head asks for the ranks");
    if (id == Builtin::Issued)
      return {issuedOf(state.chunks[resolve(arg, place)], module.kinds[kind],
                       place),
              0};
    if (id == Builtin::Pending)
      return {pendingOf(arg ? std::optional(resolve(arg, place)) : std::nullopt,
                        place),
              0};
    if (!arg && padded.size() == 1)
      return {padded.front(), 0};
    if (arg && type(arg) == Type::Pipe)
      return {
          padded[sample
                     ->parts[numbers.constant(evalInt(arg), place, "the pipe")]
                     .stages.front()
                     .pipe.value],
          0};
    return {padded[state.chunks[resolve(arg, place)].pipe.value], 0};
  }

  Term binary(const ast::BinaryExpr *expr) {
    using ast::BinaryOp;
    BinaryOp op = expr->op;
    SourceRange at = expr->range;
    if (op == BinaryOp::And)
      return truth(evalBool(expr->lhs) && evalBool(expr->rhs));
    if (op == BinaryOp::Or)
      return truth(evalBool(expr->lhs) || evalBool(expr->rhs));
    bool compares = op >= BinaryOp::Eq && op <= BinaryOp::Ge;
    if (compares
            ? type(expr->lhs) == Type::Float || type(expr->rhs) == Type::Float
            : type(expr) == Type::Float) {
      double a = evalFloat(expr->lhs), b = evalFloat(expr->rhs);
      switch (op) {
      case BinaryOp::Eq:
        return truth(a == b);
      case BinaryOp::Ne:
        return truth(a != b);
      case BinaryOp::Lt:
        return truth(a < b);
      case BinaryOp::Le:
        return truth(a <= b);
      case BinaryOp::Gt:
        return truth(a > b);
      case BinaryOp::Ge:
        return truth(a >= b);
      case BinaryOp::Add:
        return {{}, a + b};
      case BinaryOp::Sub:
        return {{}, a - b};
      case BinaryOp::Mul:
        return {{}, a * b};
      case BinaryOp::Div:
        if (b == 0)
          stop(Kind::Wrong, at, "it divides by zero");
        return {{}, a / b};
      default:
        stop(Kind::Undecided, at, "an operator of an unknown kind");
      }
    }
    Affine a = evalInt(expr->lhs), b = evalInt(expr->rhs);
    switch (op) {
    case BinaryOp::Eq:
      return truth(numbers.isZero(a - b, at));
    case BinaryOp::Ne:
      return truth(!numbers.isZero(a - b, at));
    case BinaryOp::Lt:
      return truth(!numbers.isNatural(a - b, at));
    case BinaryOp::Le:
      return truth(numbers.isNatural(b - a, at));
    case BinaryOp::Gt:
      return truth(!numbers.isNatural(b - a, at));
    case BinaryOp::Ge:
      return truth(numbers.isNatural(a - b, at));
    case BinaryOp::Add:
      return {Numbers::checked(a + b, at), 0};
    case BinaryOp::Sub:
      return {Numbers::checked(a - b, at), 0};
    case BinaryOp::Mul:
      return {numbers.product(a, b, at), 0};
    case BinaryOp::Div:
      return {numbers.quotient(a, b, at), 0};
    case BinaryOp::Mod:
      return {numbers.remainder(a, b, at), 0};
    default:
      stop(Kind::Undecided, at, "an operator of an unknown kind");
    }
  }

  struct Defer {
    bool active = false;
    KindId kind;
    std::optional<Affine> lag;
  };
  static constexpr Affine one{1, 0, 0};
  static constexpr uint32_t noSegment = 0xFFFFFFFF;

  const Module &module;
  const Schedule &schedule;
  llvm::ArrayRef<ParamValue> values;
  const Family &family;
  const Instance *sample;
  llvm::ArrayRef<TurnCounts> counts;
  Hints hints;
  TurnCounts *counted;

  Numbers numbers;
  std::vector<Term> globals, frame;
  std::vector<proof::Range> ranges;
  std::vector<const PipeDecl *> declOf; ///< By pipe.
  size_t loopPipes = 0;
  std::vector<Affine> padded; ///< By pipe.
  std::vector<std::vector<proof::Row>> ranks;
  llvm::DenseMap<uint32_t, KindId> leaves; ///< By kind: what it leaves behind.
  llvm::DenseSet<uint32_t> deferred;       ///< Kinds that are left behind.
  llvm::DenseSet<uint32_t> inCheck;

  // Of the rank that is laid out.
  uint32_t number = 0;
  State state;
  std::vector<proof::Row> *rows = nullptr;
  uint32_t windows = 0, currentWindow = proof::noWindow;
  uint32_t segments = 1;
  std::map<uint32_t, size_t> occurrences; ///< Of `while`, by statement.
  Defer defer;
  bool inGroup = false;
  uint32_t groupRows = 0;
  uint64_t progress = 0, steps = 0;
};

} // namespace

Layouter::Layouter(const Module &module, const Schedule &schedule,
                   llvm::ArrayRef<ParamValue> values)
    : module(module), schedule(schedule), values(values) {}

Outcome Layouter::run(const Family &family, const Instance *sample,
                      llvm::ArrayRef<TurnCounts> counts, const Hints &hints,
                      TurnCounts *counted) const {
  try {
    return Run(module, schedule, values, family, sample, counts, hints, counted)
        .run();
  } catch (Stop &stopped) {
    return std::move(stopped.outcome);
  }
}
