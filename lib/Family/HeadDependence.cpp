#include "AffineDomain.h"

using namespace ppcc;
using namespace ppcc::family;
using namespace ppcc::sema;

namespace {

/// Looks for globals that depend on the free parameter.
struct FreeParameterUses {
  const AffineEvaluator &terms;
  const Schedule &schedule;
  const Module &module = terms.module;

  void refuse(const ast::Expr *expr) {
    if (usesFreeParameter(expr))
      stop(Outcome::Kind::Undecided, expr->range,
           "only `microbatches` and the bodies of ranks may depend on the "
           "parameter of `--for`");
  }

  void refuse(const ast::Stmt *stmt) {
    using ast::StmtKind;
    switch (stmt->kind) { // Those that are evaluated for themselves.
    case StmtKind::Microbatches:
    case StmtKind::Require:
    case StmtKind::UseSchedule:
    case StmtKind::Function:
    case StmtKind::Block:
    case StmtKind::Rule:
    case StmtKind::Insert:
      return;
    case StmtKind::OnRank:
      refuseIn(cast<ast::OnRankItem>(stmt)->condition);
      return refuseIn(cast<ast::OnRankItem>(stmt)->ranks);
    case StmtKind::Let:
      if (llvm::is_contained(schedule.header, stmt))
        return;
      break;
    default:
      break;
    }
    ast::dispatch(stmt, [&](const auto &node) { refuseIn(node); });
  }

  bool isFree(const ast::Expr *expr, const AbstractValue &value) const {
    auto varies = [](const AbstractValue &of) { return !of.i.isConstant(); };
    return isList(terms.type(expr))
               ? llvm::any_of(terms.elements(value), varies)
               : varies(value);
  }

  bool usesFreeParameter(const ast::Expr *expr) {
    const ExprInfo &info = module.exprs[expr->id];
    if (isa<ast::NameExpr>(expr) && info.ref == ExprInfo::Ref::Global &&
        isFree(expr, terms.globals[info.index]))
      return true;
    bool found = false;
    forEachChild(expr, [&](const ast::Expr *child) {
      found |= usesFreeParameter(child);
    });
    if (info.ref == ExprInfo::Ref::Function &&
        inCheck.insert(info.index).second) {
      found |= usesFreeParameter(module.functions[info.index].item->value);
      inCheck.erase(info.index);
    }
    return found;
  }

  template <class Field> void refuseIn(const Field &field) {
    auto visit = [this](const auto &inner, StringRef) { refuseIn(inner); };
    if constexpr (requires { forEachField(field, visit); })
      forEachField(field, visit);
  }
  template <class Item> void refuseIn(const ArrayRef<Item> &items) {
    for (const Item &item : items)
      refuseIn(item);
  }
  template <class Node> void refuseIn(const Node *const &node) {
    if (node)
      refuse(node);
  }

  DenseSet<uint32_t> inCheck{}; ///< Functions.
};

} // namespace

void family::requireConstantHead(const AffineEvaluator &terms,
                                 const Schedule &schedule) {
  FreeParameterUses mentions(terms, schedule);
  for (const ast::Stmt *item : schedule.decl->items)
    mentions.refuse(item);
  for (const Use &use : schedule.uses)
    for (const ast::Stmt *item : terms.module.known[use.schedule].decl->items)
      mentions.refuse(item);
  for (const KindCosts &costs : terms.module.kindCosts)
    for (const ast::Expr *expr : {costs.time, costs.memory, costs.peerRankExpr})
      if (expr)
        mentions.refuse(expr);
}
