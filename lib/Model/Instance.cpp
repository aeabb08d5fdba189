// Binds parameters and evaluates the header of a schedule.

#include "Layers.h"
#include "ppcc/Basic/Diagnostics/Sema.h"

#include "llvm/Support/SaveAndRestore.h"

using namespace ppcc;
using namespace ppcc::sema;

/// Takes the layout given from outside, or the model's.
static void takeLayout(const Section *model, const LayoutOverride &given,
                       const InstantiationContext &context) {
  Head &head = context.head;
  if (given.isByCost && (!model || model->layers.empty()))
    context.diags.report<diag::MissingItem>(Location("--layout"), "the model",
                                            "layers that could be cut");
  if (!given.stages.empty())
    head.stageLayers = given.stages;
  else if (model && model->layout && !given.isByCost)
    for (StringRef stage : model->layout->stages)
      head.stageLayers.push_back(stage.str());
  if (!head.stageLayers.empty())
    context.evaluator.layers.emplace(head.stageLayers);
}

Location sema::locationOfLayout(const Section *model,
                                const LayoutOverride &given) {
  return given.stages.empty() && model && model->layout
             ? Location(model->layout->text.range)
             : given.place;
}

/// Gives values to the parameters of a rule that is followed.
static BoundRule bind(const Rule &rule, const Application &application,
                      Evaluator &evaluator, DiagnosticEngine &diags) {
  BoundRule result{&rule, application.range, {}};
  evaluator.clearFailed();
  for (auto [type, arg] : llvm::zip_equal(rule.params, application.args))
    result.args.push_back(arg ? evaluator.evalAs(arg, type) : Value{.i = 0});
  Evaluator::Frame frame(evaluator, rule.numLocals);
  for (auto [i, arg] : llvm::enumerate(application.args)) {
    if (!arg)
      result.args[i] =
          evaluator.evalAs(rule.item->params[i].defaultValue, rule.params[i]);
    evaluator.local(i) = result.args[i];
    const ast::Parameter &param = rule.item->params[i];
    isInRange(param, rule.params[i], result.args[i],
              arg ? arg->range : param.name.range, evaluator, diags);
  }
  return result;
}

std::vector<Owner> sema::ownersOf(const Selection &selection) {
  std::vector<Owner> owners{{"schedule", selection.schedule}};
  for (const Section *section : {selection.model, selection.cluster})
    if (section)
      owners.push_back({section->word(), section});
  return owners;
}

Units Selection::units() const {
  Units units;
  for (const Section *section : {model, cluster})
    if (section) {
      if (units.ofTime.empty())
        units.ofTime = section->units.ofTime;
      units.inBytes |= section->units.inBytes;
    }
  return units;
}

/// Reports a cluster whose times are in another unit than those of the model,
/// and one of the two that does not say its unit.
static void compareUnits(const Selection &selection, DiagnosticEngine &diags) {
  const Section *model = selection.model, *cluster = selection.cluster;
  if (!model || !cluster || model->units.ofTime == cluster->units.ofTime)
    return;
  auto *silent = model->units.ofTime.empty()     ? model
                 : cluster->units.ofTime.empty() ? cluster
                                                 : nullptr;
  if (silent) {
    SourceRange place;
    for (const auto &setting : silent->settings)
      if (llvm::is_contained({"cost", "latency", "bandwidth"},
                             setting.item->name.text))
        place = setting.item->range;
    if (!silent->links.empty())
      place = silent->links.front().item->range;
    const Section *other = silent == model ? cluster : model;
    if (place.valid())
      diags.report<diag::UnitsUnsaid>(place, silent->word(), other->word(),
                                      other->units.ofTime);
    return;
  }
  diags
      .report<diag::UnitsDiffer>(cluster->unitsItem->range,
                                 cluster->units.ofTime, model->units.ofTime)
      .note(model->unitsItem->range, "the model says it here");
}

/// What the parts that the schedule names stand for: those of the model that
/// have the same names.
static void addParts(const Schedule &schedule, const Section &model,
                     const std::optional<ModelPartition> &partition,
                     Instance &instance, DiagnosticEngine &diags) {
  for (auto [i, wanted] : llvm::enumerate(schedule.parts)) {
    auto *found = findBy(model.parts, wanted.name.text, nameOfPart);
    if (!found || !partition)
      return diags.refuse<diag::ModelMissingPart>(wanted.name.range, model.name,
                                                  wanted.name.text);
    size_t part = found - model.parts.data();
    for (PipeId pipe : instance.program.pipeIds()) {
      const std::vector<uint32_t> &first = partition->of(pipe).firstStage;
      instance.parts[schedule.pipes.size() + i].stages.push_back(
          {pipe, first[part], first[part + 1]});
    }
  }
}

