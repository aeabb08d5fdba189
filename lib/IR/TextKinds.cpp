// Reads the actions that a program declares, from text.
#include "TextKinds.h"

#include "llvm/ADT/STLExtras.h"

using namespace ppcc;
using llvm::StringRef;

bool TextKinds::action() {
  declarations.begin();
  SourceRange at;
  StringRef name = text.takeWord(at);
  if (!isNewName(name, at))
    return false;
  KindInfo info;
  info.letters = name.str();
  info.kindClass = KindClass::Declared;
  if (!properties(info) || !checkMeeting(info, text.keyRange(), diags))
    return false;
  declarations.declare(std::move(info));
  return true;
}

bool TextKinds::isNewName(StringRef name, SourceRange at) {
  if (!canNameKind(name)) {
    diags.report<diag::BadActionName>(at, name.take_front(40));
    return false;
  }
  if (program.kinds.find(name)) {
    diags.report<diag::IrTwice>(at, fmt::format("`{}`", name));
    return false;
  }
  if (program.kinds.size() == KindTable::maxKinds) {
    diags.report<diag::TooManyKinds>(at, KindTable::maxKinds);
    return false;
  }
  return true;
}

/// Those that stand in the line of the key; one may go on in the next.
bool TextKinds::properties(KindInfo &info) {
  bool isKnown = true;
  while (text.inKeyLine()) {
    if (!property(info, isKnown))
      return false;
    if (!isKnown)
      break;
    text.skipSpace();
  }
  return true;
}

bool TextKinds::property(KindInfo &info, bool &isKnown) {
#define KIND_SCOPE(Name, Member)                                               \
  if (text.acceptWord(Name))                                                   \
    return scope(info.Member);
#define KIND_LANE(Name, Member)                                                \
  if (text.acceptWord(Name))                                                   \
    return lane(info.Member);
#define KIND_RULE(Name, IsBefore)                                              \
  if (text.acceptWord(Name))                                                   \
    return rule(info, IsBefore);
#define KIND_FLAG(Name, Member)                                                \
  if (text.acceptWord(Name))                                                   \
    return info.Member = true;
#define KIND_KIND(Name, Member)                                                \
  if (text.acceptWord(Name))                                                   \
    return kind(&KindInfo::Member);
#define KIND_COUNT(Name, Member)                                               \
  if (text.acceptWord(Name))                                                   \
    return count(info.Member);
#define KIND_MEETING(Name, Member)                                             \
  if (text.acceptWord(Name))                                                   \
    return meeting(info);
#include "ppcc/IR/KindProperties.def"
  isKnown = false;
  return true;
}

bool TextKinds::scope(KindScope &scope) {
  auto found = llvm::find(kindScopeNames(), text.peekWord());
  if (found == kindScopeNames().end())
    return text.expected("`microbatch`, `stage` or `rank`");
  text.take(*found);
  scope = static_cast<KindScope>(found - kindScopeNames().begin());
  return true;
}

bool TextKinds::lane(uint8_t &lane) {
  auto name = takeName("the name of a lane");
  if (!name)
    return false;
  auto known = program.kinds.lane(*name);
  if (!known)
    diags.report<diag::TooManyKinds>(text.range(*name), KindTable::maxKinds);
  lane = known.value_or(0);
  return known.has_value();
}

bool TextKinds::rule(KindInfo &info, bool isBefore) {
  if (!text.expect("["))
    return false;
  while (!text.accept("]")) {
    SourceRange at;
    StringRef name = text.takeWord(at);
    if (name.empty())
      return text.expected("the name of an action");
    declarations.name(info.rules.size(), name, at);
  }
  info.rules.push_back({isBefore, {}});
  return true;
}

bool TextKinds::kind(std::optional<KindId> KindInfo::*member) {
  SourceRange at;
  StringRef name = text.takeWord(at);
  declarations.name(member, name, at);
  return true;
}

bool TextKinds::count(uint32_t &count) {
  auto number = text.number("a number of actions", UINT32_MAX);
  count = number.value_or(0);
  return number.has_value();
}

bool TextKinds::meeting(KindInfo &info) {
  if (text.acceptWord("all")) {
    info.meeting = Meeting::All;
  } else if (text.acceptWord("replicas")) {
    info.meeting = Meeting::Replicas;
  } else if (text.acceptWord("outside")) {
    auto name = takeName("a name for the ranks of other programs");
    info.meeting = Meeting::Outside;
    info.outside = name.value_or("").str();
    return name.has_value();
  } else {
    return meetingStages(info);
  }
  return true;
}

/// `[0 -1]`
bool TextKinds::meetingStages(KindInfo &info) {
  if (!text.expect("["))
    return false;
  info.meeting = Meeting::Stages;
  while (!text.accept("]")) {
    text.skipSpace();
    bool isNegative = text.acceptNext('-');
    auto stage = text.number("a stage", Program::maxStages);
    if (!stage)
      return false;
    info.stages.push_back(isNegative ? -int32_t(*stage) : int32_t(*stage));
  }
  return true;
}

void TextKinds::resolve() {
  declarations.resolve([&](StringRef name, SourceRange at) {
    diags.report<diag::IrNoEntry>(at, "action", fmt::format("`{}`", name));
  });
}
