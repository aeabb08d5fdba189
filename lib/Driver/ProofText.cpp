#include "ProofText.h"

#include "ppcc/Prove/Certificate.h"

using namespace ppcc;

namespace {

void writeJson(const Proof &proof, StringRef format, StringRef free,
               const SourceManager &sources, raw_ostream &out,
               function_ref<void(const ProvenRange &, llvm::json::OStream &)>
                   writeMembers) {
  llvm::json::OStream json(out, 1);
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
          writeFormula(json, "makespan", range.makespan);
          writeMembers(range, json);
          json.attribute("reason", reasonText(range, sources));
        });
    });
  });
  out << '\n';
}

} // namespace

int ppcc::runProof(
    OptionParser &parser, std::vector<StringRef> formats, bool explains,
    const Invocation &call, StringRef format,
    function_ref<void(const ProvenRange &, llvm::json::OStream &)> writeMembers,
    function_ref<void(const ProveOptions &, const Proof &,
                      const SourceManager &, raw_ostream &)>
        writeText) {
  ProveOptions options;
  parser.positional("INPUT", options.request.input,
                    "The schedule: a file, or a name of the library", true);
  parser.value("--for", "NAME", options.free,
               explains ? "The free parameter; M by default"
                        : "The free parameter; M by default. Two, P,M with the "
                          "ranks first, are experimental");
  parser.choice("--format", "The format of the result", std::move(formats),
                options.format);
  addOutput(parser, options.output);
  if (!explains)
    parser.output("--certificate", options.certificate,
                  "Also write a certificate for ppcc-check-proof");
  addScheduleOptions(parser, options, &options.dataOnly);
  addMaxErrors(parser, options.console.maxErrors);
  if (std::optional<int> code = parser.parse())
    return *code;
  auto session = consoleSession(call, options.console);
  if (!prepareOutputs({options.output, options.certificate}, call.out,
                      *session))
    return Errors;
  const SourceManager &sources = session->sources;
  std::string usageError;
  ProveRequest request{options.request, options.free, explains,
                       options.dataOnly, !options.certificate.empty()};
  if (StringRef(options.free).contains(',')) {
    if (explains || request.certifies)
      return parser.usageError("`--for` takes two parameters in `ppcc prove`, "
                               "without `--certificate`");
    int code = writeEvery(options, request, *session, usageError, call.out);
    return usageError.empty() ? code : parser.usageError(usageError);
  }
  auto proof = prove(request, *session, usageError);
  if (!usageError.empty())
    return parser.usageError(usageError);
  if (!proof)
    return Errors;
  auto write = [&](raw_ostream &s) {
    if (options.format == "json")
      writeJson(*proof, format, options.free, sources, s, writeMembers);
    else
      writeText(options, *proof, sources, s);
  };
  auto certify = [&](raw_ostream &s) {
    writeCertificate(certificateOf(*proof, options.free, sources), s);
  };
  OutputFile files[] = {{options.output, write},
                        {options.certificate, certify}};
  ExitCode code = writeOutputs(ArrayRef(files).drop_back(!request.certifies),
                               call.out, *session);
  return proof->isValid() ? code : Errors;
}

std::string ppcc::numbersText(int64_t from, int64_t modulus,
                              std::optional<int64_t> to) {
  std::string numbers = fmt::format("{}", from);
  if (to == from)
    return numbers;
  if (modulus != 1)
    numbers += fmt::format(", {},", from + modulus);
  return numbers + " .." + (to ? fmt::format(" {}", *to) : "");
}

std::string ppcc::formulaText(const std::optional<Formula> &formula,
                              StringRef free) {
  return formula ? formula->text(free) : "";
}

void ppcc::writeProofHead(llvm::json::OStream &json, StringRef format,
                          StringRef schedule, ArrayRef<ProgramParam> params,
                          StringRef free, ArrayRef<std::string> transports) {
  json.attribute("format", format);
  json.attribute("version", 1);
  json.attribute("schedule", schedule);
  writeParams(json, params);
  json.attribute("for", free);
  json.attributeArray("transports", [&] {
    for (const std::string &transport : transports)
      json.value(transport);
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
