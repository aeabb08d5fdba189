#include "ppcc/Compiler/ScheduleLibrary.h"

#include "llvm/Support/Path.h"

using namespace ppcc;

std::string ppcc::leadingComment(StringRef text) {
  std::string summary;
  for (StringRef rest = text; rest.consume_front("//");) {
    auto [line, after] = rest.split('\n');
    summary += (summary.empty() ? "" : " ") + line.trim().str();
    rest = after;
  }
  return summary;
}

std::vector<std::string> LibraryFile::names() const {
  std::vector<std::string> names{llvm::sys::path::stem(name).str()};
  std::string comment = summary();
  StringRef aliases = StringRef(comment).split("Alias: ").second;
  for (StringRef alias :
       llvm::split(aliases.take_until([](char c) { return c == '.'; }), ", "))
    if (!alias.empty())
      names.push_back(alias.str());
  return names;
}

/// What has the same letters and digits, as classes of PyTorch have them after
/// a `Schedule`, is one name.
static std::string normalized(StringRef name) {
  name.consume_front("Schedule");
  std::string text = name.lower();
  llvm::erase_if(text, [](char c) { return c == '_' || c == '-'; });
  return text;
}

const LibraryFile *ppcc::findLibraryFile(StringRef name) {
  auto isThis = [&](const LibraryFile &file) {
    return file.name == name ||
           llvm::any_of(file.names(), [&](const std::string &known) {
             return normalized(known) == normalized(name);
           });
  };
  auto *found = llvm::find_if(scheduleLibrary(), isThis);
  return found == scheduleLibrary().end() ? nullptr : found;
}
