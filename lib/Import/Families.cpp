#include "Families.h"

#include "Importers.h"
#include "ppcc/Basic/Diagnostics/Import.h"
#include "ppcc/Proof/Instance.h"
#include "ppcc/Proof/TemplateJson.h"

#include "llvm/Support/JSON.h"

using namespace ppcc;
using llvm::StringRef;
namespace json = llvm::json;

bool ppcc::isForAll(StringRef text) {
  for (size_t at = 0; (at = text.find("\"families\"", at)) != StringRef::npos;)
    if (text.drop_front(at += 10).ltrim().starts_with(":"))
      return true;
  return false;
}

namespace {

class FamilyReader {
public:
  explicit FamilyReader(ImportContext &context)
      : context(context),
        place(SourceRange{context.sources.loc(context.file, 0),
                          context.sources.loc(context.file, 1)}) {}

  std::optional<Program> read() {
    auto value = json::parse(context.sources.text(context.file));
    if (!value) {
      context.diags.report<diag::ImportNotJson>(
          place, llvm::toString(value.takeError()));
      return std::nullopt;
    }
    const json::Object &file = objectOf(*value);
    auto free = file.getString("for");
    const json::Array *families = file.getArray("families");
    if (!free || !families)
      return wrong("`for` is to be a name, `families` a list");
    auto number = chosen(*free);
    if (!number)
      return std::nullopt;
    const json::Object *family = nullptr;
    int64_t from = 0, modulus = 1;
    for (const json::Value &item : *families) {
      const json::Object &one = objectOf(item);
      auto first = one.getInteger("from"), step = one.getInteger("modulus");
      if (!first || !step || *first < 1 || *step < 1)
        return wrong("`from` and `modulus` are to be numbers above 0");
      auto to = one.getInteger("to");
      if (*number < *first || (to && *number > *to) ||
          (*number - *first) % *step != 0)
        continue;
      std::tie(family, from, modulus) = std::tuple(&one, *first, *step);
    }
    if (!family || !family->get("actions")) {
      auto reason = (family ? *family : none).getString("reason");
      context.diags.report<diag::ImportNoFamily>(
          Place("-D " + free->str()), *free, *number,
          reason ? *reason : "no range holds it");
      return std::nullopt;
    }
    auto program = head(file, *family, *free, *number);
    if (!program)
      return std::nullopt;
    sortParams(file.getArray("parameters"), program->editHead().params);
    proof::Template rows;
    std::string fault =
        proof::readTemplate(*family, program->head(), true, rows);
    if (fault.empty())
      fault = proof::instantiate(rows, (*number - from) / modulus,
                                 context.options.maxActions, *program);
    if (!fault.empty())
      return wrong(fault);
    program->setFacts({{}, std::vector(facts.preconnect)});
    return program;
  }

private:
  const json::Object none;

  const json::Object &objectOf(const json::Value &value) const {
    const json::Object *object = value.getAsObject();
    return object ? *object : none;
  }

  /// Optional is LLVM's own in older ones.
  static int64_t orZero(const auto &number) { return number ? *number : 0; }

  std::nullopt_t wrong(const std::string &why) {
    context.diags.report<diag::ImportFamily>(place, why);
    return std::nullopt;
  }

  /// Puts parameters into the order of their names in the file, if it has one.
  static void sortParams(const json::Array *names,
                         std::vector<ProgramParam> &params) {
    auto place = [&](const ProgramParam &param) {
      size_t at = 0;
      while (names && at != names->size() &&
             (*names)[at].getAsString() != StringRef(param.name))
        ++at;
      return at;
    };
    llvm::stable_sort(params,
                      [&](const ProgramParam &a, const ProgramParam &b) {
                        return place(a) < place(b);
                      });
  }

  /// The value of the parameter.
  std::optional<int64_t> chosen(StringRef free) {
    std::optional<int64_t> result;
    for (const auto &[name, value] : context.options.params) {
      int64_t number;
      if (name != free || StringRef(value).getAsInteger(10, number) ||
          number < 1) {
        context.diags.report<diag::ImportFamilyValue>(Place("-D " + name),
                                                      free);
        return std::nullopt;
      }
      result = number;
    }
    if (!result)
      context.diags.report<diag::ImportFamilyValue>(place, free);
    return result;
  }

  /// The program without rows: what all have, and what those of the family do.
  std::optional<Program> head(const json::Object &file,
                              const json::Object &family, StringRef free,
                              int64_t number) {
    json::Object one;
    for (const auto &[key, value] : file)
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
        uint64_t n = (number - *family.getInteger("from")) /
                     *family.getInteger("modulus");
        params[name] =
            int64_t(uint64_t(orZero((*affine)[0].getAsInteger())) +
                    n * uint64_t(orZero((*affine)[1].getAsInteger())));
      }
    params[free] = number;
    one["params"] = std::move(params);
    for (StringRef key : {"phases", "sites", "preconnect"})
      if (const json::Value *value = family.get(key))
        one[key] = *value;
    json::Array columns, actions;
    for (StringRef column : proof::familyColumns().take_front(8))
      columns.push_back(column);
    int64_t ranks = orZero(file.getInteger("ranks"));
    for (int64_t i = 0; i < std::min<int64_t>(ranks, Program::maxRanks); ++i)
      actions.push_back(json::Array());
    one["columns"] = std::move(columns);
    one["actions"] = std::move(actions);
    std::string text;
    llvm::raw_string_ostream(text) << json::Value(std::move(one));
    std::string name = (context.sources.name(context.file) + " (" + free +
                        " = " + llvm::Twine(number) + ")")
                           .str();
    ImportContext inner{
        context.sources.add(name,
                            llvm::MemoryBuffer::getMemBufferCopy(text, name)),
        context.sources, context.diags, context.options};
    auto program = importJson(inner);
    if (program)
      facts = program->facts();
    return program;
  }

  ImportContext &context;
  SourceRange place;
  Facts facts;
};

} // namespace

std::optional<Program> ppcc::importFamilies(ImportContext &context) {
  return FamilyReader(context).read();
}
