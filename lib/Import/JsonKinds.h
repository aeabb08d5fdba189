// Reads the table of kinds of a program from JSON.
#pragma once

#include "JsonReader.h"
#include "ppcc/Basic/Diagnostics/Sema.h"
#include "ppcc/IR/HeadChecks.h"

namespace ppcc {

/// Reads the key `kinds` of docs/program-format.md.
class JsonKinds {
public:
  JsonKinds(JsonReader &json, Head &head)
      : json(json), head(head), declarations(head.kinds) {}

  /// Takes one kind.
  void read() {
    KindInfo info;
    std::string kindClass;
    declarations.begin();
    size_t errorsBefore = json.diags.errorCount();
    json.object("a kind", {
                              json.textField("mnemonic", info.mnemonic),
                              json.textField("class", kindClass),
#define KIND(Name, Member)                                                     \
  {Name, [&] { read(Name, info, Member); }, /*isOptional=*/true},
#include "ppcc/IR/KindProperties.def"
                          });
    if (json.diags.errorCount() != errorsBefore)
      return;
    if (kindClass == kindClassName(KindClass::Declared))
      declare(std::move(info));
    else
      addBuiltIn(info, kindClass);
  }

  /// Finds the kinds that others name, when all have been read.
  void resolve() {
    declarations.resolve([&](StringRef name, SourceRange at) {
      json.diags.report<diag::UnknownKind>(at, name, "");
    });
  }

  /// Those of any program, for a text that lists none.
  void takeBuiltIn() { llvm::append_range(kinds, head.kinds.ids()); }

  /// The kinds by the file's numbers.
  ArrayRef<KindId> numbers() const { return kinds; }

private:
  void read(StringRef key, KindInfo &info, KindScope KindInfo::*scope) {
    info.*scope =
        json.word(key, findKindScope, "\"microbatch\", \"stage\" or \"rank\"")
            .value_or(info.*scope);
  }

  void read(StringRef key, KindInfo &info, uint8_t KindInfo::*lane) {
    auto find = [&](StringRef name) {
      return isIdentifier(name) ? head.kinds.lane(name) : std::nullopt;
    };
    info.*lane = json.word(key, find,
                           fmt::format("a word, the name of one of at most {} "
                                       "lanes",
                                       KindTable::maxKinds))
                     .value_or(info.*lane);
  }

  void read(StringRef key, KindInfo &info, bool isBefore) {
    json.list(key, [&] {
      size_t rule = info.rules.size();
      info.rules.push_back({isBefore, {}});
      json.list(key, [&] {
        std::string name = json.string(key);
        declarations.name(rule, name, json.lastPlace());
      });
    });
  }

  void read(StringRef key, KindInfo &info, bool KindInfo::*flag) {
    info.*flag = json.boolean(key, /*otherwise=*/false);
  }

  void read(StringRef key, KindInfo &, std::optional<KindId> KindInfo::*kind) {
    std::string name = json.string(key);
    declarations.name(kind, name, json.lastPlace());
  }

  void read(StringRef key, KindInfo &info, uint32_t KindInfo::*count) {
    info.*count = uint32_t(json.number(key, 1, UINT32_MAX));
  }

  void read(StringRef key, KindInfo &info, Collective KindInfo::*) {
    if (json.peek() == '[') {
      info.collective = Collective::Stages;
      constexpr int64_t maxStage = Program::maxStages;
      return json.list(key, [&] {
        info.stages.push_back(json.number(key, -maxStage, maxStage));
      });
    }
    std::string text = json.string(key);
    StringRef name = text;
    bool isOutside = name.consume_front("outside ");
    if (isOutside && isIdentifier(name)) {
      info.collective = Collective::Outside;
      info.outside = name.str();
      return;
    }
    if (auto one = isOutside ? std::nullopt : findCollective(name)) {
      info.collective = *one;
      return;
    }
    json.wrong(key,
               "\"all\", \"replicas\", \"to\", \"from\", \"outside NAME\" or "
               "a list of stages");
  }

  void addBuiltIn(const KindInfo &info, StringRef kindClass) {
    auto id = head.kinds.find(info.mnemonic);
    if (id && kindClassName(head.kinds[*id].kindClass) == kindClass)
      return kinds.push_back(*id);
    std::vector<std::string> known;
    const KindTable builtIn;
    for (const KindInfo &info : builtIn.rows())
      known.push_back(
          fmt::format("{} ({})", info.mnemonic, kindClassName(info.kindClass)));
    json.wrong("kinds", "among " + llvm::join(known, ", "));
  }

  void declare(KindInfo info) {
    if (!canNameKind(info.mnemonic))
      return json.wrong("mnemonic", "letters and underscores, and no word of "
                                    "the text of programs");
    if (head.kinds.find(info.mnemonic))
      return json.wrong(
          "kinds", fmt::format("unique: `{}` is there twice", info.mnemonic));
    if (head.kinds.size() == KindTable::maxKinds)
      return json.tooMany(KindTable::maxKinds, "kinds of actions");
    if (!checkCollective(info, json.lastPlace(), json.diags))
      return;
    info.kindClass = KindClass::Declared;
    kinds.push_back(declarations.declare(std::move(info)));
  }

  JsonReader &json;
  Head &head;
  KindDeclarations declarations;
  std::vector<KindId> kinds;
};

} // namespace ppcc
