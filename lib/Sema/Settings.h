// Checks settings against their tables.
#pragma once

#include "ExprCheck.h"

namespace ppcc::sema {

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
