// Binds parameters and evaluates the header of a schedule.
#include "Instantiate.h"

#include "EdgeTensors.h"
#include "GraphBuilder.h"

#include "llvm/ADT/STLExtras.h"

using namespace ppcc;
using namespace ppcc::sema;
using llvm::ArrayRef;
using llvm::StringRef;

/// The layout given from outside, or the schedule's; gives its place.
static Place takeLayout(const Schedule &schedule,
                        const std::vector<std::string> *given,
                        Evaluator &evaluator, Head &program) {
  Place place;
  if (schedule.model)
    for (const ast::ModelText &text : schedule.model->texts) {
      place = text.text.range;
      for (StringRef stage : text.stages)
        program.stageLayers.push_back(stage.str());
    }
  if (given) {
    program.stageLayers = *given;
    place = Place("--layout");
  }
  if (!program.stageLayers.empty())
    evaluator.layers.emplace(program.stageLayers);
  return place;
}

/// Gives values to the parameters of a rule that is followed.
static BoundRule bind(const Rule &rule, const Application &application,
                      Evaluator &evaluator) {
  BoundRule result{&rule, application.range, {}};
  evaluator.clearFailed();
  for (auto [type, arg] : llvm::zip_equal(rule.params, application.args))
    result.args.push_back(arg ? evaluator.evalAs(arg, type) : Value{.i = 0});
  size_t previous = evaluator.pushFrame(rule.numLocals);
  for (auto [i, arg] : llvm::enumerate(application.args)) {
    if (!arg)
      result.args[i] =
          evaluator.evalAs(rule.item->params[i].defaultValue, rule.params[i]);
    evaluator.local(i) = result.args[i];
  }
  evaluator.popFrame(previous);
  return result;
}

std::optional<Instance>
sema::instantiate(const Schedule &schedule, ArrayRef<ParamValue> values,
                  const std::vector<std::string> *layout, const Limits &limits,
                  Evaluator &evaluator, DiagnosticEngine &diags) {
  const Module &module = evaluator.checkedModule();
  Instance instance;
  instance.schedule = &schedule;
  Head &program = instance.program;
  program.name = schedule.decl->name.text.str();
  program.kinds = module.kinds;
  Place layoutPlace = takeLayout(schedule, layout, evaluator, program);
  evaluator.globals.assign(schedule.numGlobals, Value{.i = 0});
  // Values of type `pipe` are numbers: the pipes, then the modules.
  int64_t next = 0;
  for (uint32_t slot : schedule.pipeSlots)
    evaluator.globals[slot] = {.i = next++};
  next = schedule.pipes.size();
  for (const ModuleDecl &decl : schedule.modules)
    evaluator.globals[decl.slot] = {.i = next++};

  size_t before = diags.errorCount();
  auto isGood = [&] { return diags.errorCount() == before; };
  evaluateHead(schedule, values, evaluator, program, diags);
  if (isGood())
    evaluatePipes(schedule, layoutPlace, limits, evaluator, instance, diags);
  if (isGood())
    evaluateCosts(schedule, limits, evaluator, program, diags);
  if (isGood() && schedule.model)
    addTensors(schedule, evaluator, program, diags);
  if (isGood() && schedule.graph)
    buildGraphs(schedule, limits, evaluator, program, diags);
  if (isGood())
    for (ArrayRef<Application> list :
         {ArrayRef(schedule.rules), ArrayRef(module.applications)})
      for (const Application &application : list)
        instance.rules.push_back(
            bind(module.rules[application.rule], application, evaluator));
  if (!isGood())
    return std::nullopt;
  return instance;
}

ArrayRef<ast::Identifier> sema::commSetting(const Schedule &schedule,
                                            StringRef name) {
  if (schedule.comm)
    for (const ast::CommSetting &setting : schedule.comm->settings)
      if (setting.name.text == name)
        return setting.values;
  return {};
}
