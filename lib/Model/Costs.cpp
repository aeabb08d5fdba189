// Evaluates costs.
#include "Instantiate.h"
#include "ppcc/Basic/Diagnostics/Sema.h"
#include "ppcc/Basic/Diagnostics/Simulation.h"

using namespace ppcc;
using namespace ppcc::sema;

namespace {

struct CostBuilder {
  const InstantiationContext &context;
  const Limits &limits = context.limits;
  Evaluator &evaluator = context.evaluator;
  DiagnosticEngine &diags = context.diags;
  Head &head = context.head;

  /// What declarations of actions say, in units of what the F of the stage
  /// takes; `model` and the command line may say others.
  void ofDeclarations() {
    for (const KindCosts &kind : evaluator.module.kindCosts) {
      evaluator.clearFailed();
      if (kind.time)
        addForwardMultiple(Cost::Action, kind.kind, timeOf(kind.time));
      if (kind.memory)
        addForwardMultiple(Cost::Memory, kind.kind,
                           amountOf(kind.memory,
                                    "memory " + head.kinds[kind.kind].mnemonic,
                                    rowOf(Cost::Memory).number));
      else if (head.kinds[kind.kind].restores == forward) // All of it.
        addForwardMultiple(Cost::Memory, kind.kind, amount::unit);
    }
    costs.resolveForwardMultiples(head.kinds, head.pipes.size());
  }

  /// The value of a setting; 0, and a report, when it is none.
  int64_t valueOf(const ast::SettingItem &setting, const CostNumber &number) {
    return number.scale.places == cost::scale.places &&
                   number.scale.max == cost::scale.max
               ? timeOf(setting.value)
               : amountOf(setting.value, nameOf(setting), number);
  }

  void ofSection(const Section &section) {
    Evaluator::Frame frame(evaluator, section.numLocals);
    for (auto [item, slot] : section.settings) {
      evaluator.clearFailed();
      setting(*item, slot);
    }
    for (const LinkDecl &decl : section.links)
      link(decl);
  }

  void addForwardMultiple(Cost what, KindId kind, int64_t factor) {
    CostSetting setting{what, kind};
    setting.forwardMultiple = factor;
    costs.settings.push_back(setting);
  }

  void setting(const ast::SettingItem &setting, uint32_t slot) {
    CostSetting result = *findSetting(setting, head.kinds);
    const CostRow &row = rowOf(result.what);
    if (row.granularity == CostGranularity::Microbatches)
      return scale(setting, slot, std::move(result));
    if (!mayDiffer(setting, row))
      return;
    // Adds one value, or one for each of `count` where it differs between them.
    auto add = [&](uint32_t count) {
      auto value = [&] { return valueOf(setting, row.number); };
      result.values.clear();
      if (setting.over.text.empty())
        result.values = {value()};
      else if (!each(setting, slot, 0, count, result.values, value))
        return false;
      if (!result.values.empty())
        costs.settings.push_back(result);
      return true;
    };
    if (setting.pipe.text.empty() &&
        (setting.over.text.empty() || setting.over.text == "rank")) {
      add(head.numRanks);
      return;
    }
    for (auto [i, pipe] : llvm::enumerate(head.pipes)) {
      result.pipe = PipeId(i);
      if ((setting.pipe.text.empty() || setting.pipe.text == pipe.name) &&
          !add(pipe.numStages()))
        return;
    }
  }

  /// What messages take from rank to rank, for those that send some.
  void link(const LinkDecl &decl) {
    std::set<std::pair<RankId, RankId>> pairs;
    forEachEdge(head.pipes, [&](PipeId pipe, StageId from, StageId to) {
      RankId sender = head.rankOfStage(pipe, from),
             receiver = head.rankOfStage(pipe, to);
      if (sender != receiver)
        pairs.insert({sender, receiver});
    });
    constexpr size_t maxLinks = size_t(1) << 20;
    if (pairs.size() > maxLinks)
      return evaluator.refuse<diag::OutOfRange>(
          decl.item->range, "the number of links", pairs.size(), 0, maxLinks);
    for (const ast::Stmt *given : decl.item->body) {
      auto *setting = dyn_cast<ast::SettingItem>(given);
      if (!setting)
        continue;
      CostSetting result = *findSetting(*setting, head.kinds);
      evaluator.clearFailed();
      for (auto [from, to] : pairs) {
        evaluator.local(decl.from) = {.i = from.value};
        evaluator.local(decl.to) = {.i = to.value};
        result.link = {from, to};
        if (!evaluator.walk(decl.item->body, [&](const ast::Stmt *stmt) {
              if (stmt == given) {
                result.values = {valueOf(*setting, rowOf(result.what).number)};
                costs.settings.push_back(result);
              }
              return !evaluator.failed();
            }))
          break;
      }
    }
  }

