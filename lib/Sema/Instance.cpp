// Binds parameters and evaluates the header of a schedule.
#include "ppcc/Sema/Instance.h"

#include "EdgeTensors.h"
#include "GraphBuilder.h"
#include "ppcc/Support/Suggest.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace ppcc;
using namespace ppcc::sema;
using llvm::ArrayRef;
using llvm::cast;
using llvm::dyn_cast;
using llvm::StringRef;

static std::string text(Type type, Value value) {
  switch (type) {
  case Type::Bool:
    return value.i ? "true" : "false";
  case Type::Float:
    return fmt::format("{}", value.f);
  default:
    return fmt::format("{}", value.i);
  }
}

static std::optional<Value> parseValue(Type type, StringRef text) {
  Value value{.i = 0};
  switch (type) {
  case Type::Int:
    return text.getAsInteger(10, value.i) ? std::nullopt : std::optional(value);
  case Type::Float:
    return text.getAsDouble(value.f) || !std::isfinite(value.f)
               ? std::nullopt
               : std::optional(value);
  default:
    value.i = text == "true";
    return text == "true" || text == "false" ? std::optional(value)
                                             : std::nullopt;
  }
}

static void collectNames(const ast::Expr *expr,
                         llvm::SmallVectorImpl<const ast::NameExpr *> &names) {
  if (auto *name = dyn_cast<ast::NameExpr>(expr)) {
    if (llvm::none_of(names, [&](const ast::NameExpr *n) {
          return n->name == name->name;
        }))
      names.push_back(name);
  } else if (auto *unary = dyn_cast<ast::UnaryExpr>(expr)) {
    collectNames(unary->operand, names);
  } else if (auto *binary = dyn_cast<ast::BinaryExpr>(expr)) {
    collectNames(binary->lhs, names);
    collectNames(binary->rhs, names);
  } else if (auto *conditional = dyn_cast<ast::ConditionalExpr>(expr)) {
    for (const ast::Expr *child :
         {conditional->condition, conditional->then, conditional->otherwise})
      collectNames(child, names);
  } else if (auto *call = dyn_cast<ast::CallExpr>(expr)) {
    for (const ast::Expr *arg : call->args)
      collectNames(arg, names);
  }
}

static std::string source(const ast::Expr *expr) {
  std::string text;
  llvm::raw_string_ostream out(text);
  print(expr, out);
  return text;
}

namespace {

/// Edges that a schedule may add, duplicates included.
constexpr uint32_t maxEdges = 1u << 22;

class Instantiator {
public:
  Instantiator(const Schedule &schedule, const Limits &limits,
               Evaluator &evaluator, DiagnosticEngine &diags)
      : schedule(schedule), limits(limits), evaluator(evaluator), diags(diags) {
    instance.schedule = &schedule;
    instance.program.name = schedule.decl->name.text.str();
    instance.program.kinds = evaluator.checkedModule().kinds;
  }

  std::optional<Instance> run(ArrayRef<ParamValue> values,
                              const std::vector<std::string> *layout) {
    size_t before = diags.errorCount();
    takeLayout(layout);
    evaluator.globals.assign(schedule.numGlobals, Value{.i = 0});
    for (size_t i = 0; i != schedule.pipeSlots.size(); ++i)
      evaluator.globals[schedule.pipeSlots[i]] = {.i = static_cast<int64_t>(i)};
    for (auto [i, module] : llvm::enumerate(schedule.modules))
      evaluator.globals[module.slot] = {
          .i = static_cast<int64_t>(schedule.pipes.size() + i)};
    params(values);
    if (diags.errorCount() == before)
      header();
    if (diags.errorCount() == before)
      pipes();
    if (diags.errorCount() == before)
      declaredCosts();
    if (diags.errorCount() == before && schedule.model)
      costs();
    if (diags.errorCount() == before && schedule.model)
      addTensors(schedule, evaluator, program(), diags);
    if (diags.errorCount() == before && schedule.graph)
      buildGraphs(schedule, limits, evaluator, program(), diags);
    if (diags.errorCount() == before)
      rules();
    if (diags.errorCount() != before)
      return std::nullopt;
    return std::move(instance);
  }

private:
  Program &program() { return instance.program; }

