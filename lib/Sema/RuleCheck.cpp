// Checks rules, the insertions in them, and who follows them.
#include "Checks.h"

using namespace ppcc;
using namespace ppcc::sema;

namespace {

struct InsertChecker {
  ExprChecker &exprs;
  Module &module = exprs.module;
  DiagnosticEngine &diags = exprs.diags;
  SymbolTable &names = exprs.names;

  Insertion check(const ast::InsertItem *item) {
    Insertion result;
    result.item = item;
    if (auto kind = kindCalled(item->action, exprs)) {
      result.action = *kind;
      if (!kinds[*kind].isDeclared())
        expected("a declared action", item->action);
    }
    result.isBefore = item->side.text == "before";
    if (!result.isBefore && item->side.text != "after")
      expected("`before` or `after`", item->side);
    for (const ast::Identifier &name : item->anchors)
      if (auto kind = kindCalled(name, exprs)) {
        anchor(name, kinds[*kind], kinds[result.action].scope);
        result.anchors.push_back(*kind);
      }
    if (item->distance && item->distanceWord.text != "by")
      expected("`by`, `for`, `when` or `;`", item->distanceWord);
    SymbolTable::Scope scope(exprs.names);
    for (const ast::InsertBinding &binding : item->bindings)
      result.bindings.push_back(this->binding(binding));
    if (item->distance)
      exprs.expect(item->distance, Type::Int, "a distance");
    if (item->condition)
      exprs.expect(item->condition, Type::Bool, "the condition of `insert`");
    return result;
  }

  void expected(std::string what, const ast::Identifier &found) {
    diags.report<diag::BadInsert>(found.range, what, found.text);
  }

  /// `scope` is that of what is inserted.
  void anchor(const ast::Identifier &name, const KindInfo &info,
              KindScope scope) {
    if (!info.isCompute())
      diags.report<diag::InsertAtMessage>(name.range, name.text);
    else if (info.scope > scope)
      expected(
          fmt::format("an action of a {}", kindScopeNames()[size_t(scope)]),
          name);
  }

  Insertion::Binding binding(const ast::InsertBinding &binding) {
    using What = Insertion::What;
    Insertion::Binding result;
    StringRef what = binding.what.text;
    if (what == "stage")
      result.what = What::Stage;
    else if (what == "rank")
      result.what = What::Rank;
    else if (auto kind = exprs.computeKind(what)) {
      result.what = What::Ordinal;
      result.kind = *kind;
    } else if (what != "microbatch")
      expected("`microbatch`, `stage`, `rank` or an action", binding.what);
    result.slot = exprs.names.defineLocal(binding.variable, Type::Int,
                                          Symbol::Binder::Each);
    return result;
  }

  const KindTable &kinds = module.kinds;
};

} // namespace

void sema::checkRule(const ast::RuleItem *item, ExprChecker &exprs) {
  declare(NameSpace::Rule, item, ExprChecker::With::RangeAndDefault,
          exprs.module.rules, exprs, [&](Rule &rule) {
            for (const ast::InsertItem *insert : item->inserts)
              rule.inserts.push_back(InsertChecker{exprs}.check(insert));
          });
}

Application sema::checkInsert(const ast::InsertItem *item, ExprChecker &exprs) {
  SymbolTable::FrameScope frame(exprs.names, {});
  Rule rule;
  rule.inserts.push_back(InsertChecker{exprs}.check(item));
  rule.numLocals = exprs.names.frame.numLocals;
  exprs.module.rules.push_back(std::move(rule));
  return {uint32_t(exprs.module.rules.size() - 1), item->range, {}};
}

void sema::checkApply(const ast::ApplyItem *item, ExprChecker &exprs,
                      std::vector<Application> &list) {
  Symbol *symbol =
      exprs.called<diag::UnknownRule>(NameSpace::Rule, item->name, item->args);
  if (!symbol)
    return;
  const Rule &callee = exprs.module.rules[symbol->index];
  list.push_back({symbol->index, item->range,
                  exprs.labelled(item->name, item->args, callee.item->params,
                                 callee.params)});
}