  /// Adds the values over a range of the variable; false when one is none.
  template <class Of>
  bool each(const ast::SettingItem &setting, uint32_t slot, uint32_t from,
            uint32_t to, std::vector<int64_t> &values, Of valueOf) {
    for (uint32_t i = from; i != to; ++i) {
      evaluator.local(slot) = {.i = i};
      if (!evaluator.step(setting.name.range))
        return false;
      values.push_back(valueOf());
      if (evaluator.failed())
        return false;
    }
    return true;
  }

  void scale(const ast::SettingItem &setting, uint32_t slot,
             CostSetting result) {
    numFactors += head.totalMicrobatches();
    if (numFactors > limits.maxActions)
      return diags.refuse<diag::OutOfRange>(setting.name.range,
                                            "the number of factors of `scale`",
                                            numFactors, 0, limits.maxActions);
    for (const Pipe &pipe : head.pipes)
      if (!each(setting, slot, pipe.firstMicrobatch, pipe.endMicrobatch(),
                result.values, [&] { return factorOf(setting.value); }))
        return;
    costs.settings.push_back(std::move(result));
  }

  int64_t factorOf(const ast::Expr *expr) {
    double value = evaluator.evalFloat(expr);
    if (evaluator.failed())
      return 0;
    auto factor = fromDouble(value, scaling::decimals);
    if (!factor || value < 0)
      evaluator.refuse<diag::BadFactor>(expr->range, value,
                                        scaling::max / scaling::unit);
    return factor.value_or(0);
  }

  /// Reports a setting that differs between what it cannot.
  bool mayDiffer(const ast::SettingItem &setting, const CostRow &row) {
    auto check = [&](const ast::Identifier &name, bool may, StringRef things) {
      if (!name.text.empty() && !may)
        diags.report<diag::CostNotPerStage>(name.range, nameOf(setting),
                                            things);
      return name.text.empty() || may;
    };
    bool isRank = setting.over.text == "rank";
    return check(setting.pipe, row.isByStage(), "pipes") &&
           check(setting.over,
                 isRank ? row.granularity == CostGranularity::Ranks
                        : row.isByStage(),
                 isRank ? "ranks" : "stages");
  }

  Time timeOf(const ast::Expr *expr) {
    double value = evaluator.evalFloat(expr);
    if (evaluator.failed())
      return 0;
    auto time = fromDouble(value, cost::scale);
    if (value < 0)
      evaluator.refuse<diag::NegativeCost>(expr->range, value);
    else if (!time)
      evaluator.refuse<diag::CostTooLarge>(expr->range, value,
                                           cost::max / cost::unit);
    return time.value_or(0);
  }

  Amount amountOf(const ast::Expr *expr, StringRef name,
                  const CostNumber &number) {
    double value = evaluator.evalFloat(expr);
    if (evaluator.failed())
      return 0;
    auto amount = fromDouble(value, number.scale);
    if (!amount)
      evaluator.refuse<diag::AmountTooLarge>(
          expr->range, name, value,
          decimal::format(number.scale.max, number.scale.places));
    else if (*amount < 0 && !number.isSigned)
      evaluator.refuse<diag::NegativeAmount>(expr->range, name, value);
    else if (*amount == 0 && number.isPositive)
      evaluator.refuse<diag::NoBandwidth>(expr->range);
    return amount.value_or(0);
  }

  CostModel &costs = head.costs;
  const KindId forward = *head.kinds.find(KindClass::Compute, slot::Output);
  uint64_t numFactors = 0; ///< Of all scales.
};

} // namespace

void sema::evaluateDeclaredCosts(const InstantiationContext &context) {
  CostBuilder{context}.ofDeclarations();
}

void sema::evaluateCosts(const Section &section,
                         const InstantiationContext &context) {
  CostBuilder{context}.ofSection(section);
}

int64_t sema::evaluateCost(const ast::SettingItem &setting,
                           const InstantiationContext &context) {
  return CostBuilder{context}.valueOf(
      setting, rowOf(findSetting(setting, context.head.kinds)->what).number);
}