  /// The layout given from outside, or the schedule's.
  void takeLayout(const std::vector<std::string> *given) {
    if (schedule.model)
      for (const ast::ModelText &text : schedule.model->texts) {
        layoutPlace = text.text.range;
        for (StringRef stage : text.stages)
          program().stageLayers.push_back(stage.str());
      }
    if (given) {
      program().stageLayers = *given;
      layoutPlace = Place("--layout");
    }
    if (!program().stageLayers.empty())
      evaluator.layers.emplace(program().stageLayers);
  }

  void params(ArrayRef<ParamValue> values) {
    std::vector<StringRef> names;
    for (const ScheduleParam &param : schedule.params)
      names.push_back(param.decl->name.text);
    std::vector<const ParamValue *> given(names.size());
    for (const ParamValue &value : values) {
      auto found = llvm::find(names, value.name);
      if (found == names.end())
        diags.report<diag::UnknownParameter>(Place("-D " + value.name),
                                             program().name, value.name,
                                             didYouMean(value.name, names));
      else if (const ParamValue *&place = given[found - names.begin()])
        diags.report<diag::ParameterGivenTwice>(Place("-D " + value.name),
                                                value.name);
      else
        place = &value;
    }
    for (size_t i = 0; i != names.size(); ++i) {
      const ScheduleParam &param = schedule.params[i];
      Value &slot = evaluator.globals[i];
      if (given[i]) {
        if (std::optional<Value> value =
                parseValue(param.type, given[i]->value))
          slot = *value;
        else
          diags.report<diag::BadParameterValue>(Place("-D " + given[i]->name),
                                                given[i]->value, names[i],
                                                typeName(param.type));
      } else if (param.decl->defaultValue) {
        slot = typed(param.decl->defaultValue, param.type);
      } else {
        diags.report<diag::MissingParameter>(param.decl->name.range, names[i]);
      }
      program().params.push_back(
          {names[i].str(), typeName(param.type).str(), text(param.type, slot)});
    }
  }

  Value typed(const ast::Expr *expr, Type type) {
    return type == Type::Float ? Value{.f = evaluator.evalFloat(expr)}
                               : evaluator.eval(expr);
  }

  void header() {
    size_t before = diags.errorCount(), nextLet = 0;
    for (const ast::Item *item : schedule.header) {
      evaluator.clearFailed();
      if (auto *let = dyn_cast<ast::LetItem>(item)) {
        Value value = evaluator.eval(let->value);
        if (evaluator.failed())
          return; // What follows may use it.
        evaluator.globals[schedule.letSlots[nextLet++]] = value;
      } else if (auto *r = dyn_cast<ast::RequireItem>(item)) {
        require(*r);
      } else if (diags.errorCount() != before) {
        continue; // A `require` has said it in the words of the schedule.
      } else if (auto *ranks = dyn_cast<ast::RanksItem>(item)) {
        program().numRanks = static_cast<uint32_t>(
            inRange(ranks->count, "the number of ranks", 1, Program::maxRanks));
      } else {
        program().hasBackward =
            evaluator.evalBool(cast<ast::BackwardItem>(item)->condition);
      }
    }
  }

  void require(const ast::RequireItem &item) {
    bool holds = evaluator.evalBool(item.condition);
    if (holds || evaluator.failed())
      return;
    std::string condition = source(item.condition);
    auto builder = diags.report<diag::RequireFailed>(
        item.condition->range,
        item.message.empty() ? fmt::format("`{}` does not hold", condition)
                             : item.message.str());
    llvm::SmallVector<const ast::NameExpr *> names;
    collectNames(item.condition, names);
    std::string values;
    for (const ast::NameExpr *name : names)
      values += fmt::format("{}{} = {}", values.empty() ? "" : ", ", name->name,
                            describe(name));
    if (values.empty())
      builder.note({}, "`{}` is false", condition);
    else
      builder.note({}, "`{}` is false with {}", condition, values);
  }

  /// The value of a name in the header.
  std::string describe(const ast::NameExpr *name) {
    Value value = evaluator.eval(name);
    Type type = evaluator.type(name);
    if (type != Type::Pipe)
      return text(type, value);
    size_t i = value.i, pipes = schedule.pipes.size();
    return i < pipes ? schedule.pipes[i].name.str()
                     : schedule.modules[i - pipes].item->name.text.str();
  }

