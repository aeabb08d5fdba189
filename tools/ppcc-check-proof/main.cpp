// Checks a certificate of `ppcc prove` or `ppcc synthesize`. All that it is
// made of is listed in docs/every-m.md: nothing that lays out, guesses or
// changes programs.
#include "ppcc/Proof/Certificate.h"
#include "ppcc/Proof/Optimality.h"

#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

using namespace ppcc::proof;

static int fail(const llvm::Twine &why) {
  llvm::errs() << "error: " << why << '\n';
  return 1;
}

/// Reads a file, or standard input for `-`. Why not, or nothing.
static std::string readInto(std::string &text, llvm::StringRef path) {
  constexpr size_t maxBytes = size_t(1) << 30;
  std::FILE *file = path == "-" ? stdin : std::fopen(path.data(), "rb");
  char piece[1 << 16];
  size_t size = 1;
  for (; file && size && text.size() <= maxBytes; text.append(piece, size))
    size = std::fread(piece, 1, sizeof piece, file);
  if (!file || std::ferror(file))
    return std::strerror(errno);
  return text.size() <= maxBytes ? "" : "it has more than 1 GiB";
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

static int printOptimality(const Optimality &shown) {
  std::string unit = shown.unit == "1" ? "" : " times " + shown.unit;
  llvm::outs() << "given: " << shown.given << "\nmakespan " << shown.makespan
               << unit << " by data: shown by the order\nbound " << shown.bound
               << unit << ": shown by " << shown.argument << "\nshown: ";
  if (shown.makespan == shown.bound)
    llvm::outs() << "the order is optimal\n";
  else if (shown.bound == 0)
    llvm::outs() << "the makespan\n";
  else // Rounded up.
    llvm::outs() << fmt::format(
        "the order takes at most {:.2f} % more than an optimal one\n",
        std::ceil(1e4 * (shown.makespan - shown.bound) / shown.bound) / 100);
  return 0;
}

int main(int argc, char **argv) {
  if (argc != 2 || llvm::StringRef(argv[1]).starts_with("--")) {
    llvm::errs() << "usage: ppcc-check-proof FILE\n"
                    "Checks what `ppcc prove` or `ppcc synthesize` wrote with "
                    "--certificate FILE.\n";
    return 2;
  }
  std::string text;
  if (std::string why = readInto(text, argv[1]); !why.empty())
    return fail(argv[1] + (": " + why));
  if (llvm::StringRef(text).take_front(99).contains("\"ppcc.optimality\"")) {
    auto shown = checkOptimality(text);
    return shown ? printOptimality(*shown)
                 : fail(argv[1] + (": " + toString(shown.takeError())));
  }
  auto certificate = readCertificate(text);
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
