#include "Loader.h"

#include "ppcc/Driver/ScheduleLibrary.h"
#include "ppcc/Parse/Parser.h"
#include "ppcc/Support/Suggest.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Path.h"

using namespace ppcc;
using llvm::StringRef;
namespace path = llvm::sys::path;

std::string Loader::libraryName(StringRef file) {
  return ("<library>/" + file).str();
}

std::optional<uint32_t> Loader::openLibrary(StringRef name) {
  for (const LibraryFile &file : scheduleLibrary()) {
    if (file.name != name && path::stem(file.name) != name)
      continue;
    std::string known = libraryName(file.name);
    if (std::optional<uint32_t> source = sources.lookup(known))
      return source;
    return sources.add(known,
                       llvm::MemoryBuffer::getMemBuffer(file.text, known));
  }
  return std::nullopt;
}

/// Opens `name` as a file, at first beside the file that asks for it, else from
/// the library.
std::optional<uint32_t> Loader::open(StringRef name, StringRef folder,
                                     Place place) {
  llvm::SmallString<128> full(folder);
  if (path::is_absolute(name) || name == "-")
    full = name;
  else
    path::append(full, name);
  // Two ways to write a path are one file: an import of itself would not be
  // seen otherwise.
  path::remove_dots(full, /*remove_dot_dot=*/true);
  auto source = sources.open(full);
  if (source)
    return *source;
  std::string why = llvm::toString(source.takeError());
  if (!path::has_parent_path(name))
    if (std::optional<uint32_t> library = openLibrary(name))
      return library;
  std::vector<StringRef> names;
  if (!path::has_parent_path(name))
    for (const LibraryFile &file : scheduleLibrary())
      names.push_back(path::has_extension(name) ? file.name
                                                : path::stem(file.name));
  diags.report<diag::CannotRead>(std::move(place), full.str(),
                                 why + didYouMean(name, names));
  return std::nullopt;
}

void Loader::visit(uint32_t source) {
  states[source] = State::Open;
  std::optional<ast::File> file = parseFile(source, sources, context, diags);
  if (file) {
    StringRef folder = path::parent_path(sources.name(source));
    for (const ast::Import &import : file->imports) {
      std::optional<uint32_t> target = open(import.path, folder, import.range);
      if (!target)
        continue;
      auto known = states.find(*target);
      if (known == states.end())
        visit(*target);
      else if (known->second == State::Open)
        diags.report<diag::ImportCycle>(import.range, sources.name(*target));
    }
    files.push_back(*file);
  }
  states[source] = State::Done;
}

std::optional<std::vector<ast::File>> Loader::load(StringRef input) {
  size_t before = diags.errorCount();
  if (std::optional<uint32_t> source = open(input, "", Place()))
    visit(*source);
  if (diags.errorCount() != before)
    return std::nullopt;
  return std::move(files);
}
