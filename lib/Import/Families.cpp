#include "ppcc/Import/Families.h"

#include "Importers.h"
#include "JsonReader.h"
#include "ppcc/IR/Transport.h"
#include "ppcc/Proof/Instance.h"
#include "ppcc/Proof/TemplateJson.h"

#include "llvm/Support/JSON.h"

using namespace ppcc;
using proof::Affine;
namespace json = llvm::json;

bool ppcc::isFamilyFile(uint32_t file, SourceManager &sources) {
  StringRef text = sources.text(file);
  text.consume_front("\xEF\xBB\xBF");
  DiagnosticEngine ignored([](const Diagnostic &) {});
  JsonReader json(text, file, sources, ignored);
  return json.peek() == '{' && json.hasKey("families");
}

namespace {

class FamilyReader {
public:
  explicit FamilyReader(ImportContext &context)
      : context(context),
        place(SourceRange{context.sources.loc(context.file, 0),
                          context.sources.loc(context.file, 1)}) {}

  /// The program that the options choose.
  std::optional<Program> readOne() {
    if (!split() || (claims.empty() && !wrong("it has no ranges")))
      return std::nullopt;
    auto number = chosen(free);
    if (!number)
      return std::nullopt;
    auto claim = llvm::find_if(claims, [&](const proof::ProgramRange &claim) {
      return *number >= claim.from && (!claim.to || *number <= *claim.to) &&
             (*number - claim.from) % claim.modulus == 0;
    });
    if (claim == claims.end() || claim->verdict != "valid") {
      bool isTold = claim != claims.end() && !claim->reason.empty();
      return context.diags.report<diag::ImportNoFamily>(
          Location("-D " + free), free, *number,
          isTold ? claim->reason : "no range contains it");
    }
    size_t i = claim - claims.begin();
    int64_t n = (*number - claim->from) / claim->modulus;
    auto program = head(i, n);
    proof::Template rows;
    if (!program || !readRows(i, *program, rows))
      return std::nullopt;
    Facts facts{{}, program->preconnect()};
    if (std::string fault =
            proof::instantiate(rows, n, context.options.maxActions, *program);
        !fault.empty()) {
      wrong(fault);
      return std::nullopt;
    }
    program->setFacts(std::move(facts));
    return program;
  }

  std::optional<proof::ParametricProgram> readAll() {
    if (!split())
      return std::nullopt;
    if (!findBy(claims, "valid", &proof::ProgramRange::verdict)) {
      wrong("none is valid");
      return std::nullopt;
    }
    proof::ParametricProgram all{"", free, transports, claims};
    for (size_t i = 0; i != claims.size(); ++i) {
      if (claims[i].verdict != "valid")
        continue;
      auto evidence = std::make_shared<proof::ResidueFamily>();
      bool isOne = claims[i].to == claims[i].from;
      auto first = head(i, isOne ? 0 : 1),
           second = first && !isOne ? head(i, 2) : first;
      if (!second || !readRows(i, *first, evidence->withMessages))
        return std::nullopt;
      evidence->base = claims[i].from;
      evidence->step = claims[i].modulus;
      evidence->preconnect = first->preconnect();
      if (!isOne)
        evidence->secondParams = second->params();
      Rows none;
      none.layout(std::vector<uint32_t>(first->numRanks()));
      evidence->head = first->withRows(std::move(none));
      evidence->withMessages.head = &evidence->head.head();
      all.schedule = first->name();
      all.ranges[i].programs = std::move(evidence);
    }
    return all;
  }

private:
  const json::Object none;

  const json::Object &objectOf(const json::Value &value) const {
    auto *object = value.getAsObject();
    return object ? *object : none;
  }

  /// Optional is LLVM's own in older ones.
  static int64_t orZero(const auto &number) { return number ? *number : 0; }

