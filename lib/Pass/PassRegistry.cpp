// The passes that pipelines can name.
#include "ppcc/Pass/PassRegistry.h"

using namespace ppcc;

void PassRegistry::add(StringRef name, PassKind kind, StringRef summary,
                       PassFactory factory) {
  assert(!find(name) && "two passes with one name");
  entries.push_back({name, summary, kind, std::move(factory), {}});
}

void PassRegistry::addAlias(StringRef name, StringRef summary,
                            StringRef passes) {
  assert(!find(name) && "two passes with one name");
  entries.push_back({name, summary, {}, {}, {}});
  for (StringRef part : llvm::split(passes, ',')) {
    const Entry *pass = find(part);
    assert(pass && !pass->isAlias() && "an alias names passes");
    entries.back().sequence.push_back(pass);
  }
}

void PassRegistry::list(raw_ostream &out) const {
  for (const Entry &entry : entries) {
    out << llvm::left_justify(entry.name, 24) << ' ' << entry.summary << '\n';
    if (entry.isAlias())
      out.indent(4) << "= "
                    << llvm::join(namesIn(entry.sequence, &Entry::name), ",")
                    << '\n';
    for (const PassOptionInfo &option : entry.factory.options)
      out.indent(4) << llvm::left_justify(
                           (option.name + "=" + option.values).str(), 20)
                    << ' ' << option.summary << '\n';
  }
}
