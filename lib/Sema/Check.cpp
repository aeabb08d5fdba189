// Checks files, schedules and the statements in them.
#include "Checker.h"
#include "GraphCheck.h"
#include "Settings.h"
#include "ppcc/IR/Tensors.h"
#include "ppcc/Support/Suggest.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace ppcc;
using namespace ppcc::sema;
using llvm::ArrayRef;
using llvm::cast;
using llvm::dyn_cast;
using llvm::StringRef;

StringRef sema::typeName(Type type) {
  static constexpr StringRef names[] = {"error", "int", "bool", "float",
                                        "pipe"};
  return names[static_cast<unsigned>(type)];
}

void Checker::file(const ast::File &file, bool isMain) {
  noteDeclarations(file.items);
  declareKinds(file.items);
  for (const ast::Item *item : file.items)
    fileItem(item);
  llvm::DenseMap<StringRef, SourceRange> names;
  for (const ast::Schedule &decl : file.schedules) {
    if (auto [found, isNew] =
            names.try_emplace(decl.name.text, decl.name.range);
        !isNew)
      redefined(decl.name, found->second);
    Schedule checked = schedule(decl);
    if (isMain)
      module.schedules.push_back(std::move(checked));
  }
}

void Checker::fileItem(const ast::Item *item) {
  switch (item->kind) {
  case ast::ItemKind::Action:
    return properties(*cast<ast::ActionItem>(item));
  case ast::ItemKind::Rule:
    return rule(cast<ast::RuleItem>(item));
  case ast::ItemKind::Apply:
    return apply(cast<ast::ApplyItem>(item), module.applications);
  default:
    return functionOrBlock(item);
  }
}

// ---- Statements ----

void Checker::body(ast::Body statements) {
  evalDepth = std::max(evalDepth, ++nowDepth);
  scopes.emplace_back();
  for (const ast::Stmt *s : statements)
    statement(s);
  scopes.pop_back();
  --nowDepth;
}

void Checker::notInOverlap(const ast::Stmt *stmt, StringRef word) {
  if (!structural)
    structural = stmt;
  if (inOverlap)
    diags.report<diag::NotInOverlap>(stmt->range, word);
}

void Checker::statement(const ast::Stmt *stmt) {
  using ast::StmtKind;
  switch (stmt->kind) {
  case StmtKind::Let: {
    auto *s = cast<ast::LetStmt>(stmt);
    Type valueType = check(s->value);
    module.stmts[s->id].index = defineLocal(s->name, valueType);
    return;
  }
  case StmtKind::Phase:
    notInOverlap(stmt, "phase");
    return body(cast<ast::PhaseStmt>(stmt)->body);
  case StmtKind::Repeat:
    expect(cast<ast::RepeatStmt>(stmt)->count, Type::Int,
           "the count of `repeat`");
    return body(cast<ast::RepeatStmt>(stmt)->body);
  case StmtKind::For: {
    auto *s = cast<ast::ForStmt>(stmt);
    expect(s->from, Type::Int, "the range of `for`");
    expect(s->to, Type::Int, "the range of `for`");
    scopes.emplace_back();
    module.stmts[s->id].index = defineLocal(s->variable, Type::Int);
    body(s->body);
    scopes.pop_back();
    return;
  }
  case StmtKind::While:
    expect(cast<ast::WhileStmt>(stmt)->condition, Type::Bool,
           "the condition of `while`");
    return body(cast<ast::WhileStmt>(stmt)->body);
  case StmtKind::If:
    for (const ast::IfStmt::Branch &branch :
         cast<ast::IfStmt>(stmt)->branches) {
      if (branch.condition)
        expect(branch.condition, Type::Bool, "the condition of `if`");
      body(branch.body);
    }
    return;
  case StmtKind::Overlap: {
    notInOverlap(stmt, "overlap");
    bool outer = std::exchange(inOverlap, true);
    body(cast<ast::OverlapStmt>(stmt)->body);
    inOverlap = outer;
    return;
  }
  case StmtKind::Defer: {
    auto *s = cast<ast::DeferStmt>(stmt);
    notInOverlap(stmt, "defer");
    module.stmts[s->id].index = deferrable(s->action);
    if (s->lag)
      expect(s->lag, Type::Int, "the lag");
    return body(s->body);
  }
  case StmtKind::Drain: {
    auto *s = cast<ast::DrainStmt>(stmt);
    notInOverlap(stmt, "drain");
    module.stmts[s->id].index = deferrable(s->action);
    if (s->chunk)
      chunkArgument(s->chunk);
    return;
  }
  case StmtKind::Action:
    return action(cast<ast::ActionStmt>(stmt));
  }
}

