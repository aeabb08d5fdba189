// Reads what a program says about time and memory, from text.
#include "TextCosts.h"

#include "llvm/ADT/STLExtras.h"

using namespace ppcc;
using llvm::StringRef;

// ---- Values ----

/// A decimal, negative only where that has a meaning.
std::optional<int64_t> TextCosts::decimal(decimal::Scale scale, bool isSigned) {
  StringRef word = text.peekWord();
  StringRef digits = word;
  bool isNegative = isSigned && digits.consume_front("-");
  std::optional<int64_t> value = decimal::parse(digits, scale);
  if (value)
    text.take(word);
  else if (scale.places == ppcc::cost::scale.places)
    diags.report<diag::IrNotACost>(text.here(), word.substr(0, 40));
  else
    diags.report<diag::IrNotAnAmount>(text.here(), word.substr(0, 40));
  return value && isNegative ? std::optional(-*value) : value;
}

std::optional<int64_t> TextCosts::factor() {
  StringRef word = text.peekWord();
  auto value = decimal::parse(word, scaling::decimals);
  if (value)
    text.take(word);
  else
    text.expected("a factor from 0 to 10^6");
  return value;
}

bool TextCosts::one(std::vector<int64_t> &values, Value value) {
  auto only = value();
  if (only)
    values.push_back(*only);
  return only.has_value();
}

/// What stands behind `[`.
bool TextCosts::list(size_t size, std::vector<int64_t> &values, Value value) {
  while (values.size() != size)
    if (!one(values, value))
      return false;
  return text.expect("]");
}

/// One value, for each stage or for each stage of a pipe; or a list, with one
/// for each stage of the pipe. A pipe may have no stages.
bool TextCosts::values(std::optional<PipeId> &pipe,
                       std::vector<int64_t> &values, Value value) {
  if (text.peek('"') && !(pipe = pipeName()))
    return false;
  if (pipe && text.accept("["))
    return list(program.pipes[pipe->value].numStages(), values, value);
  return one(values, value);
}

bool TextCosts::kindSetting(KindId kind, std::vector<CostSetting> &settings,
                            Value value) {
  CostSetting setting{kind, {}, {}};
  if (!values(setting.pipe, setting.times, value))
    return false;
  if (!setting.times.empty())
    settings.push_back(std::move(setting));
  return true;
}

bool TextCosts::stageSetting(std::vector<StageSetting> &settings, Value value) {
  StageSetting setting;
  if (!values(setting.pipe, setting.values, value))
    return false;
  if (!setting.values.empty())
    settings.push_back(std::move(setting));
  return true;
}

bool TextCosts::onlyCost(std::optional<Time> &cost, StringRef what) {
  if (cost)
    diags.report<diag::IrTwice>(text.keyRange(), what);
  cost = time();
  return cost.has_value();
}

// ---- Items ----

bool TextCosts::cost() {
  SourceRange at;
  StringRef word = text.takeWord(at);
  if (word == "overlap")
    return onlyCost(costs.overlap, "`cost overlap`");
  if (word.contains('.'))
    return nodeCost(word, at);
  auto kind = computeKind(word, at, ", or `overlap`");
  return kind && kindSetting(*kind, costs.actions, [&] { return time(); });
}

bool TextCosts::nodeCost(StringRef word, SourceRange at) {
  auto [letters, name] = word.split('.');
  auto part = computeKind(letters, at, " and the name of a node");
  auto value = part ? time() : std::nullopt;
  if (!value)
    return false;
  costs.nodes.push_back({*part, name.str(), *value});
  return true;
}

bool TextCosts::group() {
  SourceRange at;
  StringRef rule = text.takeWord(at);
  if (rule != "sum" && rule != "max") {
    diags.report<diag::IrExpected>(at, "`sum` or `max`");
    return false;
  }
  auto factor = time();
  costs.groupRule = rule == "max" ? GroupRule::Max : GroupRule::Sum;
  costs.groupFactor = factor.value_or(ppcc::cost::unit);
  return factor.has_value();
}

bool TextCosts::latency() {
  if (!text.peek('"'))
    return onlyCost(costs.latency, "`latency`");
  return stageSetting(costs.latencies, [&] { return time(); });
}

bool TextCosts::bandwidth() {
  return stageSetting(costs.bandwidths, [&]() -> std::optional<int64_t> {
    SourceRange at = text.here();
    auto value = amount();
    if (value != 0)
      return value;
    diags.report<diag::NoBandwidth>(at);
    return std::nullopt;
  });
}

bool TextCosts::bytes() {
  return stageSetting(costs.bytes, [&] { return amount(); });
}

bool TextCosts::memory() {
  SourceRange at;
  StringRef word = text.takeWord(at);
  if (word == "static")
    return stageSetting(costs.staticMemory, [&] { return amount(); });
  if (word == "limit")
    return limits();
  auto kind = computeKind(word, at, ", `static` or `limit`");
  return kind && kindSetting(*kind, costs.memory, [&] {
           return decimal(ppcc::amount::scale, /*isSigned=*/true);
         });
}

/// One limit, or a list with one for each rank.
bool TextCosts::limits() {
  std::vector<int64_t> &limits = costs.memoryLimits;
  limits.clear();
  limitsRange = text.keyRange();
  bool isList = text.accept("[");
  while (isList ? !text.accept("]") : limits.empty())
    if (!one(limits, [&] { return amount(); }))
      return false;
  return true;
}

bool TextCosts::scale() {
  SourceRange at;
  StringRef word = text.takeWord(at);
  MicrobatchScale scale;
  auto *known = llvm::find(scaling::names(), word);
  if (known != scaling::names().end()) {
    scale.of = MicrobatchScale::Of(known - scaling::names().begin());
  } else {
    scale.of = MicrobatchScale::Of::Time;
    scale.kind =
        computeKind(word, at, ", or " + llvm::join(scaling::names(), ", "));
    if (!scale.kind)
      return false;
  }
  auto value = [&] { return factor(); };
  bool good = text.accept("[")
                  ? list(program.totalMicrobatches(), scale.factors, value)
                  : one(scale.factors, value);
  if (good) {
    costs.scales.push_back(std::move(scale));
    scaleRanges.push_back(text.keyRange());
  }
  return good;
}

void TextCosts::check() {
  uint64_t total = program.totalMicrobatches();
  for (auto [scale, at] : llvm::zip(costs.scales, scaleRanges))
    if (scale.factors.size() != total)
      diags.report<diag::IrExpected>(
          at, fmt::format("a factor for each of {} microbatches", total));
  size_t limits = costs.memoryLimits.size();
  if (limits > 1 && limits != program.numRanks)
    diags.report<diag::CostCount>(limitsRange, "memory limit", limits,
                                  fmt::format("{} ranks", program.numRanks));
}
