// Checks what stands in the heads of schedules, models and clusters alike.
#pragma once

#include "ExprCheck.h"
#include "ppcc/Basic/Diagnostics/Sema.h"

namespace ppcc::sema {

/// Reports a second item of a kind that stands once.
template <class T>
bool once(const T *&place, const T *item, llvm::StringRef what,
          DiagnosticEngine &diags) {
  if (!place) {
    place = item;
    return true;
  }
  diags.report<diag::DuplicateItem>(item->range, what)
      .note(place->range, "the first is here");
  return false;
}

/// Enters the parameters as globals.
void checkParameters(llvm::ArrayRef<ast::Parameter> params,
                     Declaration &declaration, ExprChecker &exprs);

/// Checks a `let`, `require`, `fn` or `block`; false for other items.
bool checkHeadItem(const ast::Stmt *item, Declaration &declaration,
                   ExprChecker &exprs);

} // namespace ppcc::sema
