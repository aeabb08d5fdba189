// Reads the table of kinds of a program from JSON.
#pragma once

#include "JsonReader.h"
#include "ppcc/IR/HeadChecks.h"

namespace ppcc {

/// Reads the key `kinds` of docs/program-format.md.
class JsonKinds {
public:
  JsonKinds(ProgramJson &json, Head &program)
      : json(json), program(program), declarations(program.kinds) {}

  /// The key `kinds`.
  void read();
  /// Finds the kinds that others name, when all have been read.
  void resolve();
  /// The kinds by the file's numbers.
  llvm::ArrayRef<KindId> numbers() const { return kinds; }

private:
  void readKind();
  void readScope(llvm::StringRef key, KindScope &scope);
  void readLane(llvm::StringRef key, uint8_t &lane);
  void readRules(llvm::StringRef key, bool isBefore, KindInfo &info);
  void readMeeting(llvm::StringRef key, KindInfo &info);
  void addBuiltIn(const KindInfo &info, llvm::StringRef kindClass);
  void declare(KindInfo info);

  ProgramJson &json;
  Head &program;
  KindDeclarations declarations;
  std::vector<KindId> kinds;
};

} // namespace ppcc
