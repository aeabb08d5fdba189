#include "ppcc/IR/ActionKind.h"

using namespace ppcc;

StringRef ppcc::kindClassName(KindClass kindClass) {
  static constexpr StringRef names[] = {"compute", "send", "recv", "declared"};
  return names[size_t(kindClass)];
}

ArrayRef<StringRef> ppcc::kindScopeNames() {
  static constexpr StringRef names[] = {"microbatch", "stage", "rank"};
  return names;
}

StringRef ppcc::collectiveName(Collective collective) {
  static constexpr StringRef names[] = {"",        "all", "replicas", "stages",
                                        "outside", "to",  "from"};
  return names[size_t(collective)];
}

bool KindInfo::isValidCollective() const {
  switch (collective) {
  case Collective::All:
    return scope != KindScope::Microbatch;
  case Collective::Replicas:
    return scope == KindScope::Stage;
  case Collective::Stages:
  case Collective::To:
  case Collective::From:
    return scope != KindScope::Rank;
  case Collective::None:
  case Collective::Outside:
    return true;
  }
  return true;
}

static KindInfo row(StringRef mnemonic, KindClass kindClass, uint8_t defines,
                    uint8_t needs) {
  KindInfo info;
  info.mnemonic = mnemonic.str();
  info.kindClass = kindClass;
  info.defines = defines;
  info.needs = needs;
  return info;
}

KindTable::KindTable()
    : kinds{
#define KIND(Name, Letters, Class, Defines, Needs)                             \
  row(Letters, KindClass::Class, Defines, Needs),
#include "ppcc/IR/ActionKind.def"
      },
      numBuiltIn(kinds.size()) {
}

std::optional<KindId> KindTable::find(StringRef mnemonic) const {
  for (KindId id : ids())
    if (mnemonic == kinds[id.value].mnemonic)
      return id;
  return std::nullopt;
}

std::optional<KindId> KindTable::find(KindClass kindClass,
                                      uint8_t defines) const {
  for (KindId id : ids())
    if (kinds[id.value].kindClass == kindClass &&
        kinds[id.value].defines == defines)
      return id;
  return std::nullopt;
}

std::optional<KindId> KindTable::without(KindId whole, KindId part) const {
  uint8_t all = kinds[whole.value].defines, some = kinds[part.value].defines;
  if ((all & some) != some || all == some)
    return std::nullopt;
  return find(kinds[whole.value].kindClass, all & ~some);
}

std::optional<uint8_t> KindTable::lane(StringRef name) {
  size_t number = llvm::find(laneNames, name) - laneNames.begin();
  if (number == maxKinds)
    return std::nullopt;
  if (number == laneNames.size())
    laneNames.push_back(name.str());
  return uint8_t(number);
}

bool KindTable::hasAsync() const {
  return llvm::any_of(declaredRows(), std::mem_fn(&KindInfo::isAsync));
}

std::vector<StringRef> KindTable::computeMnemonics() const {
  std::vector<StringRef> mnemonic;
  for (const KindInfo &info : kinds)
    if (info.isCompute())
      mnemonic.push_back(info.mnemonic);
  return mnemonic;
}

KindTable KindTable::pruned(BitVector keeps,
                            std::vector<KindId> &renumbered) const {
  keeps.set(0, numBuiltIn);
  auto forEachNamed = [](auto &info, auto visit) {
    for (auto &rule : info.rules)
      for (auto &kind : rule.kinds)
        visit(kind);
    if (info.restores)
      visit(*info.restores);
  };
  SmallVector<uint32_t> work;
  for (unsigned kind : keeps.set_bits())
    work.push_back(kind);
  while (!work.empty())
    forEachNamed(kinds[work.pop_back_val()], [&](KindId named) {
      if (keeps.test(named.value))
        return;
      keeps.set(named.value);
      work.push_back(named.value);
    });
  KindTable result;
  for (const KindInfo &info : declaredRows())
    if (size_t kind = &info - kinds.data();
        !keeps.test(kind) && info.isCompute())
      result.prunedMnemonics.push_back(info.mnemonic);
  renumbered.assign(kinds.size(), KindId());
  for (unsigned kind : keeps.set_bits()) {
    if (kind < numBuiltIn) {
      renumbered[kind] = KindId(kind);
      continue;
    }
    KindInfo info = kinds[kind];
    info.lane = *result.lane(laneNames[info.lane]);
    renumbered[kind] = result.declare(std::move(info));
  }
  for (size_t kind = numBuiltIn; kind != result.kinds.size(); ++kind)
    forEachNamed(result.kinds[kind],
                 [&](KindId &named) { named = renumbered[named.value]; });
  return result;
}