  /// Finds the ranges. False after a report.
  bool split() {
    StringRef text = context.sources.text(context.file);
    text.consume_front("\xEF\xBB\xBF");
    JsonReader json(text, context.file, context.sources, context.diags);
    json.skip(); // Finds what is wrong with it, and nested too deep.
    json.expectEnd();
    if (!json.isGood())
      return false;
    auto value = json::parse(text);
    if (!value)
      return context.diags.report<diag::ImportNotJson>(
          place, llvm::toString(value.takeError()));
    parsed = std::move(*value);
    auto name = file().getString("for");
    const json::Array *families = file().getArray("families");
    if (!name || !families)
      return wrong("`for` is to be a name, `families` a list");
    free = name->str();
    if (const json::Array *names = file().getArray("transports")) {
      for (const json::Value &transport : *names)
        if (auto name = transport.getAsString(); name && findTransport(*name))
          transports.push_back(name->str());
        else
          return wrong("`transports` are to be names of transports");
    }
    for (const json::Value &item : *families) {
      const json::Object &one = objectOf(item);
      auto from = one.getInteger("from"), modulus = one.getInteger("modulus"),
           to = one.getInteger("to");
      if (!from || !modulus || *from < 1 || *modulus < 1)
        return wrong("`from` and `modulus` are to be numbers above 0");
      proof::ProgramRange claim{*modulus, *from % *modulus, *from, {}, "", "",
                                {}};
      if (to)
        claim.to = *to;
      if (auto reason = one.getString("reason"))
        claim.reason = reason->str();
      claim.verdict = one.get("actions")                       ? "valid"
                      : one.getString("verdict") == "excluded" ? "excluded"
                                                               : "invalid";
      claims.push_back(std::move(claim));
    }
    return true;
  }
  const json::Object &file() const { return objectOf(*parsed); }
  const json::Object &family(size_t i) const {
    return objectOf((*file().getArray("families"))[i]);
  }

  bool readRows(size_t i, const Program &head, proof::Template &rows) {
    std::string fault = proof::readTemplate(
        family(i), head.head(),
        proof::SiteCounts{head.phases().size(), head.sites().size()}, rows);
    return fault.empty() || wrong(fault);
  }

  bool wrong(const std::string &why) {
    return context.diags.report<diag::ImportFamily>(place, why);
  }

  /// Puts parameters into the order of their names in the file, if it has one.
  static void sortParams(const json::Array *names,
                         std::vector<ProgramParam> &params) {
    if (names)
      std::ranges::stable_sort(params, {}, [&](const ProgramParam &param) {
        return llvm::find(*names, json::Value(param.name)) - names->begin();
      });
  }

  /// The value of the parameter.
  std::optional<int64_t> chosen(StringRef free) {
    std::optional<int64_t> result;
    for (const auto &[name, value] : context.options.params) {
      int64_t number;
      if (name != free || StringRef(value).getAsInteger(10, number) ||
          number < 1)
        return context.diags.report<diag::ImportFamilyValue>(
            Location("-D " + name), free);
      result = number;
    }
    if (!result)
      context.diags.report<diag::ImportFamilyValue>(place, free);
    return result;
  }

  /// What the program of n of a range has beside rows: what all have, and what
  /// those of the family do.
  std::optional<Program> head(size_t i, int64_t n) {
    const json::Object &family = this->family(i);
    int64_t number = claims[i].from + claims[i].modulus * n;
    json::Object one;
    for (const auto &[key, value] : file())
      if (StringRef(key) != "families" && StringRef(key) != "for" &&
          StringRef(key) != "parameters")
        one[key] = value;
    one["version"] = 3;
    json::Object params;
    if (const json::Object *own = family.getObject("params"))
      for (const auto &[name, value] : *own) {
        const json::Array *affine = value.getAsArray();
        if (!affine || affine->size() != 2) {
          params[name] = value;
          continue;
        }
        // What overflows is refused with the microbatches, which are as large.
        params[name] = int64_t(
            uint64_t(orZero((*affine)[0].getAsInteger())) +
            uint64_t(n) * uint64_t(orZero((*affine)[1].getAsInteger())));
      }
    params[free] = number;
    one["params"] = std::move(params);
    for (StringRef key : {"phases", "sites", "preconnect"})
      if (const json::Value *value = family.get(key))
        one[key] = *value;
    one["columns"] = json::Array(proof::familyColumns().take_front(8));
    int64_t ranks = orZero(file().getInteger("ranks"));
    ranks = std::clamp<int64_t>(ranks, 0, Program::maxRanks);
    one["actions"] =
        json::Array(std::vector<json::Value>(ranks, json::Array()));
    std::string text;
    llvm::raw_string_ostream(text) << json::Value(std::move(one));
    std::string name = (context.sources.name(context.file) + " (" + free +
                        " = " + Twine(number) + ")")
                           .str();
    ImportContext inner{
        context.sources.add(name,
                            llvm::MemoryBuffer::getMemBufferCopy(text, name)),
        context.sources, context.diags, context.options};
    auto program = importJson(inner);
    if (program)
      sortParams(file().getArray("parameters"), program->editHead().params);
    return program;
  }

  ImportContext &context;
  SourceRange place;
  std::string free;
  std::vector<std::string> transports;
  std::vector<proof::ProgramRange> claims; ///< Without programs.
  std::optional<json::Value> parsed;
};

} // namespace

std::optional<Program> ppcc::importFamilies(ImportContext &context) {
  return FamilyReader(context).readOne();
}

std::optional<proof::ParametricProgram>
ppcc::readFamilies(ImportContext &context) {
  return FamilyReader(context).readAll();
}
