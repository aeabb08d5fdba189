// What an editor asks about names, noted while a schedule is checked and laid
// out.
#pragma once

#include "ppcc/AST/AST.h"

namespace ppcc::sema {

/// Takes down where words mean which names, and what values these have.
class Observer {
public:
  /// A word that means the name which is declared at a place; a declaration
  /// means itself.
  struct Use {
    SourceRange at, declared;
  };
  struct Name {
    SourceRange declared;
    /// `value`, `let`, `loop`, `function`, `action`, `block`, `rule`,
    /// `placement` or `schedule`.
    StringRef what;
    StringRef type;                  ///< Of a value; empty for others.
    uint64_t count = 0;              ///< How often it was given a value.
    std::vector<std::string> values; ///< The first of them, as text.
  };
  static constexpr size_t maxValues = 64;

  void declare(SourceRange at, StringRef what, StringRef type) {
    names.try_emplace(at.begin.raw, Name{at, what, type, 0, {}});
    use(at, at);
  }
  void use(SourceRange at, SourceRange declared) {
    uses.push_back({at, declared});
  }
  /// The name has a value, which `text` would tell; it is asked for few only.
  template <class Text> void value(SourceRange declared, Text text) {
    auto found = names.find(declared.begin.raw);
    if (found != names.end() && found->second.count++ < maxValues)
      found->second.values.push_back(text());
  }

  std::vector<Use> uses;          ///< In the order of the check.
  std::map<uint32_t, Name> names; ///< By the places of their declarations.
};

} // namespace ppcc::sema
