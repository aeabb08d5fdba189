// Checks placements: those that files declare, and who uses them.
#include "Checks.h"

using namespace ppcc;
using namespace ppcc::sema;

void sema::checkPlacement(const ast::PlacementDeclItem *item,
                          ExprChecker &exprs) {
  declare(NameSpace::Placement, item, ExprChecker::With::Range,
          exprs.module.placements, exprs, [&](Placement &placement) {
            for (const ast::Stmt *stmt : item->body)
              checkStages(stmt, placement, exprs);
            std::string owner = fmt::format("placement `{}`", item->name.text);
            if (!placement.stages)
              exprs.diags.report<diag::MissingItem>(
                  item->name.range, owner, "`stages`, the number of them");
            if (!placement.stageMap)
              exprs.diags.report<diag::MissingItem>(item->name.range, owner,
                                                    "`stage s on rank ...`");
          });
}

void sema::checkStages(const ast::Stmt *item, StageMapping &places,
                       ExprChecker &exprs) {
  if (auto *stages = dyn_cast<ast::StagesItem>(item)) {
    once(places.stages, stages, "`stages`", exprs.diags);
    return exprs.expect(stages->count, Type::Int, "the number of stages");
  }
  auto *map = cast<ast::StageMapItem>(item);
  once(places.stageMap, map, "`stage ... on rank`", exprs.diags);
  SymbolTable::Scope scope(exprs.names);
  places.stageSlot =
      exprs.names.defineLocal(map->variable, Type::Int, Symbol::Binder::Each);
  exprs.expect(map->rank, Type::Int, "a rank");
}

void sema::checkPlacementUse(const ast::PlacementItem &item,
                             ExprChecker &exprs) {
  Symbol *symbol = exprs.called<diag::UnknownPlacement>(NameSpace::Placement,
                                                        item.name, item.args);
  if (!symbol)
    return;
  exprs.module.stmts[item.id].index = symbol->index;
  exprs.arguments(item.name, exprs.module.placements[symbol->index], item.args);
}
