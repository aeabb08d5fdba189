#include "ppcc/Basic/Diagnostics.h"
#include "ppcc/Support/Printable.h"

#include "llvm/Support/JSON.h"

using namespace ppcc;

static void putText(llvm::json::OStream &json, StringRef key, StringRef text) {
  json.attribute(key, llvm::json::fixUTF8(text));
}

static void putRange(llvm::json::OStream &json, SourceRange range,
                     const SourceManager &sources) {
  Position begin = sources.position(range.begin),
           end = sources.position(range.end);
  putText(json, "file", begin.file);
  json.attribute("line", begin.line);
  json.attribute("column", begin.column);
  json.attribute("end_line", end.line);
  json.attribute("end_column", end.column);
}

static void putPlace(llvm::json::OStream &json, const Location &place,
                     const SourceManager &sources) {
  if (std::string text = textOf(place, sources); !text.empty())
    putText(json, "place", text);
  if (place.range.valid())
    putRange(json, place.range, sources);
}

void ppcc::renderJson(const Diagnostic &diagnostic,
                      const SourceManager &sources, raw_ostream &out) {
  std::string line;
  llvm::raw_string_ostream stream(line);
  llvm::json::OStream json(stream);
  const DiagInfo &info = diagnostic.info();
  json.object([&] {
    putText(json, "code", info.code);
    putText(json, "severity",
            info.severity == Severity::Error ? "error" : "warning");
    putPlace(json, diagnostic.place, sources);
    putText(json, "message", diagnostic.message);
    putText(json, "hint", info.hint);
    json.attributeArray("notes", [&] {
      for (const Note &note : diagnostic.notes)
        json.object([&] {
          putPlace(json, note.place, sources);
          putText(json, "message", note.text);
        });
    });
    if (!diagnostic.fixes.empty())
      json.attributeArray("edits", [&] {
        for (const FixIt &fix : diagnostic.fixes)
          json.object([&] {
            putText(json, "title", fix.title);
            putRange(json, fix.range, sources);
            putText(json, "replacement", fix.replacement);
          });
      });
  });
  out << printableJson(line) << '\n';
}
