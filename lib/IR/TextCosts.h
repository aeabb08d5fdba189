// Reads what a program says about time and memory, from text.
#pragma once

#include "TextSection.h"

namespace ppcc {

/// Reads the items that fill the cost model, each behind the pipe that it
/// names.
class TextCosts : TextSection {
public:
  TextCosts(TextCursor &text, Head &program, DiagnosticEngine &diags)
      : TextSection(text, program, diags), costs(program.costs) {}

  /// `cost F 1`, `cost F "main" [1 2]`, `cost F.mlp 0.5` or `cost overlap 2.5`
  bool cost();
  /// `group max 1.1`
  bool group();
  /// `latency 0.1` or `latency "main" [0.1 0.2]`
  bool latency();
  /// `bandwidth 100`
  bool bandwidth();
  /// `bytes 4`
  bool bytes();
  /// `memory F 2`, `memory static 10` or `memory limit 80`
  bool memory();
  /// `scale memory [1 2 0.5]`
  bool scale();
  /// Checks the lists that have a value for each rank or microbatch.
  void check();

private:
  /// Takes one value; nothing, and a report, when there is none.
  using Value = llvm::function_ref<std::optional<int64_t>()>;

  std::optional<Time> time() { return decimal(ppcc::cost::scale); }
  std::optional<Amount> amount() { return decimal(ppcc::amount::scale); }
  std::optional<int64_t> decimal(decimal::Scale scale, bool isSigned = false);
  std::optional<int64_t> factor();
  bool one(std::vector<int64_t> &values, Value value);
  bool list(size_t size, std::vector<int64_t> &values, Value value);
  bool values(std::optional<PipeId> &pipe, std::vector<int64_t> &values,
              Value value);
  bool kindSetting(KindId kind, std::vector<CostSetting> &settings,
                   Value value);
  bool stageSetting(std::vector<StageSetting> &settings, Value value);
  bool onlyCost(std::optional<Time> &cost, llvm::StringRef what);
  bool nodeCost(llvm::StringRef word, SourceRange at);
  bool limits();

  CostModel &costs;
  SourceRange limitsRange;
  std::vector<SourceRange> scaleRanges;
};

} // namespace ppcc
