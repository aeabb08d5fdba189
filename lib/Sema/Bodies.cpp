#include "Checks.h"

using namespace ppcc;
using namespace ppcc::sema;

namespace {

/// Which bodies hold which statements: what Bodies.def says.
struct Table {
  enum : unsigned {
#define BODY(Body, Name) Body = 1u << unsigned(BodyKind::Body),
#include "Bodies.def"
  };
  struct Row {
    ast::StmtKind statement;
    StringRef name;
    unsigned bodies;

    bool isIn(BodyKind body) const { return bodies & (1u << unsigned(body)); }
  };
  static constexpr Row rows[] = {
#define HOLDS(Statement, Name, Bodies) {ast::StmtKind::Statement, Name, Bodies},
#include "Bodies.def"
  };

  static const Row &of(ast::StmtKind statement) {
    return *findBy(rows, statement, &Row::statement);
  }
};

} // namespace

StringRef sema::nameOf(BodyKind body) {
  static constexpr StringRef names[] = {
#define BODY(Body, Name) Name,
#include "Bodies.def"
  };
  return names[unsigned(body)];
}

bool sema::holds(BodyKind body, ast::StmtKind statement) {
  return Table::of(statement).isIn(body);
}

void sema::reportMisplaced(const ast::Stmt *statement, BodyKind body,
                           DiagnosticEngine &diags) {
  std::vector<StringRef> held;
  for (const Table::Row &row : Table::rows)
    if (row.isIn(body))
      held.push_back(row.name);
  diags
      .report<diag::NotInBody>(statement->range,
                               Table::of(statement->kind).name, nameOf(body))
      .note({}, "of statements, {} holds: {}", nameOf(body),
            llvm::join(held, ", "));
}
