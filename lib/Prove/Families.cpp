#include "ppcc/Prove/Families.h"
#include "ppcc/Basic/Diagnostics/Prove.h"

#include "ppcc/Proof/TemplateJson.h"

#include "llvm/ADT/StringExtras.h"

using namespace ppcc;
using llvm::raw_ostream;
using llvm::StringRef;
namespace json = llvm::json;

/// The keys that all programs share, a line each as the emitter writes them.
static std::string sharedKeys(const Proof &proof, const Program &head,
                              StringRef free, Session &session) {
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
  static constexpr StringRef others[] = {
      "version", "digest",           "params",       "transports", "preconnect",
      "buffers", "peak_activations", "edge_buffers", "phases",     "sites",
      "columns", "actions",          "waits"};
  std::string result;
  llvm::SmallVector<StringRef> lines;
  StringRef(text).split(lines, '\n');
  bool keeps = false;
  for (StringRef line : lines) {
    StringRef key = line;
    key = key.consume_front("\"") ? key.split('"').first : StringRef();
    if (llvm::is_contained(kept, key))
      keeps = true;
    else if (llvm::is_contained(others, key))
      keeps = false;
    if (keeps)
      result += line.str() + "\n";
    if (key == "format")
      result += "\"version\": 3,\n";
  }
  return result;
}

static void writeFamily(const ProvenRange &part, StringRef free,
                        json::OStream &out) {
  out.attribute("modulus", part.modulus);
  out.attribute("residue", part.residue);
  out.attribute("from", part.from);
  out.attribute("to", part.to ? json::Value(*part.to) : json::Value(nullptr));
  out.attribute("verdict", verdictName(part.verdict));
  if (part.verdict != Verdict::Right)
    return out.attribute("reason", part.reason);
  const proof::Evidence &evidence = *part.evidence;
  const Head &head = evidence.head.head();
  out.attributeObject("params", [&] {
    for (auto [i, param] : llvm::enumerate(head.params)) {
      json::Value value = param.value;
      int64_t first, second;
      if (param.type == "bool")
        value = param.value == "true";
      else if (!StringRef(param.value).getAsInteger(10, first)) {
        value = first;
        // Of n = 0, and what n adds.
        if (!evidence.next.empty() &&
            !StringRef(evidence.next[i].value).getAsInteger(10, second) &&
            first != second)
          value = json::Array{2 * first - second, second - first};
      } else if (double number; llvm::to_float(param.value, number)) {
        value = number;
      }
      if (param.name != free)
        out.attribute(param.name, value);
    }
  });
  out.attributeArray("phases", [&] {
    for (const std::string &phase : head.phases)
      out.value(phase);
  });
  auto lists = [&](StringRef key, const auto &items, auto numbersOf) {
    out.attributeBegin(key);
    out.rawValue([&](raw_ostream &to) {
      StringRef before = "";
      to << '[';
      for (const auto &item : items) {
        to << std::exchange(before, ",") << '[';
        StringRef comma = "";
        for (int64_t number : numbersOf(item))
          to << std::exchange(comma, ",") << number;
        to << ']';
      }
      to << ']';
    });
    out.attributeEnd();
  };
  lists("sites", head.sites, [&](const Site &site) {
    bool known = &site != &head.sites.front();
    return std::array<int64_t, 4>{known ? int64_t(site.file) : -1, site.line,
                                  site.column, site.caller.value};
  });
  lists("preconnect", evidence.preconnect, [](RankPair pair) {
    return std::array<int64_t, 2>{pair.low.value, pair.high.value};
  });
  proof::writeRanges(out, evidence.carried);
  proof::writeRows(out, evidence.carried);
}

const proof::Evidence *ppcc::familiesOf(const Proof &proof, StringRef free,
                                        Session &session) {
  const proof::Evidence *sample = nullptr;
  for (const ProvenRange &part : proof.parts) {
    bool hasRows = part.evidence && !part.evidence->carried.ranks.empty();
    if (part.verdict == Verdict::Undecided ||
        (part.verdict == Verdict::Right && !hasRows)) {
      session.diags.report<diag::NoProgramForAll>(
          part.place, free,
          fmt::format("{}{}", part.from, part.to == part.from ? "" : ", .."),
          part.reason.empty() ? "nothing was found" : part.reason);
      return nullptr;
    }
    if (part.verdict == Verdict::Right)
      sample = &*part.evidence;
  }
  if (!sample) {
    session.diags.report<diag::NoProgramForAll>(Place(), free, "all",
                                                "it is wrong, or excluded");
    return nullptr;
  }
  auto kindsOf = [](const proof::Evidence &of) {
    std::vector<std::string> letters;
    for (const KindInfo &info : of.head.kinds().rows())
      letters.push_back(info.letters);
    return letters;
  };
  for (const ProvenRange &part : proof.parts)
    if (part.verdict == Verdict::Right &&
        (part.evidence->head.files().size() != sample->head.files().size() ||
         kindsOf(*part.evidence) != kindsOf(*sample))) {
      session.diags.report<diag::NoProgramForAll>(
          Place(), free, part.from, "its files, or kinds, are others");
      return nullptr;
    }
  return sample;
}

bool ppcc::writeFamilies(const Proof &proof, StringRef free, Session &session,
                         raw_ostream &out) {
  const proof::Evidence *sample = familiesOf(proof, free, session);
  if (!sample)
    return false;
  out << "{\n" << sharedKeys(proof, sample->head, free, session);
  out << "\"parameters\": [";
  StringRef comma = "";
  for (const ProgramParam &param : sample->head.params())
    out << std::exchange(comma, ", ") << json::Value(param.name);
  out << "],\n\"for\": " << json::Value(free) << ",\n\"transports\": [";
  StringRef before = "";
  for (const std::string &transport : proof.transports)
    out << std::exchange(before, ", ") << json::Value(transport);
  out << "],\n\"columns\": [";
  before = "";
  for (StringRef column : proof::familyColumns())
    out << std::exchange(before, ", ") << json::Value(column);
  out << "],\n\"families\": [";
  before = "\n";
  for (const ProvenRange &part : proof.parts) {
    out << std::exchange(before, ",\n");
    json::OStream stream(out);
    stream.object([&] { writeFamily(part, free, stream); });
  }
  out << "\n]\n}\n";
  return true;
}
