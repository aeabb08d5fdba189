#include "ProofText.h"

using namespace ppcc;

int ppcc::runProof(OptionParser &parser, std::vector<StringRef> formats,
                   bool explains, ArrayRef<const char *> args,
                   Session::Files fs, raw_ostream &out, raw_ostream &err,
                   function_ref<void(const ProveOptions &, const Proof &,
                                     const SourceManager &, raw_ostream &)>
                       write) {
  ProveOptions options;
  parser.positional("INPUT", options.request.input,
                    "The schedule: a file, or a name of the library", true);
  parser.value("--for", "NAME", options.free,
               explains ? "The parameter that takes all values; M"
                        : "The parameter that takes all values; M. Two, as in "
                          "P,M, with the ranks first, are experimental");
  parser.choice("--format", "How to write the result", std::move(formats),
                [&](const std::string &name) { options.format = name; });
  addOutput(parser, options.output);
  if (!explains)
    parser.value("--certificate", "FILE", options.certificate,
                 "Also write what shows it, for ppcc-check-proof");
  addScheduleOptions(parser, options, &options.byData);
  addMaxErrors(parser, options.console.maxErrors);
  if (std::optional<int> code = parser.parse(args, out, err))
    return *code;
  auto session = consoleSession(std::move(fs), options.console, err);
  std::string misuse;
  ProveRequest request{options.request, options.free, explains, options.byData,
                       !options.certificate.empty()};
  if (StringRef(options.free).contains(','))
    return explains || request.certifies
               ? parser.wrong("`--for` takes two parameters in `ppcc prove`, "
                              "without `--certificate`",
                              err)
               : writeEvery(options, request, *session, out);
  auto proof = prove(request, *session, misuse);
  if (!misuse.empty())
    return parser.wrong(misuse, err);
  if (!proof)
    return Errors;
  ExitCode code =
      writeOutput(options.output, out, *session, [&](raw_ostream &s) {
        write(options, *proof, session->sources, s);
      });
  if (code == Success && request.certifies)
    code = writeOutput(options.certificate, out, *session, [&](raw_ostream &s) {
      proof::writeCertificate(
          certificateOf(*proof, options.free, session->sources), s);
    });
  return proof->isRight() ? code : Errors;
}

proof::Certificate ppcc::certificateOf(const Proof &proof, StringRef free,
                                       const SourceManager &sources) {
  proof::Certificate certificate{
      proof.schedule, free.str(), proof.params, proof.transports, {}};
  for (const ProvenRange &part : proof.parts)
    certificate.claims.push_back({part.modulus, part.residue, part.from,
                                  part.to, verdictName(part.verdict).str(),
                                  part.makespan, reasonText(part, sources),
                                  part.evidence});
  return certificate;
}

std::string ppcc::numbersText(const ProvenRange &range) {
  std::string numbers = fmt::format("{}", range.from);
  if (range.to == range.from)
    return numbers;
  if (range.modulus != 1)
    numbers += fmt::format(", {},", range.from + range.modulus);
  return numbers + " .." + (range.to ? fmt::format(" {}", *range.to) : "");
}

std::string ppcc::formulaText(const std::optional<Formula> &formula,
                              StringRef free) {
  return formula ? formula->text(free) : "";
}

std::string ppcc::reasonText(const ProvenRange &range,
                             const SourceManager &sources) {
  const Place &place = range.place;
  std::string words = place.words;
  if (place.range.valid()) {
    Position at = sources.position(place.range.begin);
    words = fmt::format("{}:{}:{}", StringRef(at.file), at.line, at.column);
  }
  return words.empty() || range.reason.empty() ? range.reason
                                               : words + ": " + range.reason;
}

void ppcc::writeProofHead(llvm::json::OStream &json, StringRef format,
                          StringRef schedule, ArrayRef<ProgramParam> params,
                          StringRef free, ArrayRef<std::string> transports) {
  json.attribute("format", format);
  json.attribute("version", 1);
  json.attribute("schedule", schedule);
  json.attributeObject("params", [&] {
    for (const ProgramParam &param : params) {
      auto value = llvm::json::parse(param.value);
      json.attribute(param.name,
                     value ? *value : llvm::json::Value(param.value));
      if (!value)
        llvm::consumeError(value.takeError());
    }
  });
  json.attribute("for", free);
  json.attributeArray("transports", [&] {
    for (const std::string &transport : transports)
      json.value(transport);
  });
}

void ppcc::writeProof(const Proof &proof, StringRef format, StringRef free,
                      llvm::json::OStream &json,
                      function_ref<void(const ProvenRange &)> ofRange) {
  json.object([&] {
    writeProofHead(json, format, proof.schedule, proof.params, free,
                   proof.transports);
    json.attributeArray("ranges", [&] {
      for (const ProvenRange &range : proof.ranges)
        json.object([&] {
          json.attribute("modulus", range.modulus);
          json.attribute("residue", range.residue);
          json.attribute("from", range.from);
          json.attribute("to", range.to ? llvm::json::Value(*range.to)
                                        : llvm::json::Value(nullptr));
          json.attribute("verdict", verdictName(range.verdict));
          ofRange(range);
        });
    });
  });
}

void ppcc::writeFormula(llvm::json::OStream &json, StringRef name,
                        const std::optional<Formula> &formula) {
  if (!formula)
    return json.attribute(name, nullptr);
  json.attributeObject(name, [&] {
    json.attribute("slope", formula->slope.text());
    json.attribute("intercept", formula->intercept.text());
    json.attribute("exact", formula->isExact);
  });
}