  /// As Evaluator::evalInRange, whatever failed before.
  int64_t inRange(const ast::Expr *expr, StringRef what, int64_t low,
                  int64_t high) {
    evaluator.clearFailed();
    return evaluator.evalInRange(expr, what, low, high);
  }

  void pipes() {
    if (schedule.pipes.size() > Program::maxPipes) {
      diags.report<diag::OutOfRange>(
          schedule.pipes.back().range, "the number of pipes",
          schedule.pipes.size(), 1, Program::maxPipes);
      return;
    }
    size_t errorsBefore = diags.errorCount();
    for (const PipeDecl &decl : schedule.pipes) {
      Pipe pipe;
      pipe.name = decl.name.str();
      size_t previous = evaluator.pushFrame(schedule.headerLocals);
      size_t before = diags.errorCount();
      stages(decl, pipe);
      if (diags.errorCount() == before && evaluator.layers &&
          evaluator.layers->numStages() != pipe.numStages())
        diags.report<diag::LayoutStages>(layoutPlace,
                                         evaluator.layers->numStages(),
                                         pipe.name, pipe.numStages());
      if (diags.errorCount() == before)
        microbatches(decl, pipe);
      neighbourEdges.clear();
      gapRanges.clear();
      for (const ast::Item *item : decl.edges) {
        evaluator.clearFailed();
        edge(item, pipe);
      }
      llvm::sort(pipe.skipEdges);
      pipe.skipEdges.erase(llvm::unique(pipe.skipEdges), pipe.skipEdges.end());
      llvm::sort(pipe.gaps);
      pipe.gaps.erase(llvm::unique(pipe.gaps), pipe.gaps.end());
      checkGaps(pipe);
      evaluator.popFrame(previous);
      program().pipes.push_back(std::move(pipe));
    }
    if (diags.errorCount() != errorsBefore)
      return;
    checkDisjoint();
    parts();
  }

  /// What values of type `pipe` stand for.
  void parts() {
    for (auto [i, pipe] : llvm::enumerate(program().pipes))
      instance.parts.push_back({pipe.name, PipeId(i), 0, pipe.numStages()});
    for (const ModuleDecl &module : schedule.modules) {
      int64_t stages = program().pipes[module.pipe].numStages(),
              from = inRange(module.item->from, "a stage", 0, stages),
              to = inRange(module.item->to, "a stage", from, stages);
      instance.parts.push_back(
          {module.item->name.text.str(), PipeId(module.pipe),
           static_cast<uint32_t>(from), static_cast<uint32_t>(to)});
    }
  }

  void microbatches(const PipeDecl &decl, Pipe &pipe) {
    const ast::MicrobatchesItem &item = *decl.microbatches;
    evaluator.clearFailed();
    // What the limit on actions forbids is said in its terms, whatever else may
    // be wrong with the number.
    int64_t end = evaluator.evalInt(item.end),
            first = item.first ? evaluator.evalInt(item.first) : 0;
    int64_t pad = item.pad ? evaluator.evalInt(item.pad) : 0;
    if (evaluator.failed())
      return;
    __int128 actions = std::max(__int128(end) - first, __int128(pad));
    actions *= int64_t(pipe.numStages()) * (program().hasBackward ? 2 : 1);
    if (total += actions; actions > 0 && total > limits.maxActions) {
      diags.report<diag::TooManyActions>(
          item.end->range,
          total > INT64_MAX ? INT64_MAX : static_cast<int64_t>(total),
          limits.maxActions);
      return;
    }
    if (item.first)
      first = inRange(item.first, "the first microbatch", 0,
                      Program::maxMicrobatches - 1);
    end = inRange(item.end,
                  item.first ? "the end of the microbatches"
                             : "the number of microbatches",
                  first + 1, Program::maxMicrobatches);
    pipe.firstMicrobatch = static_cast<uint32_t>(first);
    pipe.numMicrobatches = static_cast<uint32_t>(end - first);
    if (decl.slices)
      pipe.slices = static_cast<uint32_t>(inRange(decl.slices->count,
                                                  "the number of slices", 1,
                                                  Program::maxMicrobatches));
    int64_t padded =
        item.pad ? inRange(item.pad, "the padded number of microbatches", 0,
                           Program::maxMicrobatches)
                 : pipe.numMicrobatches;
    if (padded < pipe.numMicrobatches && !evaluator.failed())
      diags.report<diag::PadTooSmall>(item.pad->range, padded,
                                      pipe.numMicrobatches);
    for (int64_t count : {int64_t(pipe.numMicrobatches), padded})
      if (count % pipe.slices != 0 &&
          evaluator.fail(diag::SlicesUneven, decl.slices->range))
        diags.report<diag::SlicesUneven>(decl.slices->range, count,
                                         pipe.slices);
    instance.padded.push_back(static_cast<uint64_t>(padded));
  }

