// What `ppcc prove` and `ppcc explain` have in common.
#pragma once

#include "Options.h"
#include "ppcc/Driver/Output.h"
#include "ppcc/Emit/Writer.h"
#include "ppcc/Prove/Prove.h"

namespace ppcc {

struct ProveOptions : Options {
  std::string free = "M";
  bool dataOnly = false;
  std::string format = "text", certificate;
};

/// Reads the command line, judges, and writes that: as JSON of `format`, with
/// what `putMembers` writes of each range after its makespan, or as
/// `writeText` does. Success when the schedule is right for what it admits.
int runProof(OptionParser &parser, std::vector<StringRef> formats,
             bool explains, const Invocation &call, StringRef format,
             function_ref<void(const ProvenRange &, JsonFields &)> putMembers,
             function_ref<void(const ProveOptions &, const Proof &,
                               const SourceManager &, raw_ostream &)>
                 writeText);

/// Judges for all numbers of ranks and microbatches, and writes that.
int writeEvery(const ProveOptions &options, const ProveRequest &request,
               Session &session, std::string &usageError, raw_ostream &out);

/// `3, 7, ..`, `5 .. 9`.
std::string numbersText(int64_t from, int64_t modulus,
                        std::optional<int64_t> to);
/// What is said of some numbers, in one line.
struct RangeLine {
  std::string numbers; ///< `13 ..`, `even M >= 16`.
  ProvenRange said;
};
/// The ranges in few lines: what follows one formula is one, even where it was
/// proven number by number.
std::vector<RangeLine> linesOf(ArrayRef<ProvenRange> ranges, StringRef free);
/// `3 M + 9`, or `at most 3 M + 9`; nothing for none. Of a time or an amount,
/// with its unit.
enum class Quantity { Count, Time, Memory };
std::string formulaText(const std::optional<Formula> &formula, StringRef free,
                        Quantity quantity = Quantity::Count,
                        const Units &units = {});
/// The reason of a range with its place.
template <class Range>
std::string reasonText(const Range &range, const SourceManager &sources) {
  std::string where = textOf(range.place, sources);
  return where.empty() || range.reason.empty() ? range.reason
                                               : where + ": " + range.reason;
}
/// Whether a proof shows that a schedule is valid for every `free`.
template <class Proof>
std::string verdictText(const Proof &proof, StringRef free) {
  return fmt::format("{} is {} every {} that it admits, on {}", proof.schedule,
                     proof.isValid() ? "valid for" : "not proven for", free,
                     llvm::join(proof.transports, ", "));
}

/// Writes JSON and a newline.
template <class Put> void putJson(raw_ostream &out, Put put) {
  Writer writer(out);
  writer.object(put, indentedJson);
  writer.put('\n');
}
/// The members of a proof that stand before its ranges.
void putProofHead(JsonFields &fields, StringRef format, StringRef schedule,
                  ArrayRef<ProgramParam> params, StringRef free,
                  ArrayRef<std::string> transports);
/// A member that is a formula, or null.
void putFormula(JsonFields &fields, StringRef name,
                const std::optional<Formula> &formula);

} // namespace ppcc