uint32_t Checker::deferrable(const ast::Identifier &name) {
  std::optional<KindId> part = computeKind(name.text);
  if (!part) {
    diags.report<diag::UnknownAction>(name.range, name.text, "");
    return 0;
  }
  bool ok = false;
  for (size_t whole = 0; whole != module.kinds.size(); ++whole)
    if (std::optional<KindId> rest = module.kinds.without(KindId(whole), *part))
      ok |= (module.kinds[*part].needs & module.kinds[*rest].defines) != 0;
  if (!ok)
    diags.report<diag::NotDeferrable>(name.range, name.text);
  return part->value;
}

void Checker::action(const ast::ActionStmt *stmt) {
  if (std::optional<KindId> kind = computeKind(stmt->name.text)) {
    module.stmts[stmt->id] = {false, kind->value};
    bool hasChunk = false, hasMicrobatch = false;
    for (const ast::ActionStmt::Argument &arg : stmt->args) {
      KindScope scope = module.kinds[*kind].scope;
      if (arg.label.text.empty() ? scope == KindScope::Rank
                                 : scope != KindScope::Microbatch)
        diags.report<diag::NotByMicrobatch>(
            arg.value->range, stmt->name.text, kindScopeNames()[size_t(scope)],
            arg.label.text.empty() ? "chunk" : "microbatch");
      if (arg.label.text.empty() && !hasChunk && !hasMicrobatch) {
        chunkArgument(arg.value);
        hasChunk = true;
      } else if (arg.label.text == "mb" && !hasMicrobatch) {
        expect(arg.value, Type::Int, "the microbatch");
        hasMicrobatch = true;
      } else if (arg.label.text.empty() || arg.label.text == "mb") {
        return wrongCount(stmt->name, "a chunk and perhaps `mb:`",
                          stmt->args.size());
      } else {
        check(arg.value);
        diags.report<diag::UnknownLabel>(arg.label.range, arg.label.text,
                                         didYouMean(arg.label.text, {"mb"}));
      }
    }
    return;
  }
  Symbol *symbol = lookup(stmt->name.text);
  if (!symbol || symbol->kind != Symbol::Kind::Block) {
    for (const ast::ActionStmt::Argument &arg : stmt->args)
      check(arg.value);
    if (reportOrder(stmt->name))
      return;
    std::vector<StringRef> names = visible(Symbol::Kind::Block);
    for (const KindInfo &kind : module.kinds.rows())
      if (kind.isCompute())
        names.push_back(kind.letters);
    diags.report<diag::UnknownAction>(stmt->name.range, stmt->name.text,
                                      didYouMean(stmt->name.text, names));
    return;
  }
  module.stmts[stmt->id] = {true, symbol->index};
  const Block &callee = module.blocks[symbol->index];
  llvm::SmallVector<const ast::Expr *> args;
  for (const ast::ActionStmt::Argument &arg : stmt->args) {
    if (!arg.label.text.empty())
      diags.report<diag::UnknownLabel>(arg.label.range, arg.label.text, "");
    args.push_back(arg.value);
  }
  arguments(stmt->name, callee.params, args);
  deepen(callee.depth, stmt->name.range);
  if (callee.structural) {
    if (inOverlap)
      diags.report<diag::NotInOverlap>(stmt->range, stmt->name.text)
          .note(callee.structural->range,
                "because of this statement of the block");
    if (!structural)
      structural = callee.structural;
  }
}

// ---- Declarations ----

Type Checker::declaredType(const ast::Identifier &name, Type otherwise) {
  if (name.text.empty())
    return otherwise;
  Type found = llvm::StringSwitch<Type>(name.text)
                   .Case("int", Type::Int)
                   .Case("bool", Type::Bool)
                   .Case("float", Type::Float)
                   .Case("pipe", Type::Pipe)
                   .Default(Type::Error);
  if (found == Type::Error)
    diags.report<diag::UnknownType>(
        name.range, name.text,
        didYouMean(name.text, {"int", "bool", "float", "pipe"}));
  return found;
}

