// Reads what a program says about time and memory, from text.
#pragma once

#include "TextSection.h"

namespace ppcc {

/// Reads the items that fill the cost model, each behind the pipe and the
/// action that it names.
class TextCosts : TextSection {
public:
  TextCosts(TextCursor &text, Head &program, DiagnosticEngine &diags)
      : TextSection(text, program, diags) {}

  /// `cost F 1`, `cost F "main" [1 2]`, `cost F.mlp 0.5`, `memory limit 80`:
  /// see Costs.def.
  bool setting(llvm::StringRef item);
  /// Checks the lists that have a value for each rank or microbatch.
  void check();

private:
  std::optional<CostSetting> subject(llvm::StringRef item);
  bool one(const CostNumber &number, std::vector<int64_t> &values);
  bool values(CostSetting &setting, bool &isList);
  bool checkCount(const CostSetting &setting, uint64_t expected,
                  std::string_view things, SourceRange at);

  /// The settings whose values are counted at the end.
  std::vector<std::pair<size_t, SourceRange>> counted;
};

} // namespace ppcc
