#include "Analysis.h"

using namespace ppcc;
using namespace ppcc::lsp;
namespace json = llvm::json;

lsp::CompileSettings lsp::compileSettingsOf(StringRef path, StringRef text,
                                            ArrayRef<std::string> fallback,
                                            ReadOptions readOptions) {
  CompileSettings setting{text.take_front(0), {}, ""};
  std::vector<std::string> words{"ppcc", path.str()};
  for (StringRef line : llvm::split(text, '\n'))
    if (StringRef said = line; said.consume_front("// ppcc:")) {
      if (setting.line.empty())
        setting.line = line.rtrim();
      for (StringRef word : llvm::split(said.trim(), ' '))
        if (!word.trim().empty())
          words.push_back(word.trim().str());
    }
  if (setting.line.empty())
    llvm::append_range(words, fallback);
  std::vector<const char *> args;
  for (const std::string &word : words)
    args.push_back(word.c_str());
  setting.errorText = readOptions(args, setting.request);
  if (setting.errorText.empty() && !setting.request.from.empty())
    setting.errorText = "--from is for programs; this is a schedule";
  setting.request.input = path.str(); // Whatever is wrong.
  // Whoever wrote the text has no say in what the server takes.
  uint64_t &actions = setting.request.limits.maxActions;
  actions = std::min(actions, sema::Limits().maxActions);
  if (auto &bytes = setting.request.maxSourceBytes)
    bytes = std::min(*bytes, size_t(1) << 20);
  setting.request.until = Request::StopAfter::Done;
  return setting;
}

Analysis::Analysis(StringRef path, const Text &text,
                   const CompileSettings &setting, Session::Files files)
    : path(path), session(std::move(files)) {
  Request request = setting.request;
  request.until = Request::StopAfter::Checked;
  restrictSources(session.sources);
  session.observer = &observer;
  Compiled compiled = compile(request, session);
  hasNoErrors = !session.diags.hasErrors() && compiled.usageError.empty();
  diagnostics = diagnosticsOf(session, path, text);
  if (!compiled.usageError.empty())
    diagnostics.push_back(
        diagnosticAt(text.range(setting.line), compiled.usageError));
  parsedFully = llvm::none_of(session.found, [&](const Diagnostic &one) {
    return one.info().code.starts_with("E02") &&
           offsetIn(one.place.range.begin);
  });
}

SourceLoc Analysis::locOf(size_t offset) const {
  auto file = session.sources.lookup(path);
  return file ? session.sources.loc(*file, offset) : SourceLoc();
}

std::optional<size_t> Analysis::offsetIn(SourceLoc place) const {
  if (!place.valid())
    return std::nullopt;
  Position at = session.sources.position(place);
  return at.file == path ? std::optional<size_t>(at.offset) : std::nullopt;
}

const sema::Observer::Use *Analysis::useAt(size_t offset) const {
  uint32_t raw = locOf(offset).raw;
  auto found = llvm::find_if(observer.uses, [&](const auto &use) {
    return use.at.begin.raw <= raw && raw <= use.at.end.raw;
  });
  return found == observer.uses.end() ? nullptr : &*found;
}

const sema::Observer::Name *Analysis::nameAt(SourceLoc declared) const {
  auto found = observer.names.find(declared.raw);
  return found == observer.names.end() ? nullptr : &found->second;
}

