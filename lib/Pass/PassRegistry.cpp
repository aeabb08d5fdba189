// The passes that pipelines can name.
#include "ppcc/Pass/PassRegistry.h"

using namespace ppcc;

void PassRegistry::add(StringRef name, PassKind kind, StringRef summary,
                       Pass pass) {
  assert(!find(name) && "two passes with one name");
  entries.push_back({name, summary, kind, std::move(pass), {}});
}

void PassRegistry::addAlias(StringRef name, StringRef summary,
                            StringRef passes) {
  assert(!find(name) && "two passes with one name");
  entries.push_back({name, summary, {}, {}, {}});
  for (StringRef part : llvm::split(passes, ',')) {
    const Entry *pass = find(part);
    assert(pass && pass->pass && "an alias names passes");
    entries.back().sequence.push_back(pass);
  }
}

void PassRegistry::list(raw_ostream &out) const {
  for (const Entry &entry : entries) {
    out << llvm::left_justify(entry.name, 24) << ' ' << entry.summary << '\n';
    if (!entry.pass)
      out.indent(4) << "= "
                    << llvm::join(namesIn(entry.sequence, &Entry::name), ",")
                    << '\n';
  }
}
