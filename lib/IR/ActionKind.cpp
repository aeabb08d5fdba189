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

StringRef ppcc::meetingName(Meeting meeting) {
  static constexpr StringRef names[] = {"",        "all", "replicas", "stages",
                                        "outside", "to",  "from"};
  return names[size_t(meeting)];
}

bool KindInfo::canMeet() const {
  switch (meeting) {
  case Meeting::All:
    return scope != KindScope::Microbatch;
  case Meeting::Replicas:
    return scope == KindScope::Stage;
  case Meeting::Stages:
  case Meeting::To:
  case Meeting::From:
    return scope != KindScope::Rank;
  case Meeting::None:
  case Meeting::Outside:
    return true;
  }
  return true;
}

static KindInfo row(StringRef letters, KindClass kindClass, uint8_t defines,
                    uint8_t needs) {
  KindInfo info;
  info.letters = letters.str();
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
#undef KIND
      },
      numBuiltIn(kinds.size()) {
}

std::optional<KindId> KindTable::find(StringRef letters) const {
  for (KindId id : ids())
    if (letters == kinds[id.value].letters)
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

bool KindTable::hasBeside() const {
  return llvm::any_of(declaredRows(), std::mem_fn(&KindInfo::isBeside));
}

std::vector<StringRef> KindTable::computeLetters() const {
  std::vector<StringRef> letters;
  for (const KindInfo &info : kinds)
    if (info.isCompute())
      letters.push_back(info.letters);
  return letters;
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
      result.leftOut.push_back(info.letters);
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
