// Reads the actions that a program declares, and its costs, from text.
#pragma once

#include "TextReader.h"
#include "ppcc/Basic/Diagnostics/Sema.h"
#include "ppcc/Basic/Diagnostics/Simulation.h"

namespace ppcc {

class TextKinds : TextHead {
public:
  explicit TextKinds(const TextHead &head)
      : TextHead(head), declarations(head.head.kinds) {}

  /// Finds the actions that others name.
  void check() {
    declarations.resolve([&](StringRef name, SourceRange at) {
      in.diags.report<diag::IrUndefined>(at, "action",
                                         fmt::format("`{}`", name));
    });
  }

  /// `action REDUCE per stage lane grads after [B W] required`
  void action() {
    declarations.begin();
    SourceRange at;
    KindInfo info;
    info.mnemonic = in.takeWord(at).str();
    info.kindClass = KindClass::Declared;
    checkName(info.mnemonic, at);
    // Those that stand in the line of the key; one may go on in the next.
    while (in.ok() && in.inKeyLine() && property(info))
      in.skipSpace();
    if (in.ok() && checkCollective(info, in.keyRange(), in.diags))
      declarations.declare(std::move(info));
  }

private:
  void checkName(StringRef name, SourceRange at) {
    if (!canNameKind(name))
      in.refuse<diag::BadActionName>(at, name.take_front(40));
    else if (head.kinds.find(name))
      in.refuse<diag::IrDuplicate>(at, fmt::format("`{}`", name));
    else if (head.kinds.size() == KindTable::maxKinds)
      in.refuse<diag::TooManyKinds>(at, KindTable::maxKinds);
  }

  /// False when there is none.
  bool property(KindInfo &info) {
#define KIND(Name, Member)                                                     \
  if (in.acceptWord(Name))                                                     \
    return read(info, Member), true;
#include "ppcc/IR/KindProperties.def"
    return false;
  }

  void read(KindInfo &info, KindScope KindInfo::*scope) {
    info.*scope = in.word(findKindScope, "`microbatch`, `stage` or `rank`")
                      .value_or(info.*scope);
  }

  void read(KindInfo &info, uint8_t KindInfo::*lane) {
    StringRef name = in.name("the name of a lane");
    auto known = in.ok() ? head.kinds.lane(name) : std::nullopt;
    if (!known)
      in.refuse<diag::TooManyKinds>(in.range(name), KindTable::maxKinds);
    info.*lane = known.value_or(0);
  }

  void read(KindInfo &info, bool KindInfo::*flag) { info.*flag = true; }

  void read(KindInfo &info, uint32_t KindInfo::*count) {
    info.*count = in.number("a number of actions", UINT32_MAX);
  }

  void read(KindInfo &info, bool isBefore) {
    in.list([&] {
      SourceRange at;
      StringRef name = in.takeWord(at);
      if (name.empty())
        in.expected("the name of an action");
      declarations.name(info.rules.size(), name, at);
    });
    info.rules.push_back({isBefore, {}});
  }

  void read(KindInfo &, std::optional<KindId> KindInfo::*member) {
    SourceRange at;
    StringRef name = in.takeWord(at);
    declarations.name(member, name, at);
  }

  void read(KindInfo &info, Collective KindInfo::*) {
    StringRef word = in.peekWord();
    if (auto one = findCollective(word)) {
      in.take(word);
      info.collective = *one;
    } else if (in.acceptWord("outside")) {
      info.collective = Collective::Outside;
      info.outside = in.name("a name for the ranks of other programs").str();
    } else {
      info.collective = Collective::Stages;
      in.list([&] { // `0 -1`
        in.skipSpace();
        bool isNegative = in.acceptNext('-');
        auto stage = int32_t(in.number("a stage", Program::maxStages));
        info.stages.push_back(isNegative ? -stage : stage);
      });
    }
  }

  KindDeclarations declarations;
};

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
