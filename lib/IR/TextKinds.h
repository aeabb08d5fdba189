// Reads the actions that a program declares, from text.
#pragma once

#include "TextSection.h"
#include "ppcc/IR/HeadChecks.h"

namespace ppcc {

/// Reads the items `action` into the table of kinds.
class TextKinds : TextSection {
public:
  TextKinds(TextCursor &text, Head &program, DiagnosticEngine &diags)
      : TextSection(text, program, diags), declarations(program.kinds) {}

  /// `action REDUCE per stage lane grads after [B W] required`
  bool action();
  /// Finds the actions that others name.
  void resolve();

private:
  bool isNewName(llvm::StringRef name, SourceRange at);
  bool properties(KindInfo &info);
  bool property(KindInfo &info, bool &isKnown);
  bool scope(KindScope &scope);
  bool lane(uint8_t &lane);
  bool rule(KindInfo &info, bool isBefore);
  bool kind(std::optional<KindId> KindInfo::*member);
  bool count(uint32_t &count);
  bool meeting(KindInfo &info);
  bool meetingStages(KindInfo &info);

  KindDeclarations declarations;
};

} // namespace ppcc
