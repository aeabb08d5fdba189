#include "ppcc/IR/Transport.h"

using namespace ppcc;

static constexpr TransportInfo table[] = {
#define TRANSPORT(Name, Layout, Wait, Summary, Runtimes)                       \
  {Name, QueueLayout::Layout, SendWait::Wait, Summary, Runtimes},
#include "ppcc/IR/Transports.def"
};

/// `|buffered|buffered:k`.
static constexpr char nameList[] =
#define TRANSPORT(Name, Layout, Wait, Summary, Runtimes) "|" Name
#include "ppcc/IR/Transports.def"
    ;

SmallVector<StringRef> ppcc::transportNames() {
  SmallVector<StringRef> names;
  for (const TransportInfo &info : table)
    if (info.sendWait != SendWait::Capacity)
      names.push_back(info.name);
  return names;
}

std::string ppcc::transportsOf(StringRef runtime) {
  std::vector<std::string> found;
  for (const TransportInfo &info : table)
    if (runtime.size() > 2 && info.runtimes.contains_insensitive(runtime))
      found.push_back(fmt::format("`{}` ({})", info.name, info.runtimes));
  return llvm::join(found, ", ");
}

StringRef ppcc::transportNameList() { return nameList + 1; }

/// The number after the colon of `name`, which a row that takes a capacity
/// asks for; nothing for any other text.
static std::optional<uint32_t> capacityIn(StringRef name, StringRef rowName) {
  uint32_t capacity = 0;
  StringRef digits = name;
  if (!digits.consume_front(rowName.drop_back()) || digits.starts_with("0") ||
      !llvm::all_of(digits, llvm::isDigit) || digits.getAsInteger(10, capacity))
    return std::nullopt;
  return capacity;
}

std::optional<Transport> ppcc::findTransport(StringRef name) {
  for (const TransportInfo &info : table) {
    uint32_t capacity = 0;
    if (info.sendWait == SendWait::Capacity) {
      auto given = capacityIn(name, info.name);
      if (!given)
        continue;
      capacity = *given;
    } else if (info.name != name) {
      continue;
    }
    return Transport{name.str(), info.layout, info.sendWait, capacity,
                     info.runtimes};
  }
  return std::nullopt;
}
