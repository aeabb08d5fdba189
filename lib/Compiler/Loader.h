// Finds a schedule and all that it imports.
#pragma once

#include "ppcc/AST/AST.h"
#include "ppcc/Basic/Diagnostics.h"

namespace ppcc {

/// The file beside `file` with the same extension, or the one of `names`, that
/// was probably meant, as didYouMean() says it.
std::string similarFile(StringRef file, llvm::vfs::FileSystem &fs,
                        std::vector<std::string> names = {});

/// Reads and parses files. A name without a file behind it is looked for in the
/// library.
class Loader {
public:
  Loader(SourceManager &sources, ast::Context &context, DiagnosticEngine &diags,
         bool keepsRest = false)
      : sources(sources), context(context), diags(diags), keepsRest(keepsRest),
        errorsBefore(diags.errorCount()) {}

  /// Opens a file, at first beside the one that asks for it at a place, or that
  /// of the library with this name; reports when there is none.
  std::optional<uint32_t> open(StringRef input,
                               SourceManager::LimitOf limitOf = nullptr,
                               StringRef folder = "", Location place = {});
  /// The files with their imports, each after those that it imports itself and
  /// the last one last, and the prelude, which each file knows, first. Reports
  /// every error; gives nothing when there was one, but if `keepsRest`, what
  /// there is, as parseFile() does.
  std::optional<std::vector<ast::File>> load(ArrayRef<uint32_t> sources);
  /// Puts a file with its imports before the last of `into`, as far as it
  /// has not been loaded. False when there was an error.
  bool loadInto(std::vector<ast::File> &into, uint32_t source);

private:
  std::optional<uint32_t> openLibrary(StringRef name);
  /// Reads a file and its imports, as far as they were not read.
  void visit(uint32_t root);

  enum class State : uint8_t { Open, Done };

  SourceManager &sources;
  ast::Context &context;
  DiagnosticEngine &diags;
  bool keepsRest;
  size_t errorsBefore;
  std::vector<ast::File> files;
  std::map<uint32_t, State> states;
};

} // namespace ppcc
