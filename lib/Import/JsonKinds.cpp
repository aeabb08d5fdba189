// Reads the table of kinds of a program from JSON.
#include "JsonKinds.h"

using namespace ppcc;
using llvm::StringRef;

void JsonKinds::read() {
  json.list("kinds", [&] { readKind(); });
}

void JsonKinds::readKind() {
  KindInfo info;
  std::string kindClass;
  declarations.begin();
  size_t errorsBefore = json.diags.errorCount();
  json.object(
      "a kind",
      {
          {"letters", [&] { info.letters = json.string("letters"); }},
          {"class", [&] { kindClass = json.string("class"); }},
#define KIND_SCOPE(Name, Member)                                               \
  {Name, [&] { readScope(Name, info.Member); }, /*isOptional=*/true},
#define KIND_LANE(Name, Member)                                                \
  {Name, [&] { readLane(Name, info.Member); }, /*isOptional=*/true},
#define KIND_RULE(Name, IsBefore)                                              \
  {Name, [&] { readRules(Name, IsBefore, info); }, /*isOptional=*/true},
#define KIND_FLAG(Name, Member)                                                \
  {Name, [&] { info.Member = json.boolean(Name, /*otherwise=*/false); },       \
   /*isOptional=*/true},
#define KIND_KIND(Name, Member)                                                \
  {Name,                                                                       \
   [&] {                                                                       \
     std::string name = json.string(Name);                                     \
     declarations.name(&KindInfo::Member, name, json.lastPlace());             \
   },                                                                          \
   /*isOptional=*/true},
#define KIND_COUNT(Name, Member)                                               \
  {Name, [&] { info.Member = json.number(Name, 1, UINT32_MAX); },              \
   /*isOptional=*/true},
#define KIND_MEETING(Name, Member)                                             \
  {Name, [&] { readMeeting(Name, info); }, /*isOptional=*/true},
#include "ppcc/IR/KindProperties.def"
      });
  if (json.diags.errorCount() != errorsBefore || json.cursor.failed())
    return;
  if (kindClass == kindClassName(KindClass::Declared))
    declare(std::move(info));
  else
    addBuiltIn(info, kindClass);
}

// ---- Properties ----

void JsonKinds::readScope(StringRef key, KindScope &scope) {
  std::string per = json.string(key);
  auto found = llvm::find(kindScopeNames(), per);
  if (found == kindScopeNames().end())
    return json.wrong(key, "\"microbatch\", \"stage\" or \"rank\"");
  scope = static_cast<KindScope>(found - kindScopeNames().begin());
}

void JsonKinds::readLane(StringRef key, uint8_t &lane) {
  std::string name = json.string(key);
  auto found = isName(name) ? program.kinds.lane(name) : std::nullopt;
  if (!found)
    return json.wrong(key,
                      fmt::format("a word, the name of one of at most {} lanes",
                                  KindTable::maxKinds));
  lane = *found;
}

void JsonKinds::readRules(StringRef key, bool isBefore, KindInfo &info) {
  json.list(key, [&] {
    size_t rule = info.rules.size();
    info.rules.push_back({isBefore, {}});
    json.list(key, [&] {
      std::string name = json.string(key);
      declarations.name(rule, name, json.lastPlace());
    });
  });
}

void JsonKinds::readMeeting(StringRef key, KindInfo &info) {
  if (json.cursor.peek() == '[') {
    info.meeting = Meeting::Stages;
    int64_t most = Program::maxStages;
    json.list(key,
              [&] { info.stages.push_back(json.number(key, -most, most)); });
    return;
  }
  std::string text = json.string(key);
  StringRef name = text;
  bool isOutside = name.consume_front("outside ");
  if (isOutside && isName(name)) {
    info.meeting = Meeting::Outside;
    info.outside = name.str();
  } else if (!isOutside && (name == "all" || name == "replicas")) {
    info.meeting = name == "all" ? Meeting::All : Meeting::Replicas;
  } else {
    json.wrong(key,
               "\"all\", \"replicas\", \"outside NAME\" or a list of stages");
  }
}

// ---- Kinds ----

void JsonKinds::addBuiltIn(const KindInfo &info, StringRef kindClass) {
  auto id = program.kinds.find(info.letters);
  if (id && kindClassName(program.kinds[*id].kindClass) == kindClass)
    return kinds.push_back(*id);
  std::string known;
  const KindTable builtIn;
  for (const KindInfo &info : builtIn.rows())
    known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", info.letters,
                         kindClassName(info.kindClass));
  json.wrong("kinds", "among " + known);
}

void JsonKinds::declare(KindInfo info) {
  if (!canNameKind(info.letters))
    return json.wrong("letters", "letters and underscores, and no word of the "
                                 "text of programs");
  if (program.kinds.find(info.letters))
    return json.wrong(
        "kinds", fmt::format("told apart: `{}` is there twice", info.letters));
  if (program.kinds.size() == KindTable::maxKinds)
    return json.tooMany(KindTable::maxKinds, "kinds of actions");
  if (!checkMeeting(info, json.lastPlace(), json.diags))
    return;
  info.kindClass = KindClass::Declared;
  kinds.push_back(declarations.declare(std::move(info)));
}

void JsonKinds::resolve() {
  declarations.resolve([&](StringRef name, SourceRange at) {
    json.diags.report<diag::UnknownKind>(at, name, "");
  });
}
