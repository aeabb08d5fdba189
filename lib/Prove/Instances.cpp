#include "ppcc/Prove/Instances.h"

#include "ppcc/Emit/Digest.h"
#include "ppcc/Proof/Instance.h"
#include "ppcc/Transforms/Roll.h"

#include "llvm/ADT/StringExtras.h"

using namespace ppcc;
using llvm::StringRef;

/// From which M on it may be worth a proof.
static constexpr int64_t leastNumber = 2000;

static int64_t integer(const std::string &text, bool &good) {
  int64_t value = 0;
  good &= !StringRef(text).getAsInteger(10, value);
  return value;
}

std::optional<Program> Instances::at(int64_t n, uint64_t maxActions) const {
  Program program = sample.program.withRows(Rows());
  if (!proof::instantiate(evidence->carried, n, maxActions, program).empty())
    return std::nullopt;
  std::vector<ProgramParam> &params = program.editHead().params;
  for (auto [i, param] : llvm::enumerate(params)) {
    const std::string &second = evidence->next[i].value;
    if (param.value == second)
      continue;
    bool good = true;
    int64_t a = integer(param.value, good), b = integer(second, good);
    if (!good)
      return std::nullopt;
    param.value = fmt::format("{}", a + (b - a) * (n - 1));
  }
  program.setFacts(sample.program.facts());
  return program;
}

namespace {

/// A text, but for the numbers in it.
struct Pattern {
  std::string words; ///< A blank digit, `0`, stands for each number.
  std::vector<StringRef> numbers;

  explicit Pattern(StringRef text) {
    while (!text.empty()) {
      StringRef number = text.take_while(llvm::isDigit);
      if (number.empty()) {
        words += text.front();
        text = text.drop_front();
        continue;
      }
      words += '0';
      numbers.push_back(number);
      text = text.drop_front(number.size());
    }
  }
};

} // namespace

/// The text of n, where those of `from`, `from + step`, `from + 2 step` and
/// `far` are `texts` and follow one rule.
static std::optional<std::string> extrapolate(llvm::ArrayRef<std::string> texts,
                                              int64_t from, int64_t step,
                                              int64_t far, int64_t n) {
  std::vector<Pattern> patterns(texts.begin(), texts.end());
  for (const Pattern &pattern : patterns)
    if (pattern.words != patterns[0].words ||
        pattern.numbers.size() != patterns[0].numbers.size())
      return std::nullopt;
  std::string result;
  size_t next = 0;
  for (char c : patterns[0].words) {
    if (c != '0') {
      result += c;
      continue;
    }
    size_t i = next++;
    StringRef text = patterns[0].numbers[i];
    if (llvm::all_of(patterns, [&](const Pattern &pattern) {
          return pattern.numbers[i] == text;
        })) {
      result += text;
      continue;
    }
    int64_t value[4];
    for (size_t k = 0; k != 4; ++k)
      if (patterns[k].numbers[i].getAsInteger(10, value[k]) ||
          (patterns[k].numbers[i].size() > 1 &&
           patterns[k].numbers[i].front() == '0'))
        return std::nullopt;
    // A fraction does not grow like a number.
    if (StringRef(result).ends_with("."))
      return std::nullopt;
    int64_t grows = value[1] - value[0];
    auto at = [&](int64_t where) {
      return value[0] + __int128(grows) * ((where - from) / step);
    };
    if (value[2] != at(from + 2 * step) || value[3] != at(far) || at(n) < 0 ||
        at(n) > INT64_MAX)
      return std::nullopt;
    result += fmt::format("{}", int64_t(at(n)));
  }
  return result;
}

/// Stands for the digest.
static const std::string digestMark = "\"\x01\"";

/// Puts the digest of the program in its place; where there are too many
/// actions, it is left out.
static std::string withDigest(std::string text,
                              const std::optional<Program> &program) {
  size_t place = text.find(digestMark);
  if (place == std::string::npos)
    return text;
  if (program)
    return text.replace(place, digestMark.size(),
                        "\"" + digestOf(*program) + "\"");
  constexpr StringRef key = "\"digest\": ";
  if (StringRef(text).take_front(place).ends_with(key))
    return text.erase(place - key.size(),
                      text.find('\n', place) + 1 - (place - key.size()));
  return text.replace(place, digestMark.size(), "nullptr");
}

