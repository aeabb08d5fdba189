// Reads what a program says about time and memory, from text: items that stand
// behind the pipe and the action that they name.
#include "TextSection.h"
#include "ppcc/Basic/Diagnostics/IR.h"
#include "ppcc/Basic/Diagnostics/Simulation.h"

using namespace ppcc;

namespace {

class TextCosts : public TextSection {
public:
  explicit TextCosts(HeadText &in) : TextSection(in) {
    for (StringRef item : costItems())
      keys.push_back({item, [this, item] { setting(item); }});
  }

  /// Checks the lists that have a value for each rank or microbatch.
  void check() override {
    for (auto [number, at] : counted) {
      const CostSetting &setting = head.costs.settings[number];
      if (rowOf(setting.what).spread == CostSpread::Microbatches)
        checkCount(setting, head.totalMicrobatches(), "microbatches", at);
      else if (setting.values.size() != 1)
        checkCount(setting, head.numRanks, "ranks", at);
    }
  }

private:
  /// `cost F 1`, `cost F "main" [1 2]`, `cost F.mlp 0.5`, `latency link 0-1 2`,
  /// `limit 80`:
  /// see Costs.def.
  void setting(StringRef item) {
    std::vector<StringRef> subjects = costSubjects(item, head.kinds);
    SourceRange at;
    StringRef word = subjects.empty() ? "" : text.takeWord(at);
    auto setting = findCost(item, word, head.kinds);
    if (!setting)
      return expected(at, "one of " + llvm::join(subjects, ", "));
    const CostRow &row = rowOf(setting->what);
    bool isOfStages = row.isByStage();
    if (isOfStages && text.peek('"'))
      setting->pipe = pipeName();
    if (row.spread == CostSpread::Links && text.accept("link "))
      link(*setting);
    // One value; or a list, where it is known what the values are of.
    bool isList = row.spread != CostSpread::One &&
                  (!isOfStages || setting->pipe) && accept("[");
    if (!isList)
      value(row.number, setting->values);
    while (isList && going && !text.accept("]"))
      value(row.number, setting->values);
    if (going && isOfStages && isList) {
      const Pipe &pipe = head.pipes[setting->pipe->value];
      going = checkCount(*setting, pipe.numStages(),
                         fmt::format("stages in pipe `{}`", pipe.name),
                         text.keyRange());
    }
    if (!going || (setting->values.empty() && isOfStages))
      return;
    if (row.spread == CostSpread::Ranks ||
        row.spread == CostSpread::Microbatches)
      counted.push_back({head.costs.settings.size(), text.keyRange()});
    head.costs.settings.push_back(std::move(*setting));
  }

  /// `0-1`: from rank 0 to rank 1.
  void link(CostSetting &setting) {
    SourceRange at;
    auto [from, to] = text.takeWord(at).split('-');
    uint32_t ranks[2];
    if (from.getAsInteger(10, ranks[0]) || to.getAsInteger(10, ranks[1]))
      return expected(at, "two ranks, like `0-1`");
    for (uint32_t rank : ranks)
      if (head.numRanks != 0 && rank >= head.numRanks) {
        diags.report<diag::IrNoRank>(at, rank, head.numRanks);
        going = false;
        return;
      }
    setting.link = {RankId(ranks[0]), RankId(ranks[1])};
  }

  void value(const CostNumber &number, std::vector<int64_t> &values) {
    StringRef word = text.peekWord();
    auto value = number.parse(word);
    if (!value)
      return expected(number.words);
    text.take(word);
    values.push_back(*value);
  }

  bool checkCount(const CostSetting &setting, uint64_t expected,
                  std::string_view things, SourceRange at) {
    if (setting.values.size() == expected)
      return true;
    std::string subject = subjectOf(setting, head.kinds);
    return diags.report<diag::CostCount>(
        at,
        fmt::format("{}{}{}", rowOf(setting.what).item,
                    subject.empty() ? "" : " ", subject),
        setting.values.size(), fmt::format("{} {}", expected, things));
  }

  /// The settings whose lists are checked at the end, and their places.
  std::vector<std::pair<size_t, SourceRange>> counted;
};

} // namespace

std::unique_ptr<TextSection> ppcc::textCosts(HeadText &in) {
  return std::make_unique<TextCosts>(in);
}
