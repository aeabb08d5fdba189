// Reads a program in one of the formats of Importers.def.
#pragma once

#include "ppcc/Basic/Diagnostics.h"
#include "ppcc/IR/Program.h"
#include "ppcc/Proof/ParametricProgram.h"

namespace ppcc {

/// What the user can say about a program that is read.
struct ImportOptions {
  /// How many microbatches it has; without it, the numbers in the file tell.
  std::optional<uint32_t> microbatches;
  uint64_t maxActions = UINT32_MAX / 4; ///< Refuse programs with more.
  /// Names and values that choose one program of those for all values.
  std::vector<std::pair<std::string, std::string>> params;
  bool ignoresUnknownParams = false; ///< Some of them are for others.
  bool keepsLoops = false;           ///< Of text, which are written out else.
};

/// What a reader works with.
struct ImportContext {
  uint32_t file; ///< The file of `sources` that holds the program.
  SourceManager &sources;
  DiagnosticEngine &diags;
  ImportOptions options;
  // What readers find beside the program.
  /// The names of the transports that it was made for: a claim.
  std::vector<std::string> transports{};
  bool listsConnections = false; ///< In the order in which they are opened.
  bool isInstance = false;       ///< Of programs for all values of a parameter.
  /// What the file says of keys that follow from the others, in JSON.
  std::vector<std::pair<StringRef, StringRef>> derived{};
};

/// A row of the table of formats.
struct Importer {
  StringRef name;
  StringRef extensions; ///< Without dots, blanks between them.
  /// Whether text, without blanks and comments before it, is of this format.
  bool (*begins)(StringRef text);
  /// The program, or nothing after reports of all that is wrong with the file.
  /// O(bytes), no allocation per action.
  std::optional<Program> (*read)(ImportContext &context);
  StringRef summary;
};

/// All formats, as in Importers.def.
ArrayRef<Importer> importers();

/// The format called `name`, or null.
const Importer *findImporter(StringRef name);

/// The format of files with the extension of `fileName`, or null.
const Importer *importerOfName(StringRef fileName);

/// The format in which `text` is written, by how it begins, or null: a
/// schedule, for example, is none.
const Importer *importerOfText(StringRef text);

/// Whether a file holds programs for all values of a parameter.
bool isFamilyFile(uint32_t file, SourceManager &sources);

/// Reads the program that the context's file holds. Actions know their places:
/// those that the file names, else that of their cell.
std::optional<Program> importProgram(const Importer &importer,
                                     ImportContext &context);

/// Reads the JSON object `text`, a part of `file`, into the costs of `head`;
/// what it says overrides what was there. False after reports of all that is
/// wrong with it. O(bytes + stages * settings).
bool readCosts(StringRef text, uint32_t file, SourceManager &sources,
               DiagnosticEngine &diags, Head &head);

/// The program of the value that the context's options give the parameter.
std::optional<Program> importFamilies(ImportContext &context);

/// All of them: what the file says, which nobody has proven.
std::optional<proof::ParametricProgram> readFamilies(ImportContext &context);

} // namespace ppcc
