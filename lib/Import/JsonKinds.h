// Reads the table of kinds of a program from JSON.
#pragma once

#include "JsonReader.h"
#include "ppcc/IR/Reading.h"

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
  static const JsonKey<JsonKinds> keys[];

  void readLetters() { letters = json.string("letters"); }
  void readClass() { kindClass = json.string("class"); }
  void readPer();
  void readLane();
  void readAfter() { readRules("after", false); }
  void readBefore() { readRules("before", true); }
  void readRules(llvm::StringRef key, bool isBefore);
  void readRequired();
  void readInFlight();
  void readRestores();
  void readCollective();
  void addKind();
  void declareKind();

  ProgramJson &json;
  Head &program;
  KindDeclarations declarations;
  std::vector<KindId> kinds;

  // Of the kind that is being read.
  std::string letters, kindClass;
  KindInfo declared;
};

} // namespace ppcc
