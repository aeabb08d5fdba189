// Checks a certificate of `ppcc prove`. All that it is made of is listed in
// docs/every-m.md: nothing that lays out, guesses or changes programs.
#include "ppcc/Proof/Certificate.h"

#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace ppcc::proof;

static int fail(const llvm::Twine &why) {
  llvm::errs() << "error: " << why << '\n';
  return 1;
}

static void printNumbers(const Claim &claim) {
  llvm::outs() << claim.from;
  if (claim.to == claim.from)
    return;
  if (claim.modulus != 1)
    llvm::outs() << ", " << claim.from + claim.modulus << ',';
  llvm::outs() << " ..";
  if (claim.to)
    llvm::outs() << ' ' << *claim.to;
}

/// Of a model, where there are several.
static std::string nameOf(const Certificate &certificate, size_t model) {
  return certificate.assumptions.size() == 1
             ? ""
             : " (" + std::to_string(model) + ")";
}

int main(int argc, char **argv) {
  if (argc != 2 || llvm::StringRef(argv[1]).starts_with("--")) {
    llvm::errs() << "usage: ppcc-check-proof FILE\n"
                    "Checks what `ppcc prove --certificate FILE` wrote.\n";
    return 2;
  }
  auto text = llvm::MemoryBuffer::getFileOrSTDIN(argv[1]);
  if (!text)
    return fail(argv[1] + (": " + text.getError().message()));
  auto certificate = readCertificate((*text)->getBuffer());
  if (!certificate)
    return fail(argv[1] + (": " + toString(certificate.takeError())));
  for (const auto &[i, given] : llvm::enumerate(certificate->assumptions))
    llvm::outs() << "given" << nameOf(*certificate, i) << ": " << given.text
                 << '\n';
  const auto &microbatches = certificate->microbatches;
  llvm::outs() << "given: "
               << (microbatches ? microbatches->text("M") + " microbatches"
                                : "what M has to do with the microbatches")
               << '\n';
  bool isGood = true;
  std::map<std::string, size_t> proven; // Ranges, by what is proven of them.
  size_t unchecked = 0;
  for (const Claim &claim : certificate->claims) {
    printNumbers(claim);
    llvm::outs() << ' ' << claim.verdict;
    // What the source says, and what was given up, no rows can show.
    if (!claim.needsChecking()) {
      llvm::outs() << ": not checked\n";
      ++unchecked;
      continue;
    }
    if (std::string fault = faultOf(claim, *certificate); !fault.empty()) {
      llvm::outs() << ": NOT SHOWN: " << fault << '\n';
      isGood = false;
      continue;
    }
    if (claim.verdict == "valid")
      llvm::outs() << " on " << llvm::join(claim.transports, ", ");
    else
      ++proven[claim.verdict];
    for (const std::string &transport : claim.transports)
      ++proven[claim.verdict + " on " + transport];
    if (claim.makespan) {
      llvm::outs() << "; makespan " << claim.makespan->text("M") << " on "
                   << claim.makespanTransport;
      ++proven["makespan on " + claim.makespanTransport];
    }
    if (claim.fits) {
      llvm::outs() << "; within the limits of memory";
      ++proven["memory"];
    }
    for (const auto &[i, given] : llvm::enumerate(certificate->assumptions))
      if (given.model == claim.evidence->model)
        llvm::outs() << nameOf(*certificate, i);
    llvm::outs() << '\n';
  }
  if (std::string fault = faultOf(*certificate); !fault.empty())
    return fail(fault);
  if (!isGood)
    return fail("the certificate does not show what it claims");
  llvm::outs() << "shown:";
  for (const auto &[what, number] : proven)
    llvm::outs() << (what == proven.begin()->first ? " " : ", ") << what
                 << " in " << number;
  llvm::outs() << (proven.empty() ? " nothing" : "") << ", of "
               << certificate->claims.size()
               << " ranges; not checked: " << unchecked << '\n';
}
