#include "Depfile.h"
#include "ppcc/Basic/Diagnostics/Files.h"

#include "llvm/Support/FileSystem.h"

using namespace ppcc;

/// Writes a path as compilers do for Make: what ends a word there is escaped,
/// and backslashes before that count twice.
static void writePath(StringRef path, raw_ostream &out) {
  size_t backslashes = 0;
  for (char c : path) {
    if (StringRef(" #:").contains(c))
      out << std::string(backslashes + 1, '\\');
    if (c == '$')
      out << '$';
    out << c;
    backslashes = c == '\\' ? backslashes + 1 : 0;
  }
}

bool ppcc::writeDepfile(StringRef depfile, StringRef output,
                        const SourceManager &sources, DiagnosticEngine &diags,
                        raw_ostream &out) {
  // The library is a part of the program. Besides, Ninja takes a rule without
  // files for one that was not written, and would run the command each time.
  std::vector<std::string> paths = {
      output.str(), llvm::sys::fs::getMainExecutable(nullptr, nullptr)};
  for (StringRef name : sources.filesRead()) {
    SmallString<256> path(name);
    sources.fileSystem().makeAbsolute(path);
    paths.push_back(path.str().str());
  }
  for (const std::string &path : paths) {
    if (StringRef(path).contains('\n'))
      return diags.report<diag::CannotWrite>(
          {}, depfile,
          "Make reads no name with a newline, such as `" + path + "`");
    if (path.empty()) // There is no telling what runs.
      continue;
    bool isFirst = &path == &paths.front();
    writePath(path, isFirst ? out : out << " \\\n  ");
    if (isFirst)
      out << ':';
  }
  out << '\n';
  return true;
}
