// Reads the table of kinds of a program from JSON.
#include "JsonKinds.h"

using namespace ppcc;
using llvm::StringRef;

const JsonKey<JsonKinds> JsonKinds::keys[] = {
    {"letters", &JsonKinds::readLetters},
    {"class", &JsonKinds::readClass},
    {"per", &JsonKinds::readPer, /*isOptional=*/true},
    {"lane", &JsonKinds::readLane, /*isOptional=*/true},
    {"after", &JsonKinds::readAfter, /*isOptional=*/true},
    {"before", &JsonKinds::readBefore, /*isOptional=*/true},
    {"required", &JsonKinds::readRequired, /*isOptional=*/true},
    {"in_flight", &JsonKinds::readInFlight, /*isOptional=*/true},
    {"restores", &JsonKinds::readRestores, /*isOptional=*/true},
    {"collective", &JsonKinds::readCollective, /*isOptional=*/true},
};

void JsonKinds::read() {
  json.list("kinds", [&] {
    letters.clear();
    kindClass.clear();
    declared = KindInfo();
    declarations.begin();
    size_t errorsBefore = json.diags.errorCount();
    json.object<JsonKinds>("a kind", keys, *this);
    if (json.diags.errorCount() == errorsBefore && !json.cursor.failed())
      addKind();
  });
}

// ---- Keys ----

void JsonKinds::readPer() {
  std::string per = json.string("per");
  auto scope = llvm::find(kindScopeNames(), per);
  if (scope == kindScopeNames().end())
    return json.wrong("per", "\"microbatch\", \"stage\" or \"rank\"");
  declared.scope = static_cast<KindScope>(scope - kindScopeNames().begin());
}

void JsonKinds::readLane() {
  std::string name = json.string("lane");
  auto lane = isWord(name) ? program.kinds.lane(name) : std::nullopt;
  if (!lane)
    return json.wrong("lane",
                      fmt::format("a word, the name of one of at most {} lanes",
                                  KindTable::maxKinds));
  declared.lane = *lane;
}

void JsonKinds::readRules(StringRef key, bool isBefore) {
  json.list(key, [&] {
    size_t rule = declared.rules.size();
    declared.rules.push_back({isBefore, {}});
    json.list(key, [&] {
      std::string name = json.string(key);
      declarations.name(rule, name, json.lastPlace());
    });
  });
}

void JsonKinds::readRequired() {
  declared.isRequired = json.boolean("required", /*otherwise=*/false);
}

void JsonKinds::readInFlight() {
  declared.inFlight = json.number("in_flight", 1, UINT32_MAX);
}

void JsonKinds::readRestores() {
  std::string name = json.string("restores");
  declarations.name(std::nullopt, name, json.lastPlace());
}

void JsonKinds::readCollective() {
  if (json.cursor.peek() == '[') {
    declared.meeting = Meeting::Stages;
    int64_t most = Program::maxStages;
    json.list("collective", [&] {
      declared.stages.push_back(json.number("collective", -most, most));
    });
    return;
  }
  std::string text = json.string("collective");
  StringRef name = text;
  bool isOutside = name.consume_front("outside ");
  if (isOutside && isWord(name)) {
    declared.meeting = Meeting::Outside;
    declared.outside = name.str();
  } else if (!isOutside && (name == "all" || name == "replicas")) {
    declared.meeting = name == "all" ? Meeting::All : Meeting::Replicas;
  } else {
    json.wrong("collective",
               "\"all\", \"replicas\", \"outside NAME\" or a list of stages");
  }
}

// ---- Kinds ----

void JsonKinds::addKind() {
  if (kindClass == kindClassName(KindClass::Declared))
    return declareKind();
  auto id = program.kinds.find(letters);
  if (!id || kindClassName(program.kinds[*id].kindClass) != kindClass) {
    std::string known;
    const KindTable builtIn;
    for (const KindInfo &info : builtIn.rows())
      known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", info.letters,
                           kindClassName(info.kindClass));
    return json.wrong("kinds", "among " + known);
  }
  kinds.push_back(*id);
}

void JsonKinds::declareKind() {
  if (!isKindName(letters))
    return json.wrong("letters", "letters and underscores");
  if (program.kinds.find(letters))
    return json.wrong("kinds",
                      fmt::format("told apart: `{}` is there twice", letters));
  if (program.kinds.size() == KindTable::maxKinds)
    return json.tooMany(KindTable::maxKinds, "kinds of actions");
  if (!checkMeeting(declared, json.lastPlace(), json.diags))
    return;
  declared.letters = letters;
  declared.kindClass = KindClass::Declared;
  kinds.push_back(declarations.declare(std::move(declared)));
}

void JsonKinds::resolve() {
  declarations.resolve([&](StringRef name, SourceRange at) {
    json.diags.report<diag::UnknownKind>(at, name, "");
  });
}
