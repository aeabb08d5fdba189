// Checks settings against their tables.
#pragma once

#include "ExprCheck.h"
#include "ppcc/IR/Costs.h"

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

/// `memory F`, `cost F.mlp`.
std::string nameOf(const ast::SettingItem &setting);
/// What a layer, a part or the first end of a link is called.
inline StringRef firstName(const ast::NamedItem *item) {
  return item->names.front().text;
}

inline StringRef nameOfPart(const PartDecl &part) { return part.name.text; }

/// What a setting of a model or a cluster sets, without values; nothing when
/// its name and subject name nothing.
std::optional<CostSetting> findSetting(const ast::SettingItem &setting,
                                       const KindTable &kinds);

/// Checks names and values, and that no setting of `comm` stands twice.
void checkComm(const ast::CommItem &item, const CommWords &words,
               DiagnosticEngine &diags);

} // namespace ppcc::sema
