// Evaluates costs.
#include "Instantiate.h"
#include "Settings.h"
#include "ppcc/Basic/Diagnostics/Instance.h"
#include "ppcc/Basic/Diagnostics/Sema.h"
#include "ppcc/Basic/Diagnostics/Simulation.h"
#include "ppcc/Sema/Walk.h"

#include "llvm/ADT/STLExtras.h"

#include <set>

using namespace ppcc;
using namespace ppcc::sema;
using llvm::StringRef;

namespace {

class CostBuilder {
public:
  CostBuilder(const Limits &limits, Evaluator &evaluator, Head &program,
              DiagnosticEngine &diags)
      : limits(limits), evaluator(evaluator), program(program),
        costs(program.costs), diags(diags) {}

  /// What declarations of actions say, in units of what the F of the stage
  /// takes in the model, which may override it.
  void ofDeclarations() {
    std::vector<CostSetting> declared;
    for (const KindCosts &kind : evaluator.checkedModule().kindCosts) {
      evaluator.clearFailed();
      if (kind.time)
        addInForwards(Cost::Action, kind.kind, timeOf(kind.time), cost::unit,
                      cost::max, declared);
      if (kind.memory)
        addInForwards(Cost::Memory, kind.kind,
                      amountOf(kind.memory,
                               "memory " + program.kinds[kind.kind].letters,
                               rowOf(Cost::Memory).number),
                      amount::unit, amount::max, declared);
    }
    costs.settings.insert(costs.settings.begin(), declared.begin(),
                          declared.end());
  }

  /// The value of a setting; 0, and a report, when it is none.
  int64_t valueOf(const ast::SettingItem &setting, const CostNumber &number) {
    return number.scale.places == cost::scale.places
               ? timeOf(setting.value)
               : amountOf(setting.value, nameOf(setting), number);
  }

  void ofSection(const Section &section) {
    size_t previous = evaluator.pushFrame(section.numLocals);
    for (auto [item, slot] : section.settings) {
      evaluator.clearFailed();
      setting(*item, slot);
    }
    for (const LinkDecl &decl : section.links)
      link(decl);
    evaluator.popFrame(previous);
  }

private:
  void addInForwards(Cost what, KindId kind, int64_t value, int64_t unit,
                     int64_t most, std::vector<CostSetting> &declared) {
    size_t before = declared.size();
    KindId forward = *program.kinds.find(KindClass::Compute, slot::Output);
    for (const CostSetting &told : costs.of(what)) {
      if (told.kind != forward)
        continue;
      CostSetting &own = declared.emplace_back(told);
      own.kind = kind;
      for (int64_t &number : own.values)
        number = std::clamp<__int128>(__int128(number) * value / unit, -most,
                                      most);
    }
    if (declared.size() == before)
      declared.push_back({what, kind, {}, {}, {value}});
  }

  void setting(const ast::SettingItem &setting, uint32_t slot) {
    CostSetting result = *findSetting(setting, program.kinds);
    const CostRow &row = rowOf(result.what);
    if (row.spread == CostSpread::Microbatches)
      return scale(setting, slot, std::move(result));
    if (!mayDiffer(setting, row))
      return;
    if (row.isByStage())
      return forEachPipe(setting, slot, std::move(result));
    if (setting.over.text == "rank")
      return forEachRank(setting, slot, std::move(result));
    add(std::move(result), {valueOf(setting, row.number)});
  }

  /// What messages take from rank to rank, for those that send some.
  void link(const LinkDecl &decl) {
    std::set<std::pair<RankId, RankId>> pairs;
    forEachEdge(program.pipes, [&](PipeId pipe, StageId from, StageId to) {
      RankId sender = program.rankOfStage(pipe, from),
             receiver = program.rankOfStage(pipe, to);
      if (sender != receiver)
        pairs.insert({sender, receiver});
    });
    for (const ast::Stmt *told : decl.item->body) {
      auto *setting = llvm::dyn_cast<ast::SettingItem>(told);
      if (!setting)
        continue;
      CostSetting result = *findSetting(*setting, program.kinds);
      evaluator.clearFailed();
      for (auto [from, to] : pairs) {
        evaluator.local(decl.from) = {.i = from.value};
        evaluator.local(decl.to) = {.i = to.value};
        result.link = {from, to};
        if (!walk(evaluator, decl.item->body, [&](const ast::Stmt *stmt) {
              if (stmt == told)
                add(result, {valueOf(*setting, rowOf(result.what).number)});
              return !evaluator.failed();
            }))
          break;
      }
    }
  }