namespace {

json::Object diagnosticOf(const Diagnostic &one, const SourceManager &sources,
                          StringRef path, const Text &text) {
  auto bytesOf =
      [&](const Location &place) -> std::optional<std::pair<size_t, size_t>> {
    auto [begin, end] = place.range;
    if (!begin.valid() || sources.position(begin).file != path)
      return std::nullopt;
    size_t at = sources.position(begin).offset, size = text.all().size();
    size_t length = end.valid() ? end.raw - begin.raw : 0;
    return std::pair(std::min(at, size), std::min(at + length, size));
  };
  auto rangeOf = [&](const Location &place) {
    auto [begin, end] = bytesOf(place).value_or(std::pair(0, 0));
    return text.range(begin, end);
  };
  const DiagInfo &info = one.info();
  std::string words = one.message;
  json::Array related;
  for (const Note &note : one.notes)
    if (note.place.range.valid()) {
      Position at = sources.position(note.place.range.begin);
      StringRef before =
          sources.lineText(note.place.range.begin).take_front(at.column - 1);
      json::Object start{{"line", at.line - 1},
                         {"character", int64_t(utf16Length(before))}};
      related.push_back(json::Object{
          {"location",
           location(uriOf(at.file),
                    at.file == path
                        ? rangeOf(note.place)
                        : json::Object{{"start", json::Object(start)},
                                       {"end", json::Object(start)}})},
          {"message", json::fixUTF8(note.text)}});
    } else {
      words += "\n" + note.text;
    }
  if (!info.hint.empty())
    words += "\n" + info.hint.str();
  if (!bytesOf(one.place) && one.place.range.valid()) {
    Position place = sources.position(one.place.range.begin);
    words = fmt::format("{}:{}: {}", place.file.str(), place.line, words);
  }
  enum { Error = 1, Warning, Information, Hint };
  // A file that others import needs no schedule of its own.
  bool isImported =
      info.name == "NoSchedule" && !text.names.declarations().empty();
  int severity = isImported                         ? Hint
                 : info.severity == Severity::Error ? Error
                                                    : Warning;
  json::Array edits;
  for (const FixIt &fix : one.fixes)
    if (auto bytes = bytesOf(fix.range)) {
      json::Object change =
          edit(text.range(bytes->first, bytes->second), fix.replacement);
      change["title"] = fix.title;
      edits.push_back(std::move(change));
    }
  return json::Object{{"range", rangeOf(one.place)},
                      {"severity", severity},
                      {"code", info.code},
                      {"source", "ppcc"},
                      {"message", json::fixUTF8(words)},
                      {"relatedInformation", std::move(related)},
                      {"data", std::move(edits)}};
}

/// `3`, `by rank: 3, 2, 1, 0`, or `0, 1, 2, ... (20 times)`.
std::string valueText(const sema::Observer::Name &name, uint64_t ranks) {
  ArrayRef<std::string> values = name.values;
  if (llvm::all_equal(values) && name.count == values.size())
    return "= " + values.front();
  if (name.count == ranks && values.size() == ranks)
    return "by rank: " + llvm::join(values, ", ");
  constexpr size_t limit = 8;
  std::vector<std::string> distinct;
  for (const std::string &value : values)
    if (!llvm::is_contained(distinct, value) && distinct.size() != limit)
      distinct.push_back(value);
  return fmt::format("takes {}{} ({} times)", llvm::join(distinct, ", "),
                     distinct.size() == limit ? ", ..." : "", name.count);
}

} // namespace

json::Object lsp::diagnosticAt(json::Object range, StringRef message) {
  return json::Object{{"range", std::move(range)},
                      {"severity", 1},
                      {"source", "ppcc"},
                      {"message", json::fixUTF8(message)}};
}

json::Array lsp::diagnosticsOf(const Session &session, StringRef path,
                               const Text &text) {
  json::Array all;
  for (const Diagnostic &one : session.found)
    all.push_back(diagnosticOf(one, session.sources, path, text));
  return all;
}

void lsp::writeCompiled(StringRef path, const Text &text,
                        const Request &request, Session::Files files,
                        raw_ostream &out) {
  Session session(std::move(files));
  restrictSources(session.sources);
  sema::Observer observer;
  session.observer = &observer;
  Compiled compiled = compile(request, session);
  const Program &program = compiled.program;
  json::Object values;
  for (const auto &[place, name] : observer.names)
    if (Position at = session.sources.position(name.declared.begin);
        at.file == path && name.count != 0)
      values[std::to_string(at.offset)] = valueText(name, program.numRanks());
  uint64_t chunks = 0;
  if (program.numRanks() != 0)
    for (PipeId pipe : program.pipeIds())
      chunks +=
          llvm::divideCeil(program.pipe(pipe).numStages(), program.numRanks());
  json::Array diagnostics = diagnosticsOf(session, path, text);
  if (!compiled.usageError.empty())
    diagnostics.push_back(diagnosticAt(text.range(0, 0), compiled.usageError));
  out << json::Value(json::Object{{"diagnostics", std::move(diagnostics)},
                                  {"values", std::move(values)},
                                  {"chunks", int64_t(chunks)}});
}
