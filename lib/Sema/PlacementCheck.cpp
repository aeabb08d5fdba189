#include "PlacementCheck.h"

#include "HeadCheck.h"
#include "ppcc/Basic/Diagnostics/Sema.h"
#include "ppcc/Support/Suggest.h"

using namespace ppcc;
using namespace ppcc::sema;
using llvm::dyn_cast;

void sema::checkPlacement(const ast::PlacementDeclItem *item,
                          ExprChecker &exprs) {
  Placement result;
  result.item = item;
  {
    Names::FrameScope frame(exprs.names, {Space::Placement, item->name});
    result.params = exprs.parameters(item->params, ExprChecker::With::Range);
    for (const ast::Stmt *stmt : item->body)
      if (auto *stages = dyn_cast<ast::StagesItem>(stmt)) {
        once(result.stages, stages, "`stages`", exprs.diags);
        exprs.expect(stages->count, Type::Int, "the number of stages");
      } else {
        auto *map = llvm::cast<ast::StageMapItem>(stmt);
        once(result.stageMap, map, "`stage ... on rank`", exprs.diags);
        Names::Scope scope(exprs.names);
        result.stageSlot = exprs.names.defineLocal(map->variable, Type::Int);
        exprs.expect(map->rank, Type::Int, "a rank");
      }
    result.numLocals = exprs.names.frame.numLocals;
  }
  std::string owner = fmt::format("placement `{}`", item->name.text);
  if (!result.stages)
    exprs.diags.report<diag::MissingItem>(item->name.range, owner,
                                          "`stages`, the number of them");
  if (!result.stageMap)
    exprs.diags.report<diag::MissingItem>(item->name.range, owner,
                                          "`stage s on rank ...`");
  Symbol symbol;
  symbol.index = static_cast<uint32_t>(exprs.module.placements.size());
  exprs.module.placements.push_back(std::move(result));
  exprs.names.define(Space::Placement, item->name, symbol);
}

void sema::checkPlacementUse(const ast::PlacementItem &item,
                             ExprChecker &exprs) {
  bool isReported;
  Symbol *symbol = exprs.names.find(Space::Placement, item.name, isReported);
  if (!symbol) {
    for (const ast::Expr *arg : item.args)
      exprs.check(arg);
    exprs.diags.report<diag::UnknownPlacement>(
        item.name.range, item.name.text, didYouMean(item.name.text, [&] {
          return exprs.names.visible(Space::Placement);
        }));
    return;
  }
  exprs.module.stmts[item.id].index = symbol->index;
  exprs.arguments(item.name, exprs.module.placements[symbol->index].params,
                  item.args);
}
