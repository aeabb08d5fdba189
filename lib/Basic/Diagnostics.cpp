#include "ppcc/Basic/Diagnostics.h"

#include "llvm/ADT/StringExtras.h"
#include <fmt/format.h>

using namespace ppcc;
using llvm::raw_ostream;
using llvm::StringRef;

static constexpr DiagInfo table[] = {
#define DIAG(Name, Code, Level, Text, Hint)                                    \
  {diag::Name, #Name, #Code, Severity::Level, Text, Hint},
#include "ppcc/Basic/Diagnostics.def"
#undef DIAG
};

llvm::ArrayRef<DiagInfo> ppcc::diagTable() { return table; }

void DiagnosticEngine::take(Diagnostic diagnostic) {
  if (diagnostic.info().severity == Severity::Error && ++errors > maxErrors) {
    if (errors == maxErrors + 1)
      consumer({diag::TooManyErrors,
                {},
                fmt::format(diag::Text<diag::TooManyErrors>::value, maxErrors),
                {}});
    return;
  }
  consumer(diagnostic);
}

namespace {

using Color = raw_ostream::Colors;

class Renderer {
public:
  Renderer(const SourceManager &sources, raw_ostream &out,
           RenderOptions options)
      : sources(sources), out(out), options(options) {}

  void line(const Place &place, StringRef label, Color color, StringRef text,
            StringRef code) {
    if (place.range.valid()) {
      Position at = sources.position(place.range.begin);
      bold() << at.file << ':' << at.line << ':' << at.column << ": ";
      reset();
    } else if (!place.words.empty()) {
      bold() << place.words << ": ";
      reset();
    }
    if (options.color)
      out.changeColor(color, true);
    out << label << ": ";
    reset();
    out << text;
    if (!code.empty())
      out << " [" << code << ']';
    out << '\n';
    if (place.range.valid())
      snippet(place.range);
  }

private:
  /// The line of text, cut to a window around the range when it is long, and
  /// the caret below it.
  void snippet(SourceRange range) {
    constexpr size_t window = 120;
    StringRef text = sources.lineText(range.begin);
    Position at = sources.position(range.begin);
    size_t column = std::min<size_t>(at.column - 1, text.size());
    size_t length =
        range.end.raw > range.begin.raw ? range.end.raw - range.begin.raw : 1;
    size_t from = column > window * 3 / 4 ? column - window / 2 : 0;
    while (from > 0 && isContinuation(text[from]))
      --from;
    size_t to = std::min(text.size(), from + window);
    while (to < text.size() && isContinuation(text[to]))
      ++to;
    StringRef shown = text.slice(from, to);
    length = std::clamp<size_t>(length, 1,
                                std::max<size_t>(1, to - std::min(to, column)));

    std::string number = std::to_string(at.line);
    out << "  " << number << " | " << (from ? "..." : "");
    for (char c : shown)
      out << (static_cast<unsigned char>(c) < 0x20 && c != '\t' ? ' ' : c);
    out << (to < text.size() ? "..." : "") << '\n';
    out.indent(2 + number.size()) << " | ";
    if (from)
      out.indent(3);
    for (char c : text.slice(from, column))
      if (!isContinuation(c))
        out << (c == '\t' ? '\t' : ' ');
    if (options.color)
      out.changeColor(Color::GREEN, true);
    out << '^';
    for (char c :
         text.slice(column, column + length).drop_front(column < text.size()))
      if (!isContinuation(c))
        out << '~';
    reset();
    out << '\n';
  }

  static bool isContinuation(char c) {
    return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
  }

  raw_ostream &bold() {
    if (options.color)
      out.changeColor(Color::SAVEDCOLOR, true);
    return out;
  }
  void reset() {
    if (options.color)
      out.resetColor();
  }

  const SourceManager &sources;
  raw_ostream &out;
  RenderOptions options;
};

} // namespace

void ppcc::render(const Diagnostic &diagnostic, const SourceManager &sources,
                  raw_ostream &out, RenderOptions options) {
  Renderer renderer(sources, out, options);
  const DiagInfo &info = diagnostic.info();
  bool isError = info.severity == Severity::Error;
  Place place = diagnostic.place;
  if (!place.range.valid() && place.words.empty())
    place.words = "ppcc";
  renderer.line(place, isError ? "error" : "warning",
                isError ? Color::RED : Color::MAGENTA, diagnostic.message,
                info.code);
  for (const Note &note : diagnostic.notes)
    renderer.line(note.place, "note", Color::CYAN, note.text, "");
  renderer.line({}, "note", Color::CYAN, info.hint, "");
}

fmt::format_context::iterator
fmt::formatter<llvm::StringRef>::format(llvm::StringRef text,
                                        fmt::format_context &context) const {
  return fmt::formatter<fmt::string_view>::format({text.data(), text.size()},
                                                  context);
}
