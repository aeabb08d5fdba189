// The passes that pipelines can name, and pipelines as text:
// `verify,inject-comm,verify`.
#pragma once

#include "ppcc/Pass/Pass.h"
#include "ppcc/Support/Suggest.h"

namespace ppcc {

/// Finds passes by name.
class PassRegistry {
public:
  /// A pass with its name, or a name for a sequence of passes.
  struct Entry {
    StringRef name, summary;
    PassKind kind;
    Pass pass;                           ///< Empty for an alias.
    std::vector<const Entry *> sequence; ///< The passes of an alias.
  };

  PassRegistry() = default;
  PassRegistry(const PassRegistry &) = delete;
  PassRegistry &operator=(const PassRegistry &) = delete;
  PassRegistry(PassRegistry &&) = default;

  /// Adds a pass. Names are unique.
  void add(StringRef name, PassKind kind, StringRef summary, Pass pass);
  /// Adds a name for `passes`, names of passes added before, with commas
  /// between them.
  void addAlias(StringRef name, StringRef summary, StringRef passes);

  /// The entry called `name`, or nothing.
  const Entry *find(StringRef name) const {
    return findBy(entries, name, &Entry::name);
  }
  /// The names of all entries, in the order in which they were added.
  std::vector<StringRef> names() const {
    return namesIn(entries, &Entry::name);
  }
  /// Writes names and summaries, as --list-passes shows them.
  void list(raw_ostream &out) const;

private:
  std::deque<Entry> entries; ///< Which stay where they are.
};

/// The pipeline that `text` describes, or reports, at places in a buffer called
/// `<passes>`, all that is wrong with it. An empty text is an empty pipeline.
std::optional<Pipeline> parsePipeline(StringRef text,
                                      const PassRegistry &registry,
                                      SourceManager &sources,
                                      DiagnosticEngine &diags);

/// Appends the pass called `name`, or the passes of that alias.
void append(StringRef name, const PassRegistry &registry, Pipeline &pipeline);

} // namespace ppcc
