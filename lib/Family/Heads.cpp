#include "Heads.h"

using namespace ppcc;
using namespace ppcc::family;
using namespace ppcc::sema;
using Kind = Outcome::Kind;

static constexpr Affine one{1, 0, 0};

void Heads::head() {
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
      StringRef text = given->value;
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
    else if (isa<ast::UseScheduleItem>(item))
      use(schedule.uses[nextUse++]);
    else if (auto *require = dyn_cast<ast::RequireItem>(item))
      if (!evalBool(require->condition))
        stop(Kind::Excluded, require->condition->range,
             require->message.empty()
                 ? "`" + source(require->condition) + "` does not hold"
                 : require->message.str());
}

/// Gives the parameters of an imported schedule their values.
void Heads::use(const Use &use) {
  const Schedule &other = module.known[use.schedule];
  for (auto [i, param] : llvm::enumerate(other.params)) {
    const ast::Expr *arg = use.args[i] ? use.args[i] : param.decl->defaultValue;
    Term &place = globals[other.firstGlobal + i];
    place = evalAs(arg, param.type);
    inRange(param, place);
  }
}

/// The range of a parameter, which numbers may be outside of.
void Heads::inRange(const ScheduleParam &param, const Term &value) {
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
void Heads::headIsConstant() {
  for (const ast::Stmt *item : schedule.decl->items)
    refuseMention(item);
  for (const Use &use : schedule.uses)
    for (const ast::Stmt *item : module.known[use.schedule].decl->items)
      refuseMention(item);
  for (const KindCosts &costs : module.kindCosts)
    for (const ast::Expr *expr : {costs.time, costs.memory, costs.otherRank})
      if (expr)
        refuseMention(expr);
}

bool Heads::isFree(const Term &term) {
  return !term.i.isConstant() ||
         llvm::any_of(elementsOf(term),
                      [](Affine element) { return !element.isConstant(); });
}

bool Heads::mentionsFree(const ast::Expr *expr) {
  const ExprInfo &info = module.exprs[expr->id];
  if (isa<ast::NameExpr>(expr) && info.ref == ExprInfo::Ref::Global &&
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

void Heads::refuseMention(const ast::Expr *expr) {
  if (expr && mentionsFree(expr))
    stop(Kind::Undecided, expr->range,
         "the head depends on the number of microbatches here");
}

void Heads::refuseMention(const ast::Stmt *stmt) {
  using ast::StmtKind;
  switch (stmt->kind) { // Those that are evaluated for themselves.
  case StmtKind::Microbatches:
  case StmtKind::Require:
  case StmtKind::UseSchedule:
  case StmtKind::Function:
  case StmtKind::Block:
  case StmtKind::Rule:
  case StmtKind::Insert:
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

template <class Node> void Heads::refuseInFields(const Node &node) {
  forEachField(node, [&](const auto &field, StringRef) {
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
                         } && !std::is_same_v<Field, StringRef>) {
      for (const auto &child : field)
        if constexpr (std::is_class_v<std::decay_t<decltype(child)>> &&
                      !std::is_same_v<std::decay_t<decltype(child)>,
                                      ast::Identifier> &&
                      !std::is_same_v<std::decay_t<decltype(child)>, StringRef>)
          refuseInFields(child);
        else if constexpr (std::is_pointer_v<std::decay_t<decltype(child)>>)
          refuseInFields(*child);
    }
  });
}

/// The pipes that a declaration makes.
void Heads::pipes(size_t number) {
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

void Heads::microbatches(const PipeDecl &decl, const Pipe &pipe) {
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

void Heads::disjoint() {
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