  void stages(const PipeDecl &decl, Pipe &pipe) {
    if (decl.placement)
      return place(*decl.placement, pipe);
    int64_t count = inRange(decl.stages->count, "the number of stages", 1,
                            Program::maxStages);
    pipe.rankOfStage.reserve(count);
    for (int64_t stage = 0; stage != count; ++stage) {
      evaluator.clearFailed();
      evaluator.local(decl.stageSlot) = {.i = stage};
      int64_t rank = evaluator.evalInt(decl.stageMap->rank);
      if (evaluator.failed())
        return;
      if (rank < 0 || rank >= program().numRanks) {
        diags.report<diag::StageOnNoRank>(decl.stageMap->rank->range, stage,
                                          rank, program().numRanks - 1);
        return;
      }
      pipe.rankOfStage.push_back(RankId(rank));
    }
  }

  /// The usual maps of a pipe: `chunks` stages a rank; a folded one turns back
  /// at each end.
  void place(const ast::PlacementItem &item, Pipe &pipe) {
    uint32_t ranks = program().numRanks;
    bool folds = item.name.text == "v" || item.name.text == "wave";
    int64_t chunks = item.name.text == "v" ? 2 : 1;
    if (item.argument)
      chunks = inRange(item.argument, "the number of chunks a rank", 1,
                       Program::maxStages);
    if (chunks * ranks > Program::maxStages) {
      diags.report<diag::OutOfRange>(item.range, "the number of stages",
                                     chunks * ranks, 1, Program::maxStages);
      return;
    }
    for (int64_t chunk = 0; chunk != chunks; ++chunk)
      for (uint32_t r = 0; r != ranks; ++r)
        pipe.rankOfStage.push_back(
            RankId(folds && chunk % 2 ? ranks - 1 - r : r));
  }

  void edge(const ast::Item *item, Pipe &pipe) {
    if (auto *loop = dyn_cast<ast::EdgeLoopItem>(item)) {
      int64_t from = evaluator.evalInt(loop->from),
              to = evaluator.evalInt(loop->to);
      for (int64_t i = from;
           i < to && !evaluator.failed() && evaluator.step(loop->range); ++i) {
        evaluator.local(edgeSlot(loop)) = {.i = i};
        for (const ast::Item *child : loop->items)
          edge(child, pipe);
      }
      return;
    }
    auto *single = cast<ast::EdgeItem>(item);
    int64_t from = evaluator.evalInt(single->from),
            to = evaluator.evalInt(single->to);
    if (evaluator.failed())
      return;
    if (single->isAbsent)
      return gap(*single, from, to, pipe);
    if (from < 0 || from >= to || to >= pipe.numStages()) {
      if (evaluator.fail(diag::BadEdge, single->from->range))
        diags.report<diag::BadEdge>(
            SourceRange(single->from->range.begin, single->to->range.end), from,
            to, pipe.numStages());
      return;
    }
    if (++numEdges > maxEdges) {
      if (evaluator.fail(diag::OutOfRange, single->range))
        diags.report<diag::OutOfRange>(single->range, "the number of edges",
                                       numEdges, 0, maxEdges);
      return;
    }
    if (to == from + 1) // Neighbours have their edge already.
      neighbourEdges.try_emplace(from, single->range);
    else
      pipe.skipEdges.push_back({StageId(from), StageId(to)});
  }

