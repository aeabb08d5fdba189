#include "ppcc/Prove/Families.h"
#include "ppcc/Basic/Diagnostics/Prove.h"

#include "ppcc/Proof/TemplateJson.h"

using namespace ppcc;
namespace json = llvm::json;

/// The keys that all programs share, a line each as the emitter writes them.
static std::string sharedKeys(const Program &head, StringRef free,
                              Session &session) {
  Compiled compiled;
  compiled.program = head;
  Head &edited = compiled.program.editHead();
  llvm::erase_if(edited.params,
                 [&](const ProgramParam &param) { return param.name == free; });
  for (Pipe &pipe : edited.pipes)
    pipe.firstMicrobatch = pipe.numMicrobatches = 0;
  std::string text;
  llvm::raw_string_ostream stream(text);
  emit(compiled, *findEmitter("json"), stream, session);
  static constexpr StringRef kept[] = {
      "format", "compiler", "schedule", "ranks", "backward", "calls",
      "layout", "costs",    "kinds",    "nodes", "pipes",    "files"};
  std::string result;
  SmallVector<StringRef> lines;
  StringRef(text).split(lines, '\n');
  bool keeps = false;
  for (StringRef line : lines) {
    auto [key, value] = line.split("\": ");
    if (key.consume_front("\"") && !value.empty())
      keeps = llvm::is_contained(kept, key);
    if (keeps)
      result += line.str() + "\n";
    if (key == "format")
      result += "\"version\": 3,\n";
  }
  return result;
}

static void writeFamily(const proof::ProgramRange &part, StringRef free,
                        json::OStream &out) {
  out.attribute("modulus", part.modulus);
  out.attribute("residue", part.residue);
  out.attribute("from", part.from);
  out.attribute("to", part.to ? json::Value(*part.to) : json::Value(nullptr));
  out.attribute("verdict", part.verdict);
  if (!part.programs)
    return out.attribute("reason", part.reason);
  const proof::ResidueFamily &programs = *part.programs;
  const Head &head = programs.head.head();
  out.attributeObject("params", [&] {
    for (auto [i, param] : llvm::enumerate(head.params)) {
      json::Value value = param.value;
      int64_t whole;
      double number;
      if (param.type == "bool")
        value = param.value == "true";
      else if (auto growth = programs.paramFormula(i))
        value = json::Array{growth->c, growth->n};
      else if (llvm::to_integer(param.value, whole))
        value = whole;
      else if (llvm::to_float(param.value, number))
        value = number;
      if (param.name != free)
        out.attribute(param.name, value);
    }
  });
  out.attributeArray("phases", [&] {
    for (const std::string &phase : head.phases)
      out.value(phase);
  });
  proof::writeLists(out, "sites", head.sites.size(), [&](size_t i) {
    const Site &site = head.sites[i];
    return std::vector<int64_t>{i == 0 ? -1 : int64_t(site.file), site.line,
                                site.column, site.caller.value};
  });
  proof::writeLists(out, "preconnect", programs.preconnect.size(),
                    [&](size_t i) {
                      auto [low, high] = programs.preconnect[i];
                      return std::vector<int64_t>{low.value, high.value};
                    });
  proof::writeRanges(out, programs.withMessages);
  proof::writeRows(out, programs.withMessages);
}

std::optional<proof::ParametricProgram>
ppcc::familiesOf(const Proof &proof, StringRef free, Session &session) {
  proof::ParametricProgram families{
      proof.schedule, free.str(), proof.transports, {}};
  auto none = [&](Location place, StringRef why) {
    session.diags.report<diag::NoProgramForAll>(std::move(place), free, why);
    return std::nullopt;
  };
  // The files and kinds that the numbers of all rows mean.
  using Tables = std::pair<size_t, std::vector<std::string>>;
  auto tablesOf = [](const proof::ResidueFamily &of) {
    Tables tables{of.head.files().size(), {}};
    for (const KindInfo &info : of.head.kinds().rows())
      tables.second.push_back(info.mnemonic);
    return tables;
  };
  std::optional<Tables> shared;
  for (const ProvenRange &part : proof.unmerged) {
    bool isValid = part.verdict == Verdict::Valid;
    bool hasRows = part.programs && !part.programs->withMessages.ranks.empty();
    if (part.verdict == Verdict::Undecided || (isValid && !hasRows))
      return none(part.place,
                  fmt::format("{} = {}: {}", free, part.from,
                              part.reason.empty() ? "no proof was found"
                                                  : part.reason));
    auto isFactor = [](const CostSetting &setting) {
      return rowOf(setting.what).granularity == CostGranularity::Microbatches;
    };
    if (isValid && llvm::any_of(part.programs->head.costs().settings, isFactor))
      return none({}, "the factors of `scale` are known for one number of "
                      "microbatches only");
    if (isValid) {
      Tables tables = tablesOf(*part.programs);
      if (shared && *shared != tables)
        return none({}, fmt::format("files or kinds differ at {} = {}", free,
                                    part.from));
      shared = std::move(tables);
    }
    families.ranges.push_back({part.modulus, part.residue, part.from, part.to,
                               verdictName(part.verdict).str(), part.reason,
                               isValid ? part.programs : nullptr});
  }
  if (!shared)
    return none({}, "each is invalid or excluded");
  return families;
}

const proof::ResidueFamily &
ppcc::sampleOf(const proof::ParametricProgram &families) {
  auto last = llvm::find_if(llvm::reverse(families.ranges),
                            [](const proof::ProgramRange &claim) {
                              return claim.programs != nullptr;
                            });
  return *last->programs;
}

void ppcc::writeFamilies(const proof::ParametricProgram &families,
                         Session &session, raw_ostream &out) {
  const proof::ResidueFamily &sample = sampleOf(families);
  out << "{\n" << sharedKeys(sample.head, families.free, session);
  auto writeNames = [&](StringRef key, const auto &names, auto nameOf) {
    out << '"' << key << "\": [";
    llvm::interleave(
        names, out,
        [&](const auto &name) {
          out << json::Value(std::invoke(nameOf, name));
        },
        ", ");
    out << "],\n";
  };
  writeNames("parameters", sample.head.params(), &ProgramParam::name);
  out << "\"for\": " << json::Value(families.free) << ",\n";
  writeNames("transports", families.transports, std::identity());
  writeNames("columns", proof::familyColumns(), std::identity());
  out << "\"families\": [";
  StringRef before = "\n";
  for (const proof::ProgramRange &part : families.ranges) {
    out << std::exchange(before, ",\n");
    json::OStream stream(out);
    stream.object([&] { writeFamily(part, families.free, stream); });
  }
  out << "\n]\n}\n";
}