std::optional<std::string> Instances::text(
    llvm::function_ref<bool(const Program &, llvm::raw_ostream &)> emit,
    uint64_t maxActions) const {
  // Whatever is the largest of functions of n with constants up to `most` stays
  // the same one behind twice as much: their slopes are whole numbers.
  int64_t most = 0;
  for (const auto &rows : evidence->carried.ranks) {
    most = std::max<int64_t>(most, rows.size());
    for (const proof::Row &row : rows)
      most = std::max(most, std::abs(row.microbatch.c));
  }
  // What is rolled may take turns in how it is cut.
  for (int64_t step : {1, 2, 3, 4}) {
    int64_t from = 2 * most + 4;
    from += ((n - from) % step + step) % step;
    int64_t far = from + 29 * step;
    if (n <= far)
      return std::nullopt;
    std::vector<std::string> texts;
    for (int64_t one : {from, from + step, from + 2 * step, far}) {
      auto program = at(one, maxActions);
      if (!program)
        return std::nullopt;
      llvm::raw_string_ostream stream(texts.emplace_back());
      if (!emit(rolled(*program), stream))
        return std::nullopt;
      // A digest is no number that grows.
      std::string digest = "\"" + digestOf(*program) + "\"";
      if (size_t place = texts.back().find(digest); place != std::string::npos)
        texts.back().replace(place, digest.size(), digestMark);
    }
    if (auto text = extrapolate(texts, from, step, far, n))
      return withDigest(std::move(*text), at(n, maxActions));
  }
  return std::nullopt;
}

std::optional<Instances> ppcc::instancesFor(const Request &request,
                                            Session &session) {
  ProveRequest wanted;
  wanted.certifies = true;
  wanted.compile = request;
  auto &params = wanted.compile.params;
  auto given = llvm::find_if(params, [&](const sema::ParamValue &param) {
    return param.name == wanted.free;
  });
  int64_t number;
  if (given == params.end() ||
      StringRef(given->value).getAsInteger(10, number) ||
      number < leastNumber || number > int64_t(UINT32_MAX) / 4)
    return std::nullopt;
  const PassRequest &passes = request.passes;
  if (request.until != Request::Until::Done || !passes.passes.empty() ||
      passes.verifiesEach || passes.instrumentation.printAfterAll ||
      !passes.instrumentation.printAfter.empty() ||
      passes.instrumentation.timePasses || !request.rules.empty() ||
      !request.layout.empty() || !request.model.empty() ||
      !request.cluster.empty() || request.torch.fsdp || request.comm.prefetch ||
      request.sharesParams || request.microbatches || !request.from.empty() ||
      request.input == "-")
    return std::nullopt;
  params.erase(given);
  wanted.only = number;
  // What can be read once only is left to the compiler.
  llvm::vfs::FileSystem &files = session.sources.fileSystem();
  if (auto status = files.status(request.input);
      status && !status->isRegularFile())
    return std::nullopt;
  Session quiet((Session::Files(&files)));
  std::string misuse;
  auto proof = prove(wanted, quiet, misuse);
  if (!proof || proof->parts.size() != 1)
    return std::nullopt;
  const ProvenRange &part = proof->parts.front();
  if (part.verdict != Verdict::Right || !part.evidence ||
      part.evidence->carried.ranks.empty())
    return std::nullopt;
  Instances result;
  result.evidence = part.evidence;
  result.n = (number - part.from) / part.modulus;
  Request small = request;
  small.rolled = false;
  for (sema::ParamValue &param : small.params)
    if (param.name == wanted.free)
      param.value = fmt::format("{}", part.from + part.modulus);
  // What is to be said of a program is said of that which was asked for.
  if (!compile(small, quiet) || !quiet.found.empty())
    return std::nullopt;
  result.sample = compile(small, session);
  return result;
}
