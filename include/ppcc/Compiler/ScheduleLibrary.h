// The schedules that travel inside the compiler: the files of lib/schedules/.
#pragma once

#include "ppcc/Support/LLVM.h"

namespace ppcc {

/// The comment at the top of a file.
std::string leadingComment(StringRef text);

/// A file of the library.
struct LibraryFile {
  StringRef name; ///< `dualpipe.pp`.
  StringRef text;

  /// The comment at its top.
  std::string summary() const { return leadingComment(text); }
  /// By which it is known: the name of the file without its extension, and
  /// those that the comment ends with: `Alias: NAME, NAME.`
  std::vector<std::string> names() const;
};

/// Before the names of files of the library among sources.
inline constexpr StringRef libraryFolder = "<library>/";

/// All files of the library, by name.
ArrayRef<LibraryFile> scheduleLibrary();
/// The file with this name, or one of whose names() this is up to case, `_`,
/// `-` and a `Schedule` before it; null for none.
const LibraryFile *findLibraryFile(StringRef name);

} // namespace ppcc
