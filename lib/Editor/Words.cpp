#include "ppcc/Editor/Words.h"

using namespace ppcc;
using namespace ppcc::editor;

static constexpr Word table[] = {
#define WORD(name, what, form, text) {name, what, form, text},
#include "ppcc/Editor/Words.def"
};

ArrayRef<Word> ppcc::editor::words() { return table; }

const Word *ppcc::editor::findWord(StringRef name) {
  return findBy(table, name, &Word::name);
}
