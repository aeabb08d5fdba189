#include "Loader.h"

#include "ppcc/Basic/Diagnostics/Files.h"
#include "ppcc/Compiler/ScheduleLibrary.h"
#include "ppcc/Parse/Parser.h"

#include "llvm/Support/Path.h"

using namespace ppcc;
namespace path = llvm::sys::path;

std::string ppcc::similarFile(StringRef file, llvm::vfs::FileSystem &fs,
                              std::vector<std::string> names) {
  if (fs.exists(file))
    return ""; // It cannot be read for another reason.
  StringRef folder = path::parent_path(file);
  std::error_code error;
  size_t left = 1000; // A folder may be large.
  for (auto entry = fs.dir_begin(folder.empty() ? "." : folder, error);
       !error && entry != llvm::vfs::directory_iterator() && left-- != 0;
       entry.increment(error))
    if (path::extension(entry->path()) == path::extension(file))
      names.push_back(path::filename(entry->path()).str());
  return didYouMean(path::filename(file), namesIn(names));
}

std::optional<uint32_t> Loader::openLibrary(StringRef name) {
  const LibraryFile *file = findLibraryFile(name);
  if (!file)
    return std::nullopt;
  std::string known = (libraryFolder + file->name).str();
  if (std::optional<uint32_t> source = sources.lookup(known))
    return source;
  return sources.add(known,
                     llvm::MemoryBuffer::getMemBuffer(file->text, known));
}

std::optional<uint32_t> Loader::open(StringRef name,
                                     SourceManager::LimitOf limitOf,
                                     StringRef folder, Location place) {
  SmallString<128> full(folder);
  bool isInput = name == "-" && !place.range.valid();
  if (path::is_absolute(name))
    full = name;
  else
    path::append(full, name);
  // Two ways to write a path are one file: an import of itself would not be
  // seen otherwise.
  path::remove_dots(full, /*remove_dot_dot=*/true);
  if (full.empty() || (full == "-" && !isInput))
    full = ("./" + full).str();
  auto source = sources.open(full, limitOf, /*mayStream=*/!place.range.valid());
  if (source) {
    if (StringRef output = sources.outputOf(*source); !output.empty())
      return diags.report<diag::OutputIsInput>(std::move(place), output);
    return *source;
  }
  std::string why = llvm::toString(source.takeError());
  if (!path::has_parent_path(name))
    if (std::optional<uint32_t> library = openLibrary(name))
      return library;
  std::vector<std::string> names;
  if (!path::has_parent_path(name)) {
    for (const LibraryFile &file : scheduleLibrary())
      if (path::has_extension(name))
        names.push_back(file.name.str());
      else
        llvm::append_range(names, file.names());
  }
  return diags.report<diag::CannotRead>(
      std::move(place), full.str(),
      why + similarFile(full, sources.fileSystem(), std::move(names)));
}

// A loop and not a recursion: a chain of imports may be as long as a folder.
void Loader::visit(uint32_t root) {
  struct Visit {
    uint32_t source;
    std::string folder;
    std::optional<ast::File> file;
    size_t nextImport = 0;
  };
  std::vector<Visit> visits;
  auto begin = [&](uint32_t source) {
    states[source] = State::Open;
    visits.push_back({source, path::parent_path(sources.name(source)).str(),
                      parseFile(source, sources, context, diags, keepsRest)});
  };
  if (!states.count(root))
    begin(root);
  while (!visits.empty()) {
    Visit &visit = visits.back();
    if (!visit.file || visit.nextImport == visit.file->imports.size()) {
      if (visit.file)
        files.push_back(*visit.file);
      states[visit.source] = State::Done;
      visits.pop_back();
      continue;
    }
    const ast::Import &import = visit.file->imports[visit.nextImport++];
    std::optional<uint32_t> target =
        open(import.path, nullptr, visit.folder, import.range);
    if (!target)
      continue;
    auto known = states.find(*target);
    if (known == states.end())
      begin(*target);
    else if (known->second == State::Open)
      diags.report<diag::ImportCycle>(import.range, sources.name(*target));
  }
}

bool Loader::loadInto(std::vector<ast::File> &into, uint32_t source) {
  files.clear();
  visit(source);
  into.insert(into.end() - 1, files.begin(), files.end());
  return diags.errorCount() == errorsBefore;
}

std::optional<std::vector<ast::File>> Loader::load(ArrayRef<uint32_t> sources) {
  visit(*openLibrary("placements"));
  for (uint32_t source : sources)
    visit(source);
  if (diags.errorCount() != errorsBefore && !keepsRest)
    return std::nullopt;
  return std::move(files);
}
