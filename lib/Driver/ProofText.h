// What `ppcc prove` and `ppcc explain` have in common.
#pragma once

#include "Options.h"
#include "ppcc/Driver/Output.h"
#include "ppcc/Prove/Prove.h"

#include "llvm/Support/JSON.h"

namespace ppcc {

struct ProveOptions : Options {
  std::string free = "M";
  bool byData = false;
  std::string format = "text", certificate;
};

/// Reads the command line, judges, and lets `write` fill the output. True when
/// all went well, and the schedule is right for what it admits.
int runProof(OptionParser &parser, std::vector<StringRef> formats,
             bool explains, ArrayRef<const char *> args, Session::Files fs,
             raw_ostream &out, raw_ostream &err,
             function_ref<void(const ProveOptions &, const Proof &,
                               const SourceManager &, raw_ostream &)>
                 write);

/// Judges for all numbers of ranks and microbatches, and writes that.
int writeEvery(const ProveOptions &options, const ProveRequest &request,
               Session &session, raw_ostream &out);

/// `3, 7, ..`, `5 .. 9`.
std::string numbersText(const ProvenRange &range);
/// `3 M + 9`, or `at most 3 M + 9`; nothing for none.
std::string formulaText(const std::optional<Formula> &formula, StringRef free);
/// With its place.
std::string reasonText(const ProvenRange &range, const SourceManager &sources);

/// What is claimed, and shown, as a file.
proof::Certificate certificateOf(const Proof &proof, StringRef free,
                                 const SourceManager &sources);

/// Writes the members of a proof, and of each of its ranges those that
/// `ofRange` writes behind its numbers.
void writeProof(const Proof &proof, StringRef format, StringRef free,
                llvm::json::OStream &json,
                function_ref<void(const ProvenRange &)> ofRange);
/// The members of a proof that stand before its ranges.
void writeProofHead(llvm::json::OStream &json, StringRef format,
                    StringRef schedule, ArrayRef<ProgramParam> params,
                    StringRef free, ArrayRef<std::string> transports);
/// A member that is a formula, or null.
void writeFormula(llvm::json::OStream &json, StringRef name,
                  const std::optional<Formula> &formula);

} // namespace ppcc
