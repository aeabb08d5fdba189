#include "ProofText.h"

#include "ppcc/Prove/Certificate.h"

using namespace ppcc;

int ppcc::runProof(
    OptionParser &parser, std::vector<StringRef> formats, bool explains,
    const Invocation &call, StringRef format,
    function_ref<void(const ProvenRange &, JsonFields &)> putMembers,
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
  auto putRange = [&](JsonFields &fields, const ProvenRange &range) {
    fields("modulus", range.modulus);
    fields("residue", range.residue);
    fields("from", range.from);
    fields("to", range.to);
    fields("verdict", verdictName(range.verdict));
    putFormula(fields, "makespan", range.makespan);
    putMembers(range, fields);
    fields("reason", reasonText(range, sources));
  };
  auto write = [&](raw_ostream &s) {
    if (options.format != "json")
      return writeText(options, *proof, sources, s);
    putJson(s, [&](JsonFields &fields) {
      putProofHead(fields, format, proof->schedule, proof->params, options.free,
                   proof->transports);
      fields.objects("ranges", proof->ranges, putRange);
    });
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

void ppcc::putProofHead(JsonFields &fields, StringRef format,
                        StringRef schedule, ArrayRef<ProgramParam> params,
                        StringRef free, ArrayRef<std::string> transports) {
  fields("format", format);
  fields("version", 1);
  fields("schedule", schedule);
  fields.object("params", [&](JsonFields &of) { putParams(of, params); });
  fields("for", free);
  fields.values("transports", transports);
}

void ppcc::putFormula(JsonFields &fields, StringRef name,
                      const std::optional<Formula> &formula) {
  if (!formula)
    return fields.raw(name, "null");
  fields.object(name, [&](JsonFields &of) {
    of("slope", formula->slope.text());
    of("intercept", formula->intercept.text());
    of("exact", formula->isExact);
  });
}
