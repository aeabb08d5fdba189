// Which statements can stand where.
#pragma once

#include "ppcc/AST/AST.h"
#include "ppcc/Basic/Diagnostics.h"

namespace ppcc::sema {

enum class BodyKind : uint8_t {
#define BODY(Body, Name) Body,
#include "Bodies.def"
};

/// `a layer`
StringRef nameOf(BodyKind body);

/// Whether the statement can stand in the body, apart from declarations.
bool holds(BodyKind body, ast::StmtKind statement);

/// Reports a statement that the body cannot hold, and what it can.
void reportMisplaced(const ast::Stmt *statement, BodyKind body,
                     DiagnosticEngine &diags);

} // namespace ppcc::sema
