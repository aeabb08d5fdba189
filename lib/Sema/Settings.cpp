// Checks the settings of `comm { }`.
#include "Checks.h"

#include "ppcc/Basic/Diagnostics/Syntax.h"

using namespace ppcc;
using namespace ppcc::sema;

namespace {

enum class CommValue : uint8_t { Order, Fusion, Calls, Count, Switch };

constexpr StringRef switchWords[] = {"auto", "on", "off"};

/// The settings of `comm { }`. Those of models and clusters are in
/// ppcc/IR/Costs.def, and in SectionCheck.cpp what else these hold.
constexpr struct {
  StringRef name;
  CommValue takes;
} commRows[] = {
    {"order", CommValue::Order},
    {"fuse", CommValue::Fusion},
    {"calls", CommValue::Calls},
    {"prefetch", CommValue::Count}, // Receives posted ahead, an edge.
    {"preconnect", CommValue::Switch},
};

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
    auto row = names.find(namesIn(commRows, [](auto &row) { return row.name; }),
                          setting.name);
    if (!row)
      continue;
    CommValue takes = commRows[*row].takes;
    ArrayRef<StringRef> allowed =
        takes == CommValue::Order    ? ArrayRef(words.orders)
        : takes == CommValue::Switch ? ArrayRef(switchWords)
        : takes == CommValue::Calls  ? ArrayRef(words.calls)
                                     : ArrayRef(words.fusions);
    bool isCount = takes == CommValue::Count;
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
      StringRef value = entry.text.text;
      uint32_t number;
      bool isGood = isCount ? !value.getAsInteger(10, number) && number != 0
                            : llvm::is_contained(allowed, value);
      if (!isGood && isCount)
        diags.report<diag::BadSettingValue>(
            entry.text.range, setting.name.text, value,
            "; it takes a number of at least 1");
      else if (!isGood)
        diags.report<diag::BadSettingValue>(entry.text.range, setting.name.text,
                                            value, didYouMean(value, allowed));
    }
    for (const ast::Tail &tail : setting.tails)
      diags.report<diag::ExpectedToken>(tail.word.range, "`;`");
  }
}
