#include "ppcc/Basic/Diagnostics.h"
#include "ppcc/Basic/Diagnostics/Files.h"
#include "ppcc/Support/Printable.h"

#include "llvm/Support/WithColor.h"

using namespace ppcc;

static constexpr DiagInfo table[] = {
#undef DIAG
#define DIAG(Name, Code, Level, Text, Hint)                                    \
  {diag::idOf(#Code), #Name, #Code, Severity::Level, Text, Hint},
#include "ppcc/Basic/Diagnostics.def"
#undef DIAG
};

ArrayRef<DiagInfo> ppcc::diagTable() { return table; }

const DiagInfo &ppcc::diagInfo(diag::Id id) {
  static const auto rows = [] {
    std::array<uint16_t, 10000> rows{};
    for (const DiagInfo &info : table)
      rows[info.id] = uint16_t(&info - table);
    return rows;
  }();
  return table[rows[id]];
}

void DiagnosticEngine::take(Diagnostic diagnostic) {
  if (diagnostic.info().severity == Severity::Error && ++errors > maxErrors) {
    if (errors == maxErrors + 1)
      consumer(
          {diag::TooManyErrors,
           {},
           fmt::format(diag::Text<diag::TooManyErrors>::value, maxErrors)});
    return;
  }
  consumer(diagnostic);
}

std::string ppcc::textOf(const Location &place, const SourceManager &sources) {
  if (!place.range.valid())
    return place.description;
  Position at = sources.position(place.range.begin);
  return fmt::format("{}:{}:{}", at.file, at.line, at.column);
}

namespace {

using Color = raw_ostream::Colors;

class Renderer {
public:
  Renderer(const SourceManager &sources, raw_ostream &out, bool isColored)
      : sources(sources), out(out),
        mode(isColored ? llvm::ColorMode::Enable : llvm::ColorMode::Disable) {}

  void line(const Location &place, StringRef label, Color color, StringRef text,
            StringRef code) {
    if (std::string where = printable(textOf(place, sources)); !where.empty())
      painted(Color::SAVEDCOLOR) << where << ": ";
    painted(color) << label << ": ";
    out << printable(text);
    if (!code.empty())
      out << " [" << code << ']';
    out << '\n';
    if (place.range.valid())
      snippet(place.range);
  }

private:
  /// The line of text, cut to a window around the range when it is long, and
  /// the caret below it.
  void snippet(SourceRange place) {
    constexpr size_t window = 120;
    StringRef text = sources.lineText(place.begin);
    Position at = sources.position(place.begin);
    size_t column = std::min<size_t>(at.column - 1, text.size());
    size_t length =
        place.end.raw > place.begin.raw ? place.end.raw - place.begin.raw : 1;
    auto isContinuationByte = [&](size_t at) {
      return at < text.size() && (text[at] & 0xC0) == 0x80;
    };
    size_t from = column > window * 3 / 4 ? column - window / 2 : 0;
    size_t to = std::min(text.size(), from + window);
    for (int i = 0; i != 3; ++i) {
      from -= from > 0 && isContinuationByte(from);
      to += isContinuationByte(to);
    }
    StringRef before = text.slice(from, column),
              range = text.slice(column, std::min(column + length, to)),
              after = text.slice(column + range.size(), to);
    std::string number = std::to_string(at.line);
    out << "  " << number << " | " << (from ? "..." : "") << shown(before)
        << shown(range) << shown(after) << (to < text.size() ? "..." : "")
        << '\n';
    out.indent(2 + number.size()) << " | " << (from ? "   " : "");
    for (StringRef part : llvm::split(before, '\t'))
      (part.begin() == before.begin() ? out : out << '\t')
          .indent(columnsOf(printable(part)));
    size_t columns = columnsOf(shown(range));
    painted(Color::GREEN) << '^'
                          << std::string(std::max<size_t>(columns, 1) - 1, '~');
    out << '\n';
  }

  /// Part of a line of text; its tabs stay.
  static std::string shown(StringRef part) {
    return llvm::join(llvm::map_range(llvm::split(part, '\t'), printable),
                      "\t");
  }

  /// Bold, up to the end of the statement.
  llvm::WithColor painted(Color color) {
    return {out, color, /*Bold=*/true, /*BG=*/false, mode};
  }

  const SourceManager &sources;
  raw_ostream &out;
  llvm::ColorMode mode;
};

} // namespace

void ppcc::render(const Diagnostic &diagnostic, const SourceManager &sources,
                  raw_ostream &out, bool isColored) {
  Renderer renderer(sources, out, isColored);
  const DiagInfo &info = diagnostic.info();
  bool isError = info.severity == Severity::Error;
  Location place = diagnostic.place;
  if (!place.range.valid() && place.description.empty())
    place.description = "ppcc";
  renderer.line(place, isError ? "error" : "warning",
                isError ? Color::RED : Color::MAGENTA, diagnostic.message,
                info.code);
  for (const Note &note : diagnostic.notes)
    renderer.line(note.place, "note", Color::CYAN, note.text, "");
  renderer.line({}, "note", Color::CYAN, info.hint, "");
  std::vector<std::string> titles;
  for (const FixIt &fix : diagnostic.fixes) {
    StringRef text = StringRef(fix.replacement).trim();
    auto shows = [text](StringRef said) { return said.contains(text); };
    if (!shows(diagnostic.message) && !shows(info.hint) &&
        llvm::none_of(diagnostic.notes,
                      [&](const Note &note) { return shows(note.text); }))
      titles.push_back(fix.title);
  }
  if (!titles.empty()) {
    std::string words = llvm::join(titles, ", or ");
    words.front() = llvm::toLower(words.front());
    renderer.line({}, "help", Color::GREEN, words, "");
  }
}