  /// Leaves out the edge from a stage to the next.
  void gap(const ast::EdgeItem &item, int64_t from, int64_t to, Pipe &pipe) {
    if (from >= 0 && to < pipe.numStages() && to == from + 1) {
      pipe.gaps.push_back(StageId(from));
      gapRanges.try_emplace(from, item.range);
    } else if (evaluator.fail(diag::NoSuchNeighbours, item.from->range)) {
      diags.report<diag::NoSuchNeighbours>(
          SourceRange(item.from->range.begin, item.to->range.end),
          pipe.numStages(), from, to);
    }
  }

  /// Reports edges that are written both with and without `no`.
  void checkGaps(const Pipe &pipe) {
    for (StageId gap : pipe.gaps)
      if (auto added = neighbourEdges.find(gap.value);
          added != neighbourEdges.end() && !diags.saturated())
        diags
            .report<diag::EdgeBothWays>(gapRanges.lookup(gap.value), gap.value,
                                        gap.value + 1)
            .note(added->second, "it is added here");
  }
  uint32_t edgeSlot(const ast::EdgeLoopItem *loop) const {
    return evaluator.slotOf(loop->id);
  }

  /// What declarations of actions say, which `model` may override.
  void declaredCosts() {
    CostModel &costs = program().costs;
    for (const KindCosts &kind : evaluator.checkedModule().kindCosts) {
      evaluator.clearFailed();
      if (kind.time)
        costs.actions.push_back({kind.kind, {}, {timeOf(kind.time)}});
      if (kind.memory)
        costs.memory.push_back(
            {kind.kind,
             {},
             {amountOf(kind.memory,
                       "memory " + program().kinds[kind.kind].letters,
                       /*isSigned=*/true)}});
    }
  }

  /// Gives values to the parameters of the rules that are followed.
  void rules() {
    const Module &module = evaluator.checkedModule();
    for (ArrayRef<Application> list :
         {ArrayRef(schedule.rules), ArrayRef(module.applications)})
      for (const Application &application : list) {
        evaluator.clearFailed();
        instance.rules.push_back(
            bound(module.rules[application.rule], application));
      }
  }

  BoundRule bound(const Rule &rule, const Application &application) {
    BoundRule result{&rule, application.range, {}};
    for (auto [type, arg] : llvm::zip_equal(rule.params, application.args))
      result.args.push_back(arg ? typed(arg, type) : Value{.i = 0});
    size_t previous = evaluator.pushFrame(rule.numLocals);
    for (auto [i, arg] : llvm::enumerate(application.args)) {
      if (!arg)
        result.args[i] =
            typed(rule.item->params[i].defaultValue, rule.params[i]);
      evaluator.local(i) = result.args[i];
    }
    evaluator.popFrame(previous);
    return result;
  }

  /// The settings of `model`.
  void costs() {
    size_t previous = evaluator.pushFrame(schedule.headerLocals);
    for (auto [setting, slot] :
         llvm::zip(schedule.model->settings, schedule.modelSlots)) {
      evaluator.clearFailed();
      modelSetting(setting, slot);
    }
    evaluator.popFrame(previous);
  }

  void modelSetting(const ast::ModelSetting &setting, uint32_t slot) {
    CostModel &costs = program().costs;
    StringRef name = setting.name.text, subject = setting.subject.text;
    if (!setting.node.text.empty())
      costs.nodes.push_back({*program().kinds.find(subject),
                             setting.node.text.str(), wholeCost(setting)});
    else if (name == "cost" && subject == "overlap")
      costs.overlap = wholeCost(setting);
    else if (name == "cost")
      byAction(setting, slot, costs.actions);
    else if (name == "group") {
      costs.groupRule = subject == "max" ? GroupRule::Max : GroupRule::Sum;
      costs.groupFactor = wholeCost(setting);
    } else if (name == "latency" && !isByStage(setting)) {
      costs.latency = timeOf(setting);
      costs.latencies.clear();
    } else if (name == "latency")
      byStage(setting, slot, costs.latencies);
    else if (name == "bandwidth")
      byStage(setting, slot, costs.bandwidths);
    else if (name == "bytes")
      byStage(setting, slot, costs.bytes);
    else if (name == "scale")
      scale(setting, slot);
    else if (subject == "limit")
      costs.memoryLimits = {isWhole(setting) ? amountOf(setting) : 0};
    else if (subject == "static")
      byStage(setting, slot, costs.staticMemory);
    else
      byAction(setting, slot, costs.memory);
  }