/// Finds what each rank does; reports ranks that two bodies are for, or none.
static void assignRanks(const Schedule &schedule, Evaluator &evaluator,
                        Instance &instance, DiagnosticEngine &diags) {
  uint32_t numRanks = instance.program.numRanks;
  instance.onRanks.assign(numRanks, nullptr);
  Evaluator::Frame frame(evaluator, schedule.numLocals);
  auto rangeOf = [](const ast::OnRankItem *item) {
    return (item->condition ? item->condition : item->ranks)->range;
  };
  auto add = [&](int64_t rank, const ast::OnRankItem *item) {
    if (rank < 0 || rank >= numRanks)
      return evaluator.refuse<diag::OutOfRange>(rangeOf(item), "the rank", rank,
                                                0, numRanks - 1);
    const ast::OnRankItem *&place = instance.onRanks[rank];
    if (place && evaluator.fail(diag::DuplicateRankBody, rangeOf(item)))
      diags.report<diag::DuplicateRankBody>(rangeOf(item), rank)
          .note(rangeOf(place), "the other is here");
    place = item;
  };
  for (const ast::OnRankItem *item : schedule.onRanks) {
    evaluator.clearFailed();
    if (item->condition) {
      for (uint32_t r = 0; r != numRanks && evaluator.step(item->range); ++r) {
        evaluator.local(0) = {.i = r};
        if (evaluator.evalBool(item->condition) && !evaluator.failed())
          add(r, item);
      }
      continue;
    }
    Value value = evaluator.eval(item->ranks);
    if (evaluator.failed())
      continue;
    SmallVector<Value> ranks{value};
    if (item->isSeveral)
      ranks.assign(evaluator.elements(value).begin(),
                   evaluator.elements(value).end());
    for (Value rank : ranks)
      add(rank.i, item);
  }
  if (!evaluator.failed())
    if (auto none = llvm::find(instance.onRanks, nullptr);
        none != instance.onRanks.end())
      diags.report<diag::MissingRankBody>(schedule.decl->name.range,
                                          none - instance.onRanks.begin());
}

std::optional<Instance>
sema::instantiate(const Selection &selection, ArrayRef<ParamValue> values,
                  const LayoutOverride &layout, const Limits &limits,
                  Evaluator &evaluator, DiagnosticEngine &diags) {
  const Schedule &schedule = *selection.schedule;
  const Module &module = evaluator.module;
  Instance instance;
  instance.schedule = &schedule;
  InstantiationContext context{limits, evaluator, instance, diags};
  Head &head = instance.program;
  head.name = schedule.decl->name.text.str();
  head.kinds = module.kinds;
  head.units = selection.units();
  size_t before = diags.errorCount();
  compareUnits(selection, diags);
  takeLayout(selection.model, layout, context);
  evaluator.globals.assign(schedule.numGlobals, Value{.i = 0});
  // Values of type `pipe` and `part` are numbers: the pipes, then the parts.
  for (auto [i, slot] : llvm::enumerate(schedule.pipeSlots))
    if (!schedule.pipes[i].loop)
      evaluator.globals[slot] = {.i = int64_t(i)};
  int64_t next = schedule.pipes.size();
  for (const PartName &part : schedule.parts)
    evaluator.globals[part.slot] = {.i = next++};

  auto isGood = [&] { return diags.errorCount() == before; };
  // What stands in files and in the head evaluates here.
  Evaluator::Frame frame(evaluator,
                         std::max(schedule.headerLocals, module.numLocals));
  std::vector<Owner> owners = ownersOf(selection);
  std::vector<GivenValues> given = assignValues(values, owners, diags);
  evaluateHead(schedule, &schedule, given.front(), context);
  if (isGood())
    evaluatePipes(schedule, locationOfLayout(selection.model, layout), context);
  if (isGood() && !schedule.onRank)
    assignRanks(schedule, evaluator, instance, diags);
  auto evaluate = [&](const Section &section, const GivenValues &values) {
    std::optional<llvm::SaveAndRestore<std::vector<Value>>> ownGlobals;
    if (!section.name.empty())
      ownGlobals.emplace(evaluator.globals,
                         std::vector(section.numGlobals, Value{.i = 0}));
    evaluateHead(section, nullptr, values, context);
    std::optional<ModelPartition> partition;
    if (isGood())
      partition = partitionModel(section, layout, context);
    if (isGood() && partition && !evaluator.layers && !head.stageLayers.empty())
      evaluator.layers.emplace(head.stageLayers);
    if (isGood())
      evaluateCosts(section, context);
    if (isGood())
      addTensors(section, partition ? &*partition : nullptr, context);
    if (isGood() && partition)
      buildGraphs(section, *partition, context);
    if (isGood() && section.isModel())
      addParts(schedule, section, partition, instance, diags);
  };
  for (size_t i = 1; i != owners.size(); ++i)
    if (isGood())
      evaluate(*static_cast<const Section *>(owners[i].declaration), given[i]);
  if (isGood())
    evaluateDeclaredCosts(context);
  if (isGood())
    for (ArrayRef<Application> list :
         {ArrayRef(schedule.rules), ArrayRef(module.applications)})
      for (const Application &application : list)
        instance.rules.push_back(bind(module.rules[application.rule],
                                      application, evaluator, diags));
  if (!isGood())
    return std::nullopt;
  return instance;
}

ArrayRef<ast::Entry> sema::commSetting(const Schedule &schedule,
                                       StringRef name) {
  if (schedule.comm)
    for (const ast::WordsItem *setting : schedule.comm->settings)
      if (setting->name.text == name)
        return setting->entries;
  return {};
}
