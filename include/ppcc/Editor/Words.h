// The words of the language, explained.
#pragma once

#include "ppcc/Support/LLVM.h"

namespace ppcc::editor {

/// A row of Words.def.
struct Word {
  StringRef name, what, form, text;
};

inline constexpr Word words[] = {
#define WORD(name, what, form, text) {name, what, form, text},
#include "ppcc/Editor/Words.def"
};

/// The row of a name; null for one that is none.
inline const Word *findWord(StringRef name) {
  return findBy(words, name, &Word::name);
}

} // namespace ppcc::editor