std::vector<Type> Checker::localParams(ArrayRef<ast::Parameter> params) {
  std::vector<Type> types;
  for (const ast::Parameter &param : params) {
    types.push_back(declaredType(param.type, Type::Int));
    if (param.defaultValue)
      diags.report<diag::UnexpectedToken>(
          param.defaultValue->range, "default value",
          "`,` or `)`: only schedules have defaults");
    defineLocal(param.name, types.back());
  }
  return types;
}

void Checker::functionOrBlock(const ast::Item *item) {
  if (auto *decl = dyn_cast<ast::FunctionItem>(item)) {
    Function function{decl, {}, Type::Error, 0};
    bool wasOnRank = std::exchange(onRank, false);
    function.depth = inFrame(decl->name, [&] {
      function.params = localParams(decl->params);
      function.result = check(decl->value);
    });
    onRank = wasOnRank;
    module.functions.push_back(std::move(function));
    later.erase(decl->name.text);
    define(decl->name, {Symbol::Kind::Function,
                        ExprInfo::Ref::Function,
                        static_cast<uint32_t>(module.functions.size() - 1),
                        Type::Error,
                        {}});
    return;
  }
  auto *decl = cast<ast::BlockItem>(item);
  Block block{decl, {}, 0, 0, nullptr};
  structural = nullptr;
  bool wasOnRank = std::exchange(onRank, true);
  block.depth = inFrame(decl->name, [&] {
    block.params = localParams(decl->params);
    body(decl->body);
    block.numLocals = numLocals;
  });
  onRank = wasOnRank;
  block.structural = std::exchange(structural, nullptr);
  module.blocks.push_back(std::move(block));
  later.erase(decl->name.text);
  define(decl->name, {Symbol::Kind::Block,
                      ExprInfo::Ref::None,
                      static_cast<uint32_t>(module.blocks.size() - 1),
                      Type::Error,
                      {}});
}