  void forEachRank(const ast::SettingItem &setting, uint32_t slot,
                   CostSetting result) {
    std::vector<int64_t> values;
    for (uint32_t rank = 0; rank != program.numRanks; ++rank) {
      evaluator.local(slot) = {.i = rank};
      if (!evaluator.step(setting.name.range))
        return;
      values.push_back(valueOf(setting, rowOf(result.what).number));
      if (evaluator.failed())
        return;
    }
    add(std::move(result), std::move(values));
  }

  void add(CostSetting setting, std::vector<int64_t> values) {
    setting.values = std::move(values);
    costs.settings.push_back(std::move(setting));
  }

  void scale(const ast::SettingItem &setting, uint32_t slot,
             CostSetting result) {
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
        result.values.push_back(factorOf(setting.value));
        if (evaluator.failed())
          return;
      }
    costs.settings.push_back(std::move(result));
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

  static bool isByStage(const ast::SettingItem &setting) {
    return !setting.pipe.text.empty() || !setting.over.text.empty();
  }

  /// Reports a setting that differs between what it cannot.
  bool mayDiffer(const ast::SettingItem &setting, const CostRow &row) {
    auto check = [&](const ast::Identifier &name, bool may, StringRef things) {
      if (!name.text.empty() && !may)
        diags.report<diag::CostIsOne>(name.range, nameOf(setting), things);
      return name.text.empty() || may;
    };
    bool isRank = setting.over.text == "rank";
    return check(setting.pipe, row.isByStage(), "pipes") &&
           check(setting.over,
                 isRank ? row.spread == CostSpread::Ranks : row.isByStage(),
                 isRank ? "ranks" : "stages");
  }
  static std::string nameOf(const ast::SettingItem &setting) {
    std::string name = setting.name.text.str();
    if (!setting.subject.text.empty())
      name += " " + setting.subject.text.str();
    if (!setting.node.text.empty())
      name += "." + setting.node.text.str();
    return name;
  }

  /// Adds the values of a setting: one for all, or for each pipe that it speaks
  /// of one or as many as there are stages.
  void forEachPipe(const ast::SettingItem &setting, uint32_t slot,
                   CostSetting result) {
    const CostNumber &number = rowOf(result.what).number;
    bool byStage = !setting.over.text.empty();
    if (!isByStage(setting))
      return add(std::move(result), {valueOf(setting, number)});
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
        values.push_back(valueOf(setting, number));
        if (evaluator.failed())
          return;
      }
      result.pipe = PipeId(i);
      if (!values.empty())
        add(result, std::move(values));
    }
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

  Amount amountOf(const ast::Expr *expr, StringRef name,
                  const CostNumber &number) {
    double value = evaluator.evalFloat(expr);
    if (evaluator.failed())
      return 0;
    auto amount = amount::fromDouble(value);
    if (!amount) {
      if (evaluator.fail(diag::AmountTooLarge, expr->range))
        diags.report<diag::AmountTooLarge>(expr->range, name, value,
                                           amount::max / amount::unit);
    } else if (*amount < 0 && !number.isSigned) {
      if (evaluator.fail(diag::NegativeAmount, expr->range))
        diags.report<diag::NegativeAmount>(expr->range, name, value);
    } else if (*amount == 0 && number.isPositive) {
      if (evaluator.fail(diag::NoBandwidth, expr->range))
        diags.report<diag::NoBandwidth>(expr->range);
    }
    return amount.value_or(0);
  }

  const Limits &limits;
  Evaluator &evaluator;
  Head &program;
  CostModel &costs;
  DiagnosticEngine &diags;
  uint64_t numFactors = 0; ///< Of all scales.
};

} // namespace

void sema::evaluateDeclaredCosts(Evaluator &evaluator, Head &program,
                                 DiagnosticEngine &diags) {
  CostBuilder({}, evaluator, program, diags).ofDeclarations();
}

void sema::evaluateCosts(const Section &section, const Limits &limits,
                         Evaluator &evaluator, Head &program,
                         DiagnosticEngine &diags) {
  CostBuilder(limits, evaluator, program, diags).ofSection(section);
}

int64_t sema::evaluateCost(const ast::SettingItem &setting,
                           Evaluator &evaluator, Head &program,
                           DiagnosticEngine &diags) {
  const CostRow &row = rowOf(findSetting(setting, program.kinds)->what);
  return CostBuilder({}, evaluator, program, diags)
      .valueOf(setting, row.number);
}
