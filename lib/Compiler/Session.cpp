// What a session found wrong, as it is handed on.
#include "ppcc/Basic/Diagnostics/Files.h"
#include "ppcc/Compiler/Compiler.h"

#include "Loader.h"
#include "ppcc/Compiler/ScheduleLibrary.h"

using namespace ppcc;

Session::Session(Files files, Consumer consumer)
    : sources(std::move(files)),
      diags([this](const Diagnostic &reported) { hold(reported); }),
      consumer(std::move(consumer)) {}

Session::Session(const SourceManager &other)
    : sources(&other.fileSystem(), other.sharedInputs()),
      diags([this](const Diagnostic &reported) { hold(reported); }) {}

/// Completes edits by what the text has and the tree has not: the semicolon of
/// a statement that is removed.
static void completeFixes(Diagnostic &reported, const SourceManager &sources) {
  llvm::erase_if(reported.fixes, [&](FixIt &fix) {
    auto &[begin, end] = fix.range;
    Position at = sources.position(begin);
    StringRef after = sources.text(*sources.lookup(at.file))
                          .drop_front(at.offset + end.raw - begin.raw);
    StringRef rest = after.ltrim(") \t\r\n");
    if (!fix.replacement.empty())
      return false;
    end = end.advanced(after.size() - rest.size() + 1);
    return !rest.starts_with(";");
  });
}

/// Adds the import of each file of the library that declares what is missing,
/// below the comment at the top.
static void addImports(Diagnostic &reported, const SourceManager &sources) {
  SourceLoc place = reported.place.range.begin;
  if (reported.undeclared.empty() || !place.valid())
    return;
  uint32_t file = *sources.lookup(sources.position(place).file);
  StringRef text = sources.text(file), rest = text;
  rest.consume_front("\xEF\xBB\xBF");
  while (rest.starts_with("//"))
    rest = rest.split('\n').second;
  SourceLoc top = sources.loc(file, text.size() - rest.size());
  auto declares = [&](StringRef line) { // `fn short(few, M, G) = ...`
    auto [word, rest] = line.split(' ');
    auto isOfName = [](char c) { return llvm::isAlnum(c) || c == '_'; };
    return rest.take_while(isOfName) == reported.undeclared &&
           llvm::is_contained(llvm::split(reported.declaredBy, ' '), word);
  };
  for (const LibraryFile &library : scheduleLibrary())
    if (llvm::any_of(llvm::split(library.text, '\n'), declares))
      reported.fixes.push_back({{top, top},
                                fmt::format("import \"{}\";\n", library.name),
                                fmt::format("Import `{}`", library.name)});
}

void Session::hold(const Diagnostic &reported) {
  SourceRange range = reported.place.range;
  if (range.valid()) {
    std::string words = reported.message;
    llvm::erase_if(words, [](char c) { return llvm::isDigit(c); });
    auto [known, isNew] = places.try_emplace(
        {reported.id, range.begin.raw, std::move(words)}, held.size());
    if (!isNew) {
      ++held[known->second].more;
      held[known->second].last = reported.message;
      return;
    }
  }
  held.push_back({reported});
  completeFixes(held.back().first, sources);
  addImports(held.back().first, sources);
  if (batchDepth == 0)
    flush();
}

void Session::flush() {
  for (DiagnosticGroup &mistake : std::exchange(held, {})) {
    if (mistake.more != 0) {
      mistake.first.notes.push_back(
          {{},
           fmt::format("and {} more at {}, the last: {}", mistake.more,
                       textOf(mistake.first.place, sources), mistake.last)});
    }
    if (consumer)
      consumer(mistake.first, sources);
    else
      found.push_back(std::move(mistake.first));
  }
  places.clear();
}

std::optional<uint32_t> Session::open(StringRef path) {
  auto file = sources.open(path);
  if (!file)
    return diags.report<diag::CannotRead>(
        {}, path,
        llvm::toString(file.takeError()) +
            similarFile(path, sources.fileSystem()));
  if (StringRef output = sources.outputOf(*file); !output.empty())
    return diags.report<diag::OutputIsInput>({}, output);
  return *file;
}

std::string Session::text() const {
  std::string text;
  llvm::raw_string_ostream out(text);
  for (const Diagnostic &diagnostic : found)
    render(diagnostic, sources, out);
  return text;
}