Schedule Checker::schedule(const ast::Schedule &decl) {
  Schedule result;
  result.decl = &decl;
  numGlobals = numLocals = 0;
  scopes.emplace_back();
  noteDeclarations(itemsOf(decl));
  for (const ast::Parameter &param : decl.params) {
    Type declared = declaredType(param.type, Type::Error);
    if (param.type.text.empty())
      diags.report<diag::ExpectedToken>(
          param.name.range,
          "a type behind the name of a parameter, like `: int`");
    else if (declared == Type::Pipe)
      diags.report<diag::TypeMismatch>(param.type.range, "a parameter",
                                       "int, bool or float", "pipe");
    if (param.defaultValue)
      expect(param.defaultValue, declared, "the default value");
    result.params.push_back({&param, declared});
    defineGlobal(param.name, declared);
  }

  const ast::RanksItem *ranks = nullptr;
  const ast::BackwardItem *backward = nullptr;
  PipeDecl main;
  main.name = "main";
  main.range = decl.name.range;
  const ast::Item *mainItem = nullptr;
  for (const ast::Item *item : decl.items) {
    switch (item->kind) {
    case ast::ItemKind::Let: {
      auto *let = cast<ast::LetItem>(item);
      Type valueType = check(let->value);
      result.header.push_back(let);
      result.letSlots.push_back(defineGlobal(let->name, valueType));
      break;
    }
    case ast::ItemKind::Require:
      expect(cast<ast::RequireItem>(item)->condition, Type::Bool,
             "the condition of `require`");
      result.header.push_back(item);
      break;
    case ast::ItemKind::Ranks:
      expect(cast<ast::RanksItem>(item)->count, Type::Int,
             "the number of ranks");
      if (once(ranks, cast<ast::RanksItem>(item), "`ranks`"))
        result.header.push_back(item);
      break;
    case ast::ItemKind::Backward:
      expect(cast<ast::BackwardItem>(item)->condition, Type::Bool,
             "the condition of `backward`");
      if (once(backward, cast<ast::BackwardItem>(item), "`backward`"))
        result.header.push_back(item);
      break;
    case ast::ItemKind::Function:
    case ast::ItemKind::Block:
      functionOrBlock(item);
      break;
    case ast::ItemKind::Pipe:
      pipe(cast<ast::PipeItem>(item), result);
      break;
    case ast::ItemKind::Model:
      if (once(result.model, cast<ast::ModelItem>(item), "`model`"))
        model(result);
      break;
    case ast::ItemKind::Comm:
      if (once(result.comm, cast<ast::CommItem>(item), "`comm`"))
        checkComm(*result.comm, words, diags);
      break;
    case ast::ItemKind::Layer:
      result.layers.push_back(cast<ast::LayerItem>(item));
      graphBody(result.layers.back()->body);
      break;
    case ast::ItemKind::StageGraph:
      if (once(result.graph, cast<ast::StageGraphItem>(item), "`stage graph`"))
        stageGraph(result);
      break;
    case ast::ItemKind::Pattern:
      result.patterns.push_back(cast<ast::PatternItem>(item));
      graphBody(result.patterns.back()->body);
      break;
    case ast::ItemKind::Insert:
      result.rules.push_back(insertOfSchedule(cast<ast::InsertItem>(item)));
      break;
    case ast::ItemKind::Apply:
      apply(cast<ast::ApplyItem>(item), result.rules);
      break;
    case ast::ItemKind::OnRank:
      once(result.onRank, cast<ast::OnRankItem>(item), "`on rank`");
      break;
    default:
      mainItem = mainItem ? mainItem : item;
      pipeItem(item, main, result);
    }
  }
  result.headerLocals = numLocals;
  checkGraphs(result, module.kinds, diags);
  if (mainItem && !result.pipes.empty())
    diags
        .report<diag::MixedPipes>(mainItem->range,
                                  "stages, placement, microbatches and edges")
        .note(result.pipes.front().range, "the pipe is here");
  if (result.pipes.empty())
    result.pipes.push_back(std::move(main));
  for (const PipeDecl &p : result.pipes)
    complete(p, result.pipeSlots.empty()
                    ? fmt::format("schedule `{}`", decl.name.text)
                    : fmt::format("pipe `{}`", p.name));
  if (!ranks)
    diags.report<diag::MissingItem>(
        decl.name.range, fmt::format("schedule `{}`", decl.name.text),
        "`ranks`");
  if (!result.onRank) {
    diags.report<diag::MissingItem>(
        decl.name.range, fmt::format("schedule `{}`", decl.name.text),
        "`on rank`");
  } else {
    onRank = true;
    inFrame({}, [&] {
      defineLocal(result.onRank->variable, Type::Int);
      body(result.onRank->body);
      result.numLocals = numLocals;
    });
    onRank = false;
  }
  result.numGlobals = numGlobals;
  scopes.pop_back();
  for (const ast::Item *item : decl.items)
    if (auto *function = dyn_cast<ast::FunctionItem>(item))
      later.erase(function->name.text);
    else if (auto *block = dyn_cast<ast::BlockItem>(item))
      later.erase(block->name.text);
  return result;
}

void Checker::complete(const PipeDecl &pipe, std::string owner) {
  if (!pipe.microbatches)
    diags.report<diag::MissingItem>(pipe.range, owner, "`microbatches`");
  if (pipe.placement && (pipe.stages || pipe.stageMap))
    diags
        .report<diag::DuplicateItem>(pipe.placement->range,
                                     "way to place the stages")
        .note(pipe.stages ? pipe.stages->range : pipe.stageMap->range,
              "the first is here");
  else if (!pipe.placement && !pipe.stageMap)
    diags.report<diag::MissingItem>(
        pipe.range, owner,
        "`placement`, or `stages` with `stage s on rank ...`");
  else if (!pipe.placement && !pipe.stages)
    diags.report<diag::MissingItem>(pipe.range, owner,
                                    "`stages`, the number of them");
}

void Checker::pipe(const ast::PipeItem *item, Schedule &schedule) {
  PipeDecl decl;
  decl.name = item->name.text;
  decl.range = item->name.range;
  for (const ast::Item *child : item->items)
    pipeItem(child, decl, schedule);
  schedule.pipeSlots.push_back(defineGlobal(item->name, Type::Pipe));
  schedule.pipes.push_back(std::move(decl));
}

