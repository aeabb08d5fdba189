// Reads the actions that a program declares, from text.
#include "TextSection.h"
#include "ppcc/Basic/Diagnostics/IR.h"
#include "ppcc/Basic/Diagnostics/Sema.h"

#include "llvm/ADT/STLExtras.h"

using namespace ppcc;
using llvm::StringRef;

namespace {

class TextKinds : public TextSection {
public:
  explicit TextKinds(HeadText &in)
      : TextSection(in), declarations(in.head.kinds) {
    keys = {{"action", [this] { action(); }}};
  }

  /// Finds the actions that others name.
  void check() override {
    declarations.resolve([&](StringRef name, SourceRange at) {
      diags.report<diag::IrNoEntry>(at, "action", fmt::format("`{}`", name));
    });
  }

private:
  /// `action REDUCE per stage lane grads after [B W] required`
  void action() {
    declarations.begin();
    SourceRange at;
    KindInfo info;
    info.letters = text.takeWord(at).str();
    info.kindClass = KindClass::Declared;
    checkName(info.letters, at);
    // Those that stand in the line of the key; one may go on in the next.
    while (going && text.inKeyLine() && property(info))
      text.skipSpace();
    going = going && checkMeeting(info, text.keyRange(), diags);
    if (going)
      declarations.declare(std::move(info));
  }

  void checkName(StringRef name, SourceRange at) {
    if (!canNameKind(name))
      refuse<diag::BadActionName>(at, name.take_front(40));
    else if (head.kinds.find(name))
      refuse<diag::IrTwice>(at, fmt::format("`{}`", name));
    else if (head.kinds.size() == KindTable::maxKinds)
      refuse<diag::TooManyKinds>(at, KindTable::maxKinds);
  }

  /// False when there is none.
  bool property(KindInfo &info) {
#define KIND_SCOPE(Name, Member)                                               \
  if (text.acceptWord(Name))                                                   \
    return scope(info.Member), true;
#define KIND_LANE(Name, Member)                                                \
  if (text.acceptWord(Name))                                                   \
    return lane(info.Member), true;
#define KIND_RULE(Name, IsBefore)                                              \
  if (text.acceptWord(Name))                                                   \
    return rule(info, IsBefore), true;
#define KIND_FLAG(Name, Member)                                                \
  if (text.acceptWord(Name))                                                   \
    return info.Member = true;
#define KIND_KIND(Name, Member)                                                \
  if (text.acceptWord(Name))                                                   \
    return kind(&KindInfo::Member), true;
#define KIND_COUNT(Name, Member)                                               \
  if (text.acceptWord(Name))                                                   \
    return info.Member = number("a number of actions", UINT32_MAX), true;
#define KIND_MEETING(Name, Member)                                             \
  if (text.acceptWord(Name))                                                   \
    return meeting(info), true;
#include "ppcc/IR/KindProperties.def"
    return false;
  }

  void scope(KindScope &scope) {
    auto found = llvm::find(kindScopeNames(), text.peekWord());
    if (found == kindScopeNames().end())
      return expected("`microbatch`, `stage` or `rank`");
    text.take(*found);
    scope = static_cast<KindScope>(found - kindScopeNames().begin());
  }

  void lane(uint8_t &lane) {
    StringRef name = this->name("the name of a lane");
    auto known = going ? head.kinds.lane(name) : std::nullopt;
    if (!known)
      refuse<diag::TooManyKinds>(text.range(name), KindTable::maxKinds);
    lane = known.value_or(0);
  }

  void rule(KindInfo &info, bool isBefore) {
    list([&] {
      SourceRange at;
      StringRef name = text.takeWord(at);
      if (name.empty())
        return expected("the name of an action");
      declarations.name(info.rules.size(), name, at);
    });
    info.rules.push_back({isBefore, {}});
  }

  void kind(std::optional<KindId> KindInfo::*member) {
    SourceRange at;
    StringRef name = text.takeWord(at);
    declarations.name(member, name, at);
  }

  void meeting(KindInfo &info) {
    if (text.acceptWord("all")) {
      info.meeting = Meeting::All;
    } else if (text.acceptWord("replicas")) {
      info.meeting = Meeting::Replicas;
    } else if (text.acceptWord("to")) {
      info.meeting = Meeting::To;
    } else if (text.acceptWord("from")) {
      info.meeting = Meeting::From;
    } else if (text.acceptWord("outside")) {
      info.meeting = Meeting::Outside;
      info.outside = name("a name for the ranks of other programs").str();
    } else {
      info.meeting = Meeting::Stages;
      list([&] { // `0 -1`
        text.skipSpace();
        bool isNegative = text.acceptNext('-');
        auto stage =
            static_cast<int32_t>(number("a stage", Program::maxStages));
        info.stages.push_back(isNegative ? -stage : stage);
      });
    }
  }

  KindDeclarations declarations;
};

} // namespace

std::unique_ptr<TextSection> ppcc::textKinds(HeadText &in) {
  return std::make_unique<TextKinds>(in);
}
