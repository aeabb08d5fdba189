// Reads the actions that a program declares, from text.
#include "TextSection.h"
#include "ppcc/Basic/Diagnostics/IR.h"
#include "ppcc/Basic/Diagnostics/Sema.h"

using namespace ppcc;

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
#define KIND(Name, Member)                                                     \
  if (text.acceptWord(Name))                                                   \
    return read(info, Member), true;
#include "ppcc/IR/KindProperties.def"
    return false;
  }

  void read(KindInfo &info, KindScope KindInfo::*scope) {
    StringRef word = text.peekWord();
    auto found = findKindScope(word);
    if (!found)
      return expected("`microbatch`, `stage` or `rank`");
    text.take(word);
    info.*scope = *found;
  }

  void read(KindInfo &info, uint8_t KindInfo::*lane) {
    StringRef name = this->name("the name of a lane");
    auto known = going ? head.kinds.lane(name) : std::nullopt;
    if (!known)
      refuse<diag::TooManyKinds>(text.range(name), KindTable::maxKinds);
    info.*lane = known.value_or(0);
  }

  void read(KindInfo &info, bool KindInfo::*flag) { info.*flag = true; }

  void read(KindInfo &info, uint32_t KindInfo::*count) {
    info.*count = number("a number of actions", UINT32_MAX);
  }

  void read(KindInfo &info, bool isBefore) {
    list([&] {
      SourceRange at;
      StringRef name = text.takeWord(at);
      if (name.empty())
        return expected("the name of an action");
      declarations.name(info.rules.size(), name, at);
    });
    info.rules.push_back({isBefore, {}});
  }

  void read(KindInfo &, std::optional<KindId> KindInfo::*member) {
    SourceRange at;
    StringRef name = text.takeWord(at);
    declarations.name(member, name, at);
  }

  void read(KindInfo &info, Meeting KindInfo::*) {
    StringRef word = text.peekWord();
    if (auto one = findMeeting(word)) {
      text.take(word);
      info.meeting = *one;
    } else if (text.acceptWord("outside")) {
      info.meeting = Meeting::Outside;
      info.outside = name("a name for the ranks of other programs").str();
    } else {
      info.meeting = Meeting::Stages;
      list([&] { // `0 -1`
        text.skipSpace();
        bool isNegative = text.acceptNext('-');
        auto stage = int32_t(number("a stage", Program::maxStages));
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