  void scale(const ast::ModelSetting &setting, uint32_t slot) {
    StringRef subject = setting.subject.text;
    MicrobatchScale result;
    auto *word = llvm::find(scaling::names(), subject);
    if (word != scaling::names().end())
      result.of = MicrobatchScale::Of(word - scaling::names().begin());
    else if (!subject.empty()) {
      result.of = MicrobatchScale::Of::Time;
      result.kind = program().kinds.find(subject);
    }
    numFactors += program().totalMicrobatches();
    if (numFactors > limits.maxActions) {
      diags.report<diag::OutOfRange>(setting.name.range,
                                     "the number of factors of `scale`",
                                     numFactors, 0, limits.maxActions);
      return;
    }
    for (const Pipe &pipe : program().pipes)
      for (uint32_t m = pipe.firstMicrobatch; m != pipe.endMicrobatch(); ++m) {
        evaluator.local(slot) = {.i = m};
        if (!evaluator.step(setting.name.range))
          return;
        result.factors.push_back(factorOf(setting.value));
        if (evaluator.failed())
          return;
      }
    program().costs.scales.push_back(std::move(result));
  }

  int64_t factorOf(const ast::Expr *expr) {
    double value = evaluator.evalFloat(expr);
    if (evaluator.failed())
      return 0;
    auto factor = scaling::fromDouble(value);
    if (!factor && evaluator.fail(diag::BadFactor, expr->range))
      diags.report<diag::BadFactor>(expr->range, value,
                                    scaling::max / scaling::unit);
    return factor.value_or(0);
  }

  static bool isByStage(const ast::ModelSetting &setting) {
    return !setting.pipe.text.empty() || !setting.stageVariable.text.empty();
  }

  /// Reports a setting that cannot differ from stage to stage, but does.
  bool isWhole(const ast::ModelSetting &setting) {
    for (const ast::Identifier &name : {setting.pipe, setting.stageVariable})
      if (!name.text.empty()) {
        diags.report<diag::CostIsOne>(name.range, nameOf(setting));
        return false;
      }
    return true;
  }
  static std::string nameOf(const ast::ModelSetting &setting) {
    std::string name = setting.name.text.str();
    if (!setting.subject.text.empty())
      name += " " + setting.subject.text.str();
    if (!setting.node.text.empty())
      name += "." + setting.node.text.str();
    return name;
  }

  Time wholeCost(const ast::ModelSetting &setting) {
    return isWhole(setting) ? timeOf(setting) : 0;
  }

  void byAction(const ast::ModelSetting &setting, uint32_t slot,
                std::vector<CostSetting> &settings) {
    KindId kind = *program().kinds.find(setting.subject.text);
    forEachPipe(setting, slot, [&](std::optional<PipeId> pipe, auto values) {
      settings.push_back({kind, pipe, std::move(values)});
    });
  }

  void byStage(const ast::ModelSetting &setting, uint32_t slot,
               std::vector<StageSetting> &settings) {
    forEachPipe(setting, slot, [&](std::optional<PipeId> pipe, auto values) {
      settings.push_back({pipe, std::move(values)});
    });
  }

  /// Calls `add` with the values of a setting: one for all, or for each pipe
  /// that it speaks of one or as many as there are stages.
  template <class Add>
  void forEachPipe(const ast::ModelSetting &setting, uint32_t slot, Add add) {
    bool byStage = !setting.stageVariable.text.empty();
    if (!isByStage(setting))
      return add(std::nullopt, std::vector<int64_t>{valueOf(setting)});
    for (auto [i, pipe] : llvm::enumerate(program().pipes)) {
      if (!setting.pipe.text.empty() && setting.pipe.text != pipe.name)
        continue;
      std::vector<int64_t> values;
      uint32_t count = byStage ? pipe.numStages() : 1;
      for (uint32_t stage = 0; stage != count; ++stage) {
        if (byStage)
          evaluator.local(slot) = {.i = stage};
        if (!evaluator.step(setting.name.range))
          return;
        values.push_back(valueOf(setting));
        if (evaluator.failed())
          return;
      }
      if (!values.empty())
        add(PipeId(i), std::move(values));
    }
  }

