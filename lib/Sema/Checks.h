// The parts of the check, a file each.
#pragma once

#include "ExprCheck.h"

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

// ---- HeadCheck.cpp ----

/// Reports a second item of a kind that stands once.
template <class T>
bool once(const T *&place, const T *item, StringRef what,
          DiagnosticEngine &diags) {
  if (!place) {
    place = item;
    return true;
  }
  return diags.report<diag::DuplicateItem>(item->range, what)
      .note(place->range, "the first is here");
}

/// Enters the parameters as globals.
void checkParameters(ArrayRef<ast::Parameter> params, Declaration &declaration,
                     ExprChecker &exprs);

/// Checks a `let`, `require`, `fn` or `block`; false for other items.
bool checkHeadItem(const ast::Stmt *item, Declaration &declaration,
                   ExprChecker &exprs);

// ---- ScheduleCheck.cpp ----

Schedule checkSchedule(const ast::Schedule &decl, const CommWords &words,
                       ExprChecker &exprs);

// ---- PlacementCheck.cpp ----

/// Enters a placement into the module and the names.
void checkPlacement(const ast::PlacementDeclItem *item, ExprChecker &exprs);

/// Checks `stages` or `stage s on rank`.
void checkStages(const ast::Stmt *item, StageMapping &places,
                 ExprChecker &exprs);

/// Checks `placement NAME(...);`.
void checkPlacementUse(const ast::PlacementItem &item, ExprChecker &exprs);

// ---- SectionCheck.cpp ----

/// Checks a `model` or a `cluster`: names, subjects and values, and that
/// nothing is set twice. `within` is the schedule around it, if any, whose
/// names it sees.
Section checkSection(const ast::Stmt *item, const Schedule *within,
                     const CommWords &words, ExprChecker &exprs);

/// Checks the tensors of a clause, apart from its stages.
void checkTensors(const ast::TensorsItem &clause, ExprChecker &exprs);

// ---- GraphCheck.cpp ----

/// Checks every name in the layers and patterns of a model: actions, layers,
/// what layers say of themselves, and the nodes that patterns place.
/// O(statements).
void checkGraphs(const Section &model, const KindTable &kinds,
                 DiagnosticEngine &diags);

// ---- ActionCheck.cpp ----

/// Enters the name of an action, so that others can speak of it.
void declareAction(const ast::ActionKindItem *item, ExprChecker &exprs);
/// Fills in what it says of itself.
void checkAction(const ast::ActionKindItem *item, ExprChecker &exprs);

/// Any kind, messages included; reports a name that is none.
std::optional<KindId> kindCalled(const ast::Identifier &name,
                                 ExprChecker &exprs);

// ---- RuleCheck.cpp ----

/// Enters a rule into the module and the names.
void checkRule(const ast::RuleItem *item, ExprChecker &exprs);

/// Enters an `insert` of a schedule as a rule without parameters.
Application checkInsert(const ast::InsertItem *item, ExprChecker &exprs);

/// Checks a `with` and adds it to `list`.
void checkApply(const ast::ApplyItem *item, ExprChecker &exprs,
                std::vector<Application> &list);

// ---- BodyCheck.cpp ----

/// Enters a `fn` or a `block` into the module and the names.
void checkFunction(const ast::FunctionItem *item, ExprChecker &exprs);
void checkBlock(const ast::BlockItem *item, ExprChecker &exprs);

/// Checks what stands in a body, but for the names in graphs.
void checkBody(ast::Body statements, BodyKind of, ExprChecker &exprs);
void checkStatement(const ast::Stmt *statement, BodyKind of,
                    ExprChecker &exprs);

/// The settings of one section.
class SettingNames {
public:
  SettingNames(StringRef section, DiagnosticEngine &diags)
      : section(section), diags(diags) {}

  /// The number of a setting; nothing, and a report, when there is none.
  std::optional<size_t> find(ArrayRef<StringRef> names,
                             const ast::Identifier &name);
  /// Reports `key` when it has come before.
  void once(StringRef key, SourceRange range);

private:
  StringRef section;
  DiagnosticEngine &diags;
  StringMap<SourceRange> seen;
};

/// Checks names and values, and that no setting of `comm` stands twice.
void checkComm(const ast::CommItem &item, const CommWords &words,
               DiagnosticEngine &diags);

} // namespace ppcc::sema
