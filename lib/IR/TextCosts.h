// Reads what a program says about time and memory, from text: items that stand
// after the pipe and the action that they name.
#pragma once

#include "TextHead.h"
#include "ppcc/Basic/Diagnostics/Simulation.h"

namespace ppcc {

class TextCosts : TextHead {
public:
  explicit TextCosts(const TextHead &head) : TextHead(head) {}

  /// Checks the lists that have a value for each rank or microbatch.
  void check() {
    for (auto [number, at] : counted) {
      const CostSetting &setting = head.costs.settings[number];
      if (rowOf(setting.what).granularity == CostGranularity::Microbatches)
        checkCount(setting, head.totalMicrobatches(), "microbatches", at);
      else if (setting.values.size() != 1)
        checkCount(setting, head.numRanks, "ranks", at);
    }
  }

  /// `cost F 1`, `cost F "main" [1 2]`, `cost F.mlp 0.5`, `latency link 0-1 2`,
  /// `limit 80`: see Costs.def.
  void setting(StringRef item) {
    std::vector<StringRef> subjects = costSubjects(item, head.kinds);
    SourceRange at;
    StringRef word = subjects.empty() ? "" : in.takeWord(at);
    auto setting = findCost(item, word, head.kinds);
    if (!setting) {
      in.expected(at, "one of " + llvm::join(subjects, ", "));
      return;
    }
    const CostRow &row = rowOf(setting->what);
    if (row.isByStage() && in.peek('"'))
      setting->pipe = pipeName();
    if (row.granularity == CostGranularity::Links && in.accept("link "))
      link(*setting);
    values(*setting, row);
    if (!in.ok() || (setting->values.empty() && row.isByStage()))
      return;
    if (row.granularity == CostGranularity::Ranks ||
        row.granularity == CostGranularity::Microbatches)
      counted.push_back({head.costs.settings.size(), in.keyRange()});
    head.costs.settings.push_back(std::move(*setting));
  }

private:
  /// `0-1`: from rank 0 to rank 1.
  void link(CostSetting &setting) {
    SourceRange at;
    auto [from, to] = in.takeWord(at).split('-');
    uint32_t ranks[2] = {};
    if (from.getAsInteger(10, ranks[0]) || to.getAsInteger(10, ranks[1]) ||
        ranks[0] == ranks[1])
      in.expected(at, "two ranks, like `0-1`");
    for (uint32_t rank : ranks)
      if (head.numRanks != 0 && rank >= head.numRanks)
        in.refuse<diag::IrNoRank>(at, rank, head.numRanks);
    setting.link = {RankId(ranks[0]), RankId(ranks[1])};
  }

  /// One value; or a list, where it is known what the values are of.
  void values(CostSetting &setting, const CostRow &row) {
    auto value = [&] { setting.values.push_back(in.cost(row.number)); };
    if (row.granularity == CostGranularity::One ||
        (row.isByStage() && !setting.pipe) || !in.peek('['))
      return value();
    in.list(value);
    if (!in.ok() || !setting.pipe)
      return;
    const Pipe &pipe = head.pipes[setting.pipe->value];
    checkCount(setting, pipe.numStages(),
               fmt::format("stages in pipe `{}`", pipe.name), in.keyRange());
  }

  void checkCount(const CostSetting &setting, uint64_t expected,
                  std::string_view things, SourceRange at) {
    if (setting.values.size() == expected)
      return;
    in.recover(); // At the end all items are checked.
    std::string subject = subjectOf(setting, head.kinds);
    in.refuse<diag::CostCount>(at,
                               fmt::format("{}{}{}", rowOf(setting.what).item,
                                           subject.empty() ? "" : " ", subject),
                               setting.values.size(),
                               fmt::format("{} {}", expected, things));
  }

  /// The settings whose lists are checked at the end, and their places.
  std::vector<std::pair<size_t, SourceRange>> counted;
};

} // namespace ppcc
