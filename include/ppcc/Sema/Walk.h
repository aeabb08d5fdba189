// Goes through statements as they are evaluated.
#pragma once

#include "ppcc/Sema/Evaluator.h"

namespace ppcc::sema {

/// Follows the control flow that all bodies share, `let`, `if`, `for` and
/// `repeat`, and calls `visit` for each other statement. Ends with false when
/// `visit` gives it, when an expression has no value, and at the limit of
/// steps: each statement and each iteration of a loop is one.
template <class Visit>
bool walk(Evaluator &evaluator, ast::Body body, const Visit &visit) {
  using ast::StmtKind;
  using llvm::cast;
  auto loop = [&](const ast::Stmt *stmt, int64_t from, int64_t to,
                  ast::Body iteration) {
    auto *counted = llvm::dyn_cast<ast::ForStmt>(stmt);
    if (evaluator.failed())
      return false;
    for (int64_t i = from; i < to; ++i) {
      if (!evaluator.step(stmt->range))
        return false;
      if (counted) {
        evaluator.local(evaluator.slotOf(stmt->id)) = {.i = i};
        evaluator.notify(counted->variable, Type::Int, {.i = i});
      }
      size_t mark = evaluator.mark();
      if (!walk(evaluator, iteration, visit))
        return false;
      evaluator.release(mark);
    }
    return true;
  };
  auto statement = [&](const ast::Stmt *stmt) {
    switch (stmt->kind) {
    case StmtKind::Let: {
      auto *s = cast<ast::LetStmt>(stmt);
      Value value = evaluator.eval(s->value);
      evaluator.local(evaluator.slotOf(stmt->id)) = value;
      if (!evaluator.failed())
        evaluator.notify(s->name, evaluator.type(s->value), value);
      return !evaluator.failed();
    }
    case StmtKind::If:
      for (const ast::Branch &branch : cast<ast::IfStmt>(stmt)->branches) {
        bool chosen = !branch.condition || evaluator.evalBool(branch.condition);
        if (evaluator.failed())
          return false;
        if (chosen)
          return walk(evaluator, branch.body, visit);
      }
      return true;
    case StmtKind::For: {
      auto *s = cast<ast::ForStmt>(stmt);
      int64_t from = evaluator.evalInt(s->from), to = evaluator.evalInt(s->to);
      return loop(stmt, from, to, s->body);
    }
    case StmtKind::Repeat: {
      auto *s = cast<ast::RepeatStmt>(stmt);
      return loop(stmt, 0, evaluator.evalInt(s->count), s->body);
    }
    default:
      return visit(stmt);
    }
  };
  for (const ast::Stmt *stmt : body)
    if (!evaluator.step(stmt->range) || !statement(stmt))
      return false;
  return true;
}

} // namespace ppcc::sema
