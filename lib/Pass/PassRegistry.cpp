// The passes that pipelines can name.
#include "ppcc/Pass/PassRegistry.h"

using namespace ppcc;

void PassRegistry::add(StringRef name, PassKind kind, StringRef summary,
                       PassFactory factory) {
  assert(!find(name) && "two passes with one name");
  entries.push_back(std::make_unique<Entry>(
      Entry{name, summary, kind, std::move(factory), {}}));
}

void PassRegistry::addAlias(StringRef name, StringRef summary,
                            StringRef passes) {
  assert(!find(name) && "two passes with one name");
  Entry alias{name, summary, {}, {}, {}};
  for (StringRef part : llvm::split(passes, ',')) {
    const Entry *pass = find(part);
    assert(pass && !pass->isAlias() && "an alias names passes");
    alias.sequence.push_back(pass);
  }
  entries.push_back(std::make_unique<Entry>(std::move(alias)));
}

const PassRegistry::Entry *PassRegistry::find(StringRef name) const {
  auto found = llvm::find_if(
      entries, [&](const auto &entry) { return entry->name == name; });
  return found == entries.end() ? nullptr : found->get();
}

SmallVector<StringRef> PassRegistry::names() const {
  return llvm::to_vector(
      llvm::map_range(entries, [](const auto &entry) { return entry->name; }));
}

void PassRegistry::list(raw_ostream &out) const {
  for (const auto &entry : entries) {
    out << llvm::left_justify(entry->name, 24) << ' ' << entry->summary << '\n';
    if (entry->isAlias()) {
      out.indent(4) << "= ";
      llvm::interleave(
          entry->sequence, out, [&](const Entry *pass) { out << pass->name; },
          ",");
      out << '\n';
    }
    for (const PassOptionInfo &option : entry->factory.options)
      out.indent(4) << llvm::left_justify(
                           (option.name + "=" + option.values).str(), 20)
                    << ' ' << option.summary << '\n';
  }
}
