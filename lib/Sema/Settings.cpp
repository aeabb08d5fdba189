// Checks the settings of `comm { }` against their table.
#include "Settings.h"

#include "ppcc/Basic/Diagnostics/Sema.h"
#include "ppcc/Basic/Diagnostics/Syntax.h"
#include "ppcc/Support/Suggest.h"

using namespace ppcc;
using namespace ppcc::sema;

namespace {

enum class CommValue : uint8_t { Order, Fusion, Calls, Count, Switch };

constexpr StringRef switchWords[] = {"auto", "on", "off"};

constexpr StringRef commNames[] = {
#define COMM(Name, Takes) Name,
#include "Settings.def"
};
constexpr CommValue commValues[] = {
#define COMM(Name, Takes) CommValue::Takes,
#include "Settings.def"
};

void checkValue(const ast::WordsItem &setting, const ast::Identifier &value,
                CommValue takes, const CommWords &words,
                DiagnosticEngine &diags) {
  ArrayRef<StringRef> allowed =
      takes == CommValue::Order    ? ArrayRef(words.orders)
      : takes == CommValue::Switch ? ArrayRef(switchWords)
      : takes == CommValue::Calls  ? ArrayRef(words.calls)
                                   : ArrayRef(words.fusions);
  bool isCount = takes == CommValue::Count;
  uint32_t number;
  bool ok = isCount ? !value.text.getAsInteger(10, number) && number != 0
                    : llvm::is_contained(allowed, value.text);
  if (!ok)
    diags.report<diag::BadSettingValue>(
        value.range, setting.name.text, value.text,
        isCount ? "; it takes a number of at least 1"
                : didYouMean(value.text, allowed));
}

} // namespace

std::optional<size_t> SettingNames::find(ArrayRef<StringRef> names,
                                         const ast::Identifier &name) {
  auto *found = llvm::find(names, name.text);
  if (found != names.end())
    return found - names.begin();
  return diags.report<diag::UnknownSetting>(name.range, section, name.text,
                                            didYouMean(name.text, names));
}

void SettingNames::once(StringRef key, SourceRange range) {
  auto [first, isNew] = seen.try_emplace(key, range);
  if (!isNew)
    diags.report<diag::DuplicateItem>(range, fmt::format("`{}`", key))
        .note(first->second, "the first is here");
}

void sema::checkComm(const ast::CommItem &item, const CommWords &words,
                     DiagnosticEngine &diags) {
  SettingNames names("comm", diags);
  for (const ast::WordsItem *item : item.settings) {
    const ast::WordsItem &setting = *item;
    auto row = names.find(commNames, setting.name);
    if (!row)
      continue;
    CommValue takes = commValues[*row];
    names.once(setting.name.text, setting.name.range);
    if (setting.entries.size() > 1)
      diags.report<diag::WrongArgumentCount>(
          setting.name.range, setting.name.text, "1 value",
          fmt::format("{} are", setting.entries.size()));
    for (const ast::Entry &entry : setting.entries) {
      if (entry.count)
        diags.report<diag::ExpectedToken>(entry.count->range, "`;`");
      if (!entry.group.empty()) {
        diags.report<diag::ExpectedToken>(entry.text.range, "a word");
        continue;
      }
      checkValue(setting, entry.text, takes, words, diags);
    }
    for (const ast::Tail &tail : setting.tails)
      diags.report<diag::ExpectedToken>(tail.word.range, "`;`");
  }
}
