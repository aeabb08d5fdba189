// Reads what a program says about time and memory, from text.
#include "TextCosts.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace ppcc;
using llvm::StringRef;

bool TextCosts::setting(StringRef item) {
  auto setting = subject(item);
  if (!setting)
    return false;
  CostSpread spread = rowOf(setting->what).spread;
  if (spread == CostSpread::Stages && text.peek('"') &&
      !(setting->pipe = pipeName()))
    return false;
  bool isList = false;
  if (!values(*setting, isList))
    return false;
  if (setting->pipe && isList) {
    const Pipe &pipe = program.pipes[setting->pipe->value];
    if (!checkCount(*setting, pipe.numStages(),
                    fmt::format("stages in pipe `{}`", pipe.name),
                    text.keyRange()))
      return false;
    if (setting->values.empty())
      return true;
  }
  if (spread == CostSpread::Ranks || spread == CostSpread::Microbatches)
    counted.push_back({program.costs.settings.size(), text.keyRange()});
  program.costs.settings.push_back(std::move(*setting));
  return true;
}

std::optional<CostSetting> TextCosts::subject(StringRef item) {
  std::vector<StringRef> subjects = costSubjects(item, program.kinds);
  SourceRange at;
  StringRef word = subjects.empty() ? "" : text.takeWord(at);
  auto found = findCost(item, word, program.kinds);
  if (!found)
    diags.report<diag::IrExpected>(at, "one of " + llvm::join(subjects, ", "));
  return found;
}

bool TextCosts::one(const CostNumber &number, std::vector<int64_t> &values) {
  StringRef word = text.peekWord();
  auto value = number.parse(word);
  if (!value)
    return text.expected(number.words);
  text.take(word);
  values.push_back(*value);
  return true;
}

/// One value; or a list, where it is known what the values are of.
bool TextCosts::values(CostSetting &setting, bool &isList) {
  const CostRow &row = rowOf(setting.what);
  bool mayBeList = row.spread == CostSpread::Stages
                       ? setting.pipe.has_value()
                       : row.spread != CostSpread::One;
  isList = mayBeList && text.accept("[");
  if (!isList)
    return one(row.number, setting.values);
  while (!text.accept("]"))
    if (!one(row.number, setting.values))
      return false;
  return true;
}

bool TextCosts::checkCount(const CostSetting &setting, uint64_t expected,
                           std::string_view things, SourceRange at) {
  if (setting.values.size() == expected)
    return true;
  std::string subject = subjectOf(setting, program.kinds);
  diags.report<diag::CostCount>(
      at,
      fmt::format("{}{}{}", rowOf(setting.what).item,
                  subject.empty() ? "" : " ", subject),
      setting.values.size(), fmt::format("{} {}", expected, things));
  return false;
}

void TextCosts::check() {
  for (auto [number, at] : counted) {
    const CostSetting &setting = program.costs.settings[number];
    if (rowOf(setting.what).spread == CostSpread::Microbatches)
      checkCount(setting, program.totalMicrobatches(), "microbatches", at);
    else if (setting.values.size() != 1)
      checkCount(setting, program.numRanks, "ranks", at);
  }
}
