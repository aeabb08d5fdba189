// Reads the actions that a program declares, from text.
#pragma once

#include "TextHead.h"
#include "ppcc/Basic/Diagnostics/Sema.h"

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

} // namespace ppcc
