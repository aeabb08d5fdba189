#include "Depfile.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using namespace ppcc;
using llvm::raw_ostream;
using llvm::StringRef;

/// Writes a path as compilers do for Make: what ends a word there is escaped.
static void writePath(StringRef path, raw_ostream &out) {
  for (char c : path) {
    if (c == ' ' || c == '#')
      out << '\\';
    if (c == '$')
      out << '$';
    out << c;
  }
}

void ppcc::writeDepfile(StringRef output, const SourceManager &sources,
                        raw_ostream &out) {
  writePath(output, out);
  out << ':';
  auto dependOn = [&](StringRef path) { writePath(path, out << " \\\n  "); };
  // The library is a part of it. Besides, Ninja takes a rule without files for
  // one that was not written, and would run the command each time.
  if (std::string self = llvm::sys::fs::getMainExecutable(nullptr, nullptr);
      !self.empty())
    dependOn(self);
  for (StringRef name : sources.filesRead()) {
    llvm::SmallString<256> path(name);
    sources.fileSystem().makeAbsolute(path);
    dependOn(path);
  }
  out << '\n';
}
