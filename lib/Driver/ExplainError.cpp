// `ppcc explain-error`: a page about an error, with an example.
#include "Options.h"
#include "ppcc/Support/Embedded.h"
#include "ppcc/Support/Suggest.h"

using namespace ppcc;

namespace ppcc {
/// docs/errors/: the pages of a table of diagnostics, as Markdown: a section of
/// each code, whose listings are files (the name stands after the language)
/// and commands with what they print.
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

/// Markdown as it is shown in a terminal: listings are indented, below their
/// names.
static void show(StringRef section, raw_ostream &out) {
  bool isListing = false;
  for (StringRef line : llvm::split(section.trim('\n'), '\n')) {
    StringRef name = line.split(' ').second;
    if (!line.consume_front("```"))
      out << (isListing && !line.empty() ? "    " : "") << line << '\n';
    else if (isListing = !isListing; isListing && !name.empty())
      out << name << ":\n\n";
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
           << "\n\n";
  show(sectionOf(info->code), call.out);
  return Success;
}