  /// The value of a setting; 0, and a report, when it is none.
  int64_t valueOf(const ast::ModelSetting &setting) {
    bool isTime = setting.name.text == "cost" || setting.name.text == "latency";
    return isTime ? timeOf(setting) : amountOf(setting);
  }

  Time timeOf(const ast::ModelSetting &setting) {
    return timeOf(setting.value);
  }

  Time timeOf(const ast::Expr *expr) {
    double value = evaluator.evalFloat(expr);
    if (evaluator.failed())
      return 0;
    Time time = 0;
    switch (cost::fromDouble(value, time)) {
    case cost::Fault::None:
      break;
    case cost::Fault::Negative:
      if (evaluator.fail(diag::NegativeCost, expr->range))
        diags.report<diag::NegativeCost>(expr->range, value);
      break;
    case cost::Fault::TooLarge:
      if (evaluator.fail(diag::CostTooLarge, expr->range))
        diags.report<diag::CostTooLarge>(expr->range, value,
                                         cost::max / cost::unit);
    }
    return time;
  }

  Amount amountOf(const ast::ModelSetting &setting) {
    bool isSigned = setting.name.text == "memory" &&
                    setting.subject.text != "static" &&
                    setting.subject.text != "limit";
    Amount amount = amountOf(setting.value, nameOf(setting), isSigned);
    SourceRange range = setting.value->range;
    if (amount == 0 && setting.name.text == "bandwidth" &&
        !evaluator.failed() && evaluator.fail(diag::NoBandwidth, range))
      diags.report<diag::NoBandwidth>(range);
    return amount;
  }

  Amount amountOf(const ast::Expr *expr, StringRef name, bool isSigned) {
    double value = evaluator.evalFloat(expr);
    if (evaluator.failed())
      return 0;
    auto amount = amount::fromDouble(value);
    if (!amount) {
      if (evaluator.fail(diag::AmountTooLarge, expr->range))
        diags.report<diag::AmountTooLarge>(expr->range, name, value,
                                           amount::max / amount::unit);
    } else if (*amount < 0 && !isSigned) {
      if (evaluator.fail(diag::NegativeAmount, expr->range))
        diags.report<diag::NegativeAmount>(expr->range, name, value);
    }
    return amount.value_or(0);
  }

  void checkDisjoint() {
    std::vector<const Pipe *> order;
    for (const Pipe &pipe : program().pipes)
      order.push_back(&pipe);
    llvm::stable_sort(order, [](const Pipe *a, const Pipe *b) {
      return a->firstMicrobatch < b->firstMicrobatch;
    });
    for (size_t i = 1; i < order.size(); ++i)
      if (order[i]->firstMicrobatch < order[i - 1]->endMicrobatch())
        diags.report<diag::MicrobatchTwice>(
            schedule.pipes[order[i] - program().pipes.data()].range,
            order[i - 1]->name, order[i]->name, order[i]->firstMicrobatch);
  }

  const Schedule &schedule;
  const Limits &limits;
  Evaluator &evaluator;
  DiagnosticEngine &diags;
  Instance instance;
  Place layoutPlace;
  __int128 total = 0;
  uint32_t numEdges = 0;
  uint64_t numFactors = 0; ///< Of all scales.
  // Of the pipe at hand, by the lower stage.
  llvm::DenseMap<int64_t, SourceRange> neighbourEdges, gapRanges;
};

} // namespace

std::optional<Instance>
sema::instantiate(const Schedule &schedule, ArrayRef<ParamValue> values,
                  const std::vector<std::string> *layout, const Limits &limits,
                  Evaluator &evaluator, DiagnosticEngine &diags) {
  return Instantiator(schedule, limits, evaluator, diags).run(values, layout);
}

ArrayRef<ast::Identifier> sema::commSetting(const Schedule &schedule,
                                            StringRef name) {
  if (schedule.comm)
    for (const ast::CommSetting &setting : schedule.comm->settings)
      if (setting.name.text == name)
        return setting.values;
  return {};
}
