// Checks a certificate of `ppcc prove`. Links the checker and the head's text,
// nothing that lays out, guesses or changes programs.
#include "ppcc/Proof/Certificate.h"

#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace ppcc::proof;

static int fail(const llvm::Twine &why) {
  llvm::errs() << "error: " << why << '\n';
  return 1;
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
  bool isGood = true;
  for (const Claim &claim : certificate->claims) {
    llvm::outs() << claim.from;
    if (claim.to != claim.from) {
      if (claim.modulus != 1)
        llvm::outs() << ", " << claim.from + claim.modulus << ',';
      llvm::outs() << " ..";
      if (claim.to)
        llvm::outs() << ' ' << *claim.to;
    }
    llvm::outs() << ' ' << claim.verdict;
    if (llvm::StringRef(claim.reason).starts_with("by data;"))
      llvm::outs() << " by data";
    // What the source says, and what was given up, no rows can show.
    if (claim.verdict != "right" && !claim.evidence) {
      llvm::outs() << ": not checked, by the source alone\n";
      continue;
    }
    std::string fault = faultOf(claim, *certificate);
    isGood &= fault.empty();
    if (!fault.empty())
      llvm::outs() << ": NOT SHOWN: " << fault << '\n';
    else if (claim.makespan)
      llvm::outs() << ", makespan " << claim.makespan->text(certificate->free)
                   << '\n';
    else
      llvm::outs() << '\n';
  }
  if (std::string fault = faultOf(*certificate); !fault.empty())
    return fail(fault);
  if (!isGood)
    return fail("the certificate does not show what it claims");
  llvm::outs() << certificate->schedule << ": what is claimed is shown\n";
}
