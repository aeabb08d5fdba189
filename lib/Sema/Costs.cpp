// Evaluates costs.
#include "Instantiate.h"

#include "llvm/ADT/STLExtras.h"

using namespace ppcc;
using namespace ppcc::sema;
using llvm::StringRef;

namespace {

class CostBuilder {
public:
  CostBuilder(const Schedule &schedule, const Limits &limits,
              Evaluator &evaluator, Head &program, DiagnosticEngine &diags)
      : schedule(schedule), limits(limits), evaluator(evaluator),
        program(program), costs(program.costs), diags(diags) {}

  /// What declarations of actions say, which `model` may override.
  void ofDeclarations() {
    for (const KindCosts &kind : evaluator.checkedModule().kindCosts) {
      evaluator.clearFailed();
      if (kind.time)
        costs.actions.push_back({kind.kind, {}, {timeOf(kind.time)}});
      if (kind.memory)
        costs.memory.push_back(
            {kind.kind,
             {},
             {amountOf(kind.memory,
                       "memory " + program.kinds[kind.kind].letters,
                       /*isSigned=*/true)}});
    }
  }

  /// The settings of `model`.
  void ofModel() {
    size_t previous = evaluator.pushFrame(schedule.headerLocals);
    for (auto [setting, slot] :
         llvm::zip(schedule.model->settings, schedule.modelSlots)) {
      evaluator.clearFailed();
      modelSetting(setting, slot);
    }
    evaluator.popFrame(previous);
  }

private:
  void modelSetting(const ast::ModelSetting &setting, uint32_t slot) {
    StringRef name = setting.name.text, subject = setting.subject.text;
    if (!setting.node.text.empty())
      costs.nodes.push_back({*program.kinds.find(subject),
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
      result.kind = program.kinds.find(subject);
    }
    numFactors += program.totalMicrobatches();
    if (numFactors > limits.maxActions) {
      diags.report<diag::OutOfRange>(setting.name.range,
                                     "the number of factors of `scale`",
                                     numFactors, 0, limits.maxActions);
      return;
    }
    for (const Pipe &pipe : program.pipes)
      for (uint32_t m = pipe.firstMicrobatch; m != pipe.endMicrobatch(); ++m) {
        evaluator.local(slot) = {.i = m};
        if (!evaluator.step(setting.name.range))
          return;
        result.factors.push_back(factorOf(setting.value));
        if (evaluator.failed())
          return;
      }
    costs.scales.push_back(std::move(result));
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
    KindId kind = *program.kinds.find(setting.subject.text);
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
    for (auto [i, pipe] : llvm::enumerate(program.pipes)) {
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

  const Schedule &schedule;
  const Limits &limits;
  Evaluator &evaluator;
  Head &program;
  CostModel &costs;
  DiagnosticEngine &diags;
  uint64_t numFactors = 0; ///< Of all scales.
};

} // namespace

void sema::evaluateCosts(const Schedule &schedule, const Limits &limits,
                         Evaluator &evaluator, Head &program,
                         DiagnosticEngine &diags) {
  size_t before = diags.errorCount();
  CostBuilder builder(schedule, limits, evaluator, program, diags);
  builder.ofDeclarations();
  if (diags.errorCount() == before && schedule.model)
    builder.ofModel();
}