void Checker::moduleItem(const ast::ModuleItem *item, Schedule &schedule) {
  for (const ast::Expr *end : {item->from, item->to})
    expect(end, Type::Int, "a stage");
  // Of the pipe that is entered next.
  schedule.modules.push_back({item,
                              static_cast<uint32_t>(schedule.pipes.size()),
                              defineGlobal(item->name, Type::Pipe)});
}

void Checker::pipeItem(const ast::Item *item, PipeDecl &decl,
                       Schedule &schedule) {
  switch (item->kind) {
  case ast::ItemKind::Microbatches: {
    auto *i = cast<ast::MicrobatchesItem>(item);
    once(decl.microbatches, i, "`microbatches`");
    for (const ast::Expr *expr : {i->first, i->end, i->pad})
      if (expr)
        expect(expr, Type::Int, "a number of microbatches");
    return;
  }
  case ast::ItemKind::Placement:
    once(decl.placement, cast<ast::PlacementItem>(item), "`placement`");
    return placement(*cast<ast::PlacementItem>(item));
  case ast::ItemKind::Stages:
    once(decl.stages, cast<ast::StagesItem>(item), "`stages`");
    return expect(cast<ast::StagesItem>(item)->count, Type::Int,
                  "the number of stages");
  case ast::ItemKind::Slices:
    once(decl.slices, cast<ast::SlicesItem>(item), "`slices`");
    return expect(cast<ast::SlicesItem>(item)->count, Type::Int,
                  "the number of slices");
  case ast::ItemKind::Module:
    return moduleItem(cast<ast::ModuleItem>(item), schedule);
  case ast::ItemKind::StageMap: {
    auto *i = cast<ast::StageMapItem>(item);
    once(decl.stageMap, i, "`stage ... on rank`");
    scopes.emplace_back();
    decl.stageSlot = defineLocal(i->variable, Type::Int);
    expect(i->rank, Type::Int, "a rank");
    scopes.pop_back();
    return;
  }
  default:
    edge(item);
    decl.edges.push_back(item);
  }
}

void Checker::edge(const ast::Item *item) {
  if (auto *single = dyn_cast<ast::EdgeItem>(item)) {
    expect(single->from, Type::Int, "a stage");
    expect(single->to, Type::Int, "a stage");
    return;
  }
  auto *loop = cast<ast::EdgeLoopItem>(item);
  expect(loop->from, Type::Int, "the range of `for`");
  expect(loop->to, Type::Int, "the range of `for`");
  scopes.emplace_back();
  module.stmts[loop->id].index = defineLocal(loop->variable, Type::Int);
  for (const ast::Item *child : loop->items)
    edge(child);
  scopes.pop_back();
}

void Checker::placement(const ast::PlacementItem &item) {
  int takes = llvm::StringSwitch<int>(item.name.text)
                  .Cases("linear", "v", 0)
                  .Cases("loop", "wave", 1)
                  .Default(-1);
  if (takes < 0)
    diags.report<diag::UnknownPlacement>(
        item.name.range, item.name.text,
        didYouMean(item.name.text, {"linear", "loop", "v", "wave"}));
  else if (takes != (item.argument ? 1 : 0))
    wrongCount(item.name, takes ? "the number of chunks a rank" : "no argument",
               item.argument ? 1 : 0);
  if (item.argument)
    expect(item.argument, Type::Int, "the number of chunks");
}

// ---- Graphs ----

void Checker::stageGraph(Schedule &schedule) {
  scopes.emplace_back();
  schedule.graphSlot = defineLocal(schedule.graph->variable, Type::Int);
  graphBody(schedule.graph->body);
  scopes.pop_back();
}

