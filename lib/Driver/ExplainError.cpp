// `ppcc explain-error`: a page about an error, whose example is run while it is
// shown.
#include "Options.h"
#include "ppcc/Support/Embedded.h"
#include "ppcc/Support/Suggest.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/StringSaver.h"

using namespace ppcc;

namespace ppcc {
/// docs/errors/: the pages of a table of diagnostics, as Markdown: a section of
/// each code, whose listings are files (the name stands after the language)
/// and commands.
ArrayRef<EmbeddedFile> errorPages();
} // namespace ppcc

/// What docs/errors/ says below the title of a code.
static StringRef sectionOf(StringRef code) {
  for (const EmbeddedFile &file : errorPages()) {
    size_t begin = file.text.find(("\n## " + code + "\n").str());
    if (begin == StringRef::npos)
      continue;
    StringRef section = file.text.drop_front(begin + 1).split('\n').second;
    return section.take_front(section.find("\n## "));
  }
  return "";
}

/// The fmt format of a message for people.
static std::string withPlaceholders(StringRef text) {
  std::string result;
  while (!text.empty())
    if (text.consume_front("{{") || text.consume_front("}}"))
      result += text.data()[-1];
    else if (text.consume_front("{}"))
      result += "...";
    else {
      result += text.front();
      text = text.drop_front();
    }
  return result;
}

/// Runs the line as a shell would; what the tool says goes to `out`, and what
/// it writes nowhere.
static void runLine(StringRef line, const Session::Files &files,
                    raw_ostream &out) {
  llvm::BumpPtrAllocator memory;
  llvm::StringSaver saver(memory);
  SmallVector<const char *> words;
  llvm::cl::TokenizeGNUCommandLine(line, saver, words);
  runCompiler({words, files, llvm::nulls(), out});
}

/// Shows the example, whose files lie in the current folder from then on.
static void showExample(StringRef section, const Invocation &call) {
  raw_ostream &out = call.out;
  while (!section.empty()) {
    StringRef line;
    std::tie(line, section) = section.split('\n');
    if (!line.consume_front("```")) {
      out << line << '\n';
      continue;
    }
    size_t size = section.find("\n```") + 1;
    StringRef text = section.take_front(size);
    section = section.drop_front(size).split('\n').second;
    StringRef name = line.split(' ').second;
    if (!name.empty()) {
      std::error_code error;
      llvm::sys::fs::create_directories(llvm::sys::path::parent_path(name));
      llvm::raw_fd_ostream(name, error) << text;
      out << name << ":\n\n";
    }
    for (StringRef one : llvm::split(text.drop_back(), '\n')) {
      out << (one.empty() ? "" : "    ") << one << '\n';
      if (one.consume_front("$ ")) {
        std::string said;
        llvm::raw_string_ostream stream(said);
        runLine(one, call.files, stream);
        for (StringRef answer : llvm::split(StringRef(said).rtrim('\n'), '\n'))
          out << (answer.empty() ? "" : "    ") << answer << '\n';
      }
    }
  }
}

int ppcc::runExplainError(const Invocation &call) {
  std::string code;
  OptionParser parser(call, "ppcc explain-error");
  parser.positional("CODE", code, "Such as E0742", /*isRequired=*/true);
  if (std::optional<int> status = parser.parse())
    return *status;
  std::string wanted = StringRef(code).upper();
  if (!wanted.empty() && llvm::isDigit(wanted.front()))
    wanted.insert(0, wanted.size() == 3 ? "E0" : "E");
  auto *info = findBy(diagTable(), wanted, &DiagInfo::code);
  if (!info)
    return parser.usageError(
        fmt::format("unknown error code `{}`{}", code,
                    didYouMean(wanted, diagTable(), &DiagInfo::code)));
  bool isError = info->severity == Severity::Error;
  call.out << info->code << ' ' << info->name << ", "
           << (isError ? "an error" : "a warning") << ": "
           << withPlaceholders(info->text) << "\n\nWhat to do: " << info->hint
           << '\n';

  SmallString<128> before, folder;
  if (std::error_code error = llvm::sys::fs::current_path(before);
      error || (error = llvm::sys::fs::createUniqueDirectory("ppcc", folder)) ||
      (error = llvm::sys::fs::set_current_path(folder)))
    return parser.usageError("no folder for the example: " + error.message());
  auto leave = llvm::make_scope_exit([&] {
    llvm::sys::fs::set_current_path(before);
    llvm::sys::fs::remove_directories(folder);
  });
  showExample(sectionOf(info->code), call);
  return Success;
}
