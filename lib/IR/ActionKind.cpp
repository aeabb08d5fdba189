#include "ppcc/IR/ActionKind.h"

using namespace ppcc;
using llvm::StringRef;

StringRef ppcc::kindClassName(KindClass kindClass) {
  switch (kindClass) {
  case KindClass::Compute:
    return "compute";
  case KindClass::Send:
    return "send";
  case KindClass::Recv:
    return "recv";
  }
  return "";
}

KindTable::KindTable()
    : kinds{
#define KIND(Name, Letters, Class, Defines, Needs)                             \
  {Letters, KindClass::Class, Defines, Needs},
#include "ppcc/IR/ActionKind.def"
#undef KIND
      } {
}

std::optional<KindId> KindTable::find(StringRef letters) const {
  for (size_t i = 0; i != kinds.size(); ++i)
    if (letters == kinds[i].letters)
      return KindId(i);
  return std::nullopt;
}

std::optional<KindId> KindTable::find(KindClass kindClass,
                                      uint8_t defines) const {
  for (size_t i = 0; i != kinds.size(); ++i)
    if (kinds[i].kindClass == kindClass && kinds[i].defines == defines)
      return KindId(i);
  return std::nullopt;
}

std::optional<KindId> KindTable::without(KindId whole, KindId part) const {
  uint8_t all = kinds[whole.value].defines, some = kinds[part.value].defines;
  if ((all & some) != some || all == some)
    return std::nullopt;
  return find(kinds[whole.value].kindClass, all & ~some);
}