void Checker::graphBody(ast::GraphBody statements) {
  scopes.emplace_back();
  for (const ast::GraphStmt *stmt : statements) {
    if (auto *perLayer = dyn_cast<ast::PerLayerStmt>(stmt)) {
      graphBody(perLayer->body);
    } else if (auto *repeat = dyn_cast<ast::GraphRepeatStmt>(stmt)) {
      expect(repeat->count, Type::Int, "the count of `repeat`");
      graphBody(repeat->body);
    } else if (auto *loop = dyn_cast<ast::GraphForStmt>(stmt)) {
      expect(loop->from, Type::Int, "the range of `for`");
      expect(loop->to, Type::Int, "the range of `for`");
      scopes.emplace_back();
      module.stmts[loop->id].index = defineLocal(loop->variable, Type::Int);
      graphBody(loop->body);
      scopes.pop_back();
    } else if (auto *choice = dyn_cast<ast::GraphIfStmt>(stmt)) {
      for (const ast::GraphIfStmt::Branch &branch : choice->branches) {
        if (branch.condition)
          expect(branch.condition, Type::Bool, "the condition of `if`");
        graphBody(branch.body);
      }
    }
  }
  scopes.pop_back();
}

// ---- Settings ----

void Checker::model(Schedule &schedule) {
  checkModel(*schedule.model, module.kinds, diags);
  for (const ast::ModelSetting &setting : schedule.model->settings) {
    scopes.emplace_back();
    pipeName(setting.pipe, schedule);
    const ast::Identifier &variable = setting.microbatchVariable.text.empty()
                                          ? setting.stageVariable
                                          : setting.microbatchVariable;
    schedule.modelSlots.push_back(
        variable.text.empty() ? 0 : defineLocal(variable, Type::Int));
    expect(setting.value, Type::Float, "a setting of `model`");
    scopes.pop_back();
  }
  for (const ast::ModelTensors &clause : schedule.model->tensors)
    schedule.tensorSlots.push_back(tensors(clause, schedule));
}

void Checker::pipeName(const ast::Identifier &name, const Schedule &schedule) {
  if (name.text.empty())
    return;
  auto isIt = [&](const PipeDecl &pipe) { return pipe.name == name.text; };
  if (schedule.pipeSlots.empty() || !llvm::any_of(schedule.pipes, isIt))
    diags.report<diag::UnknownName>(name.range, name.text, "");
}

uint32_t Checker::tensors(const ast::ModelTensors &clause,
                          const Schedule &schedule) {
  pipeName(clause.pipe, schedule);
  for (const ast::Expr *end : {clause.from, clause.to})
    if (end)
      expect(end, Type::Int, "a stage");
  scopes.emplace_back();
  uint32_t slot = defineLocal(clause.stageVariable, Type::Int);
  llvm::DenseMap<StringRef, SourceRange> names;
  for (const ast::TensorDecl &tensor : clause.tensors) {
    if (auto [first, isNew] =
            names.try_emplace(tensor.name.text, tensor.name.range);
        !isNew)
      redefined(tensor.name, first->second);
    if (!findElementType(tensor.type.text))
      diags.report<diag::UnknownElementType>(
          tensor.type.range, tensor.type.text,
          didYouMean(tensor.type.text, elementTypeNames()));
    for (const ast::Expr *dim : tensor.dims)
      if (dim)
        expect(dim, Type::Int, "a size");
  }
  scopes.pop_back();
  return slot;
}

std::optional<Module> sema::check(ArrayRef<ast::File> files,
                                  const ast::Context &context,
                                  const CommWords &words,
                                  DiagnosticEngine &diags) {
  size_t before = diags.errorCount();
  Module module;
  module.exprs.resize(context.numExprs());
  module.stmts.resize(context.numStmts());
  Checker checker(module, words, diags);
  for (const ast::File &file : files)
    checker.file(file, &file == &files.back());
  if (diags.errorCount() != before)
    return std::nullopt;
  return module;
}

const Schedule *sema::selectSchedule(const Module &module, StringRef name,
                                     StringRef fileName,
                                     DiagnosticEngine &diags) {
  std::vector<StringRef> names;
  for (const Schedule &schedule : module.schedules) {
    names.push_back(schedule.decl->name.text);
    if (names.back() == name)
      return &schedule;
  }
  if (names.empty())
    diags.report<diag::NoSchedule>(Place(), fileName);
  else if (!name.empty())
    diags.report<diag::UnknownSchedule>(Place(), name, fileName,
                                        didYouMean(name, names));
  else if (names.size() > 1)
    diags.report<diag::WhichSchedule>(Place(), fileName, names.size(),
                                      llvm::join(names, ", "));
  else
    return &module.schedules.front();
  return nullptr;
}
