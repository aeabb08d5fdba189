// Feeds ppcc with inputs that nobody has written: under libFuzzer (a build with
// PPCC_FUZZ), which looks for those that reach new code, and without it those
// that are kept. test/fuzz/README.md.
#include "Mutator.h"

#include "ppcc/Compiler/CommPolicy.h"
#include "ppcc/Driver/Driver.h"
#include "ppcc/Editor/Editor.h"
#include "ppcc/Emit/Emitter.h"
#include "ppcc/IR/Loops.h"
#include "ppcc/Import/Importer.h"
#include "ppcc/Pass/PassRegistry.h"
#include "ppcc/Prove/Prove.h"
#include "ppcc/Runtime/Digest.h"
#include "ppcc/Runtime/Json.h"
#include "ppcc/Transforms/Passes.h"
#include "ppcc/Verify/Passes.h"

#include "llvm/Support/xxhash.h"

#include <iostream>
#include <sys/mman.h>
#include <unistd.h>

using namespace ppcc;

namespace {

/// Of what is compiled here; what has more is refused.
constexpr uint64_t maxActions = 3000;
constexpr StringRef inputName = "input";

[[noreturn]] void fail(StringRef what, StringRef wanted = "",
                       StringRef found = "") {
  llvm::errs() << "fuzz: " << what << '\n';
  while (!wanted.empty() || !found.empty()) {
    auto [a, restA] = wanted.split('\n');
    auto [b, restB] = found.split('\n');
    if (a != b)
      llvm::errs() << "- " << a << "\n+ " << b << '\n';
    wanted = restA, found = restB;
  }
  abort();
}

void expectEqual(StringRef what, StringRef wanted, StringRef found) {
  if (wanted != found)
    fail(what, wanted, found);
}

std::string textOf(function_ref<void(raw_ostream &)> write) {
  std::string text;
  llvm::raw_string_ostream out(text);
  write(out);
  return text;
}

Session::Files fileOf(StringRef text) {
  auto files = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
  files->addFile(inputName, 0, llvm::MemoryBuffer::getMemBufferCopy(text));
  return files;
}

/// An input, and choices that follow from it.
struct Input {
  StringRef text;
  uint64_t choices = llvm::xxh3_64bits(text);

  uint64_t choose(uint64_t count) {
    uint64_t chosen = choices % count;
    choices /= count;
    return chosen;
  }
  Transport transport() {
    static constexpr StringRef all[] = {
        "stream",          "buffered",        "buffered:2", "rendezvous",
        "stream-per-peer", "stream-per-edge", "posted"};
    return *findTransport(all[choose(std::size(all))]);
  }
};

struct Compilation {
  explicit Compilation(StringRef text) : session(fileOf(text)) {
    request.input = inputName.str();
    request.limits.maxActions = maxActions;
  }
  bool run() {
    compiled = compile(request, session);
    if (!compiled && compiled.usageError.empty() && session.text().empty())
      fail("refused without a reason");
    return bool(compiled);
  }
  /// Nothing where the format cannot hold the program.
  std::string write(StringRef format) {
    std::string text;
    llvm::raw_string_ostream out(text);
    emit(compiled, *findEmitter(format), out, session);
    return text;
  }

  Session session;
  Request request;
  Compiled compiled;
};

std::string irOf(const Program &program) {
  return textOf([&](raw_ostream &out) { printProgram(program, out); });
}

/// What is written of a program is read as the same program, in either format;
/// loops are written out then.
void expectReadable(Compilation &from) {
  for (StringRef format : {"ir", "json"}) {
    std::string text = from.write(format);
    if (text.empty())
      continue;
    Compilation again(text);
    again.request.from = format.str();
    again.request.until = Request::StopAfter::Expanded;
    again.request.limits.maxActions = 10 * maxActions;
    if (!again.run())
      fail("cannot be read back", again.session.text());
    again.compiled.program.setFacts(from.compiled.program.facts());
    again.compiled.comm = from.compiled.comm;
    from.compiled.program = unrolled(from.compiled.program);
    expectEqual("another program when read back", from.write(format),
                again.write(format));
  }
}

/// Loops stand for the same actions.
void expectRollable(const Program &program) {
  Program flat = unrolled(program), again = unrolled(rolled(flat));
  expectEqual("another program when rolled", irOf(flat), irOf(again));
  expectEqual("another digest when rolled", digestOf(program),
              digestOf(rolled(flat)));
}

/// The engine finds the digest of the compiler, unless a file lists other
/// kinds: the compiler knows its own in any case.
void expectSameDigest(const Program &program, const rt::Program &engine) {
  if (llvm::equal(program.kinds().rows(), engine.kinds,
                  [](const KindInfo &info, const rt::Kind &kind) {
                    return info.mnemonic == kind.mnemonic;
                  }))
    expectEqual("another digest for the engine", digestOf(program),
                rt::digestOf(engine));
}

/// The engine sees the program that was written.
void expectSameForEngine(const Program &program, const std::string &json) {
  try {
    expectSameDigest(program, rt::readJson(json));
  } catch (const rt::Error &) { // It has no such actions.
  }
}

/// All that can be done with what was compiled.
void use(Input &input, Compilation &from) {
  if (from.compiled.program.numRanks() > 1000)
    return; // Each takes its time, in each format.
  const Emitter &format = emitters()[input.choose(emitters().size())];
  std::string json = from.write("json");
  from.write(format.name);
  PassContext context(from.session.sources, from.session.diags);
  Program flat = unrolled(from.compiled.program);
  verifyDynamic(DynamicRule::Ready)(flat, context);
  expectRollable(from.compiled.program);
  if (!json.empty())
    expectSameForEngine(from.compiled.program, json);
  expectReadable(from);
}

void chooseComm(Input &input, Request &request) {
  CommRequest &comm = request.comm;
  comm.transports = {input.transport()};
  if (input.choose(2))
    comm.order = commOrders()[input.choose(commOrders().size())].order;
  else if (input.choose(2))
    comm.fusion = &fusions()[input.choose(fusions().size())];
  if (comm.order != CommOrder::None && input.choose(4) == 0)
    comm.prefetch = input.choose(3);
  request.rolled = input.choose(4) == 0;
}

void schedule(Input input) {
  Compilation compilation(input.text);
  chooseComm(input, compilation.request);
  if (!compilation.run())
    return;
  use(input, compilation);
  if (input.choose(4) == 0)
    runCompiler({{"ppcc", "decompile", inputName.data()},
                 fileOf(input.text),
                 llvm::nulls(),
                 llvm::nulls()});
}

/// A program in a format: it is read, written and read, and what passes make of
/// it.
void program(Input input, StringRef format) {
  Compilation unchecked(input.text);
  unchecked.request.from = format.str();
  unchecked.request.until = Request::StopAfter::Expanded;
  if (!unchecked.run())
    return;
  use(input, unchecked);
  Compilation checked(input.text);
  checked.request.from = format.str();
  chooseComm(input, checked.request);
  if (checked.request.comm.order == CommOrder::None)
    checked.request.comm.prefetch.reset();
  if (checked.run())
    use(input, checked);
}
void ir(Input input) { program(input, "ir"); }
void json(Input input) { program(input, "json"); }
void csv(Input input) { program(input, "csv"); }
void actions(Input input) { program(input, "actions"); }

/// What the tree of a text looks like; nothing where it does not parse.
std::string treeOf(StringRef text) {
  Compilation compilation(text);
  compilation.request.until = Request::StopAfter::Parsed;
  if (!compilation.run())
    return "";
  return textOf([&](raw_ostream &out) {
    for (const ast::File &file : compilation.compiled.files)
      ast::print(file, out);
  });
}

void style(Input input) {
  std::string once = editor::format(input.text);
  expectEqual("the style is not stable", once, editor::format(once));
  std::vector<editor::Token> before = editor::tokenize(input.text),
                             after = editor::tokenize(once);
  if (!llvm::equal(before, after, [](const auto &a, const auto &b) {
        return a.text.rtrim() == b.text.rtrim();
      }))
    fail("the style changes tokens", input.text, once);
  editor::SymbolIndex index(input.text);
  for (const editor::Declaration &declared : index.declarations())
    index.occurrences(declared);
  expectEqual("the style changes the tree", treeOf(input.text), treeOf(once));
}

void prove(Input input) {
  Compilation all(input.text);
  ProveRequest request{all.request};
  request.compile.comm.transports = {input.transport()};
  request.compile.limits.maxActions = maxActions / 10;
  request.certifies = true;
  std::string usageError;
  auto proof = ppcc::prove(request, all.session, usageError);
  if (!proof)
    return;
  std::string text = textOf([&](raw_ostream &out) {
    writeCertificate(certificateOf(*proof, "M", all.session.sources), out);
  });
  auto certificate = proof::readCertificate(text);
  if (!certificate)
    fail(toString(certificate.takeError()));
  for (const proof::Claim &claim : certificate->claims)
    if (claim.needsChecking())
      expectEqual("a claim is not shown", "", faultOf(claim, *certificate));
  expectEqual("the claims are wrong", "", faultOf(*certificate));

  auto families = familiesOf(*proof, "M", all.session);
  std::string familyText;
  if (families)
    familyText =
        textOf([&](raw_ostream &out) { emitFamilies(*families, out); });
  for (int64_t m = 1; m != 6; ++m) {
    auto range = llvm::find_if(proof->ranges, [&](const ProvenRange &range) {
      return m >= range.from && (!range.to || m <= *range.to) &&
             m % range.modulus == range.residue;
    });
    if (range == proof->ranges.end())
      fail("a number lies in no range");
    if (range->verdict == Verdict::Undecided)
      continue;
    Compilation one(input.text);
    one.request = request.compile;
    one.request.params.push_back({"M", std::to_string(m)});
    bool isLimited = !one.run() && llvm::any_of(one.session.found, [](auto &d) {
      return llvm::is_contained({"E0412", "E0413", "E0419"}, d.info().code);
    });
    if (isLimited)
      continue;
    if (bool(one.compiled) != (range->verdict == Verdict::Valid))
      fail("another verdict for M = " + std::to_string(m),
           verdictName(range->verdict), one.session.text());
    if (!one.compiled || !families)
      continue;
    Compilation taken(familyText);
    taken.request.params = {{"M", std::to_string(m)}};
    taken.request.comm.transports = one.request.comm.transports;
    taken.request.limits.maxActions = 10 * maxActions;
    if (!taken.run())
      fail("a family has no program", "", taken.session.text());
    expectEqual("another program of a family", one.write("json"),
                taken.write("json"));
  }
}

std::optional<proof::ParametricProgram> familiesIn(StringRef text) {
  Session session(fileOf(text));
  ImportContext context{
      *session.open(inputName), session.sources, session.diags, {}};
  return readFamilies(context);
}

void parametric(Input input) {
  auto all = familiesIn(input.text);
  if (!all)
    return;
  std::string text = textOf([&](raw_ostream &out) { emitFamilies(*all, out); });
  auto again = familiesIn(text);
  if (!again)
    fail("families cannot be read back", "", text);
  expectEqual("other families when read back", text,
              textOf([&](raw_ostream &out) { emitFamilies(*again, out); }));
  std::string value = std::to_string(1 + input.choose(8));
  Compilation one(input.text);
  one.request.params = {{all->free, value}};
  one.request.until = Request::StopAfter::Expanded;
  if (!one.run())
    return;
  use(input, one);
  try {
    rt::LoadedProgram engine = rt::readJson(input.text.str());
    expectSameDigest(one.compiled.program, engine.at(std::stoll(value)));
  } catch (const rt::Error &) {
  }
}

constexpr StringRef smallProgram = R"(program {
  "schedule": "small",
  "ranks": 2,
  "pipes": [{"name": "p", "microbatches": [0, 2], "rank_of_stage": [0, 1],
             "skip_edges": []}]
}
rank 0 {
  phase "a"
    0F0 0F1 0B0 0B1
}
rank 1 {
  phase "a"
    1F0 1B0 1F1 1B1
}
)";

void costs(Input input) {
  Compilation small(smallProgram);
  small.request.from = "ir";
  if (input.text.starts_with("{")) {
    small.request.until = Request::StopAfter::Expanded;
    small.run();
    auto file = small.session.sources.add(
        "costs", llvm::MemoryBuffer::getMemBufferCopy(input.text));
    if (!readCosts(input.text, file, small.session.sources, small.session.diags,
                   small.compiled.program.editHead()))
      return;
  } else {
    for (StringRef line : llvm::split(input.text, '\n'))
      small.request.costs.settings.push_back(line.str());
    chooseComm(input, small.request);
    if (!small.run())
      return;
  }
  small.write("report");
  use(input, small);
}

void checker(Input input) {
  auto certificate = proof::readCertificate(input.text);
  if (!certificate)
    return llvm::consumeError(certificate.takeError());
  faultOf(*certificate);
  for (const proof::Claim &claim : certificate->claims)
    if (claim.needsChecking())
      faultOf(claim, *certificate);
  textOf([&](raw_ostream &out) { writeCertificate(*certificate, out); });
}

void runtime(Input input) {
  try {
    rt::LoadedProgram engine = rt::readJson(input.text.str());
    if (engine.program().instance)
      engine = engine.at(1 + input.choose(8));
    Compilation compiler(input.text);
    compiler.request.from = "json";
    compiler.request.until = Request::StopAfter::Expanded;
    if (compiler.run())
      expectSameDigest(compiler.compiled.program, engine);
  } catch (const rt::Error &) {
  }
}

void passes(Input input) {
  Compilation small(smallProgram);
  small.request.from = "ir";
  small.request.passes.passes = input.text.str();
  small.request.passes.verifiesEach = input.choose(2);
  if (!input.text.empty() && small.run())
    use(input, small);
}

void lsp(Input input) {
  std::string messages;
  if (input.text.starts_with("Content"))
    messages = input.text.str();
  else
    for (StringRef line : llvm::split(input.text, '\n'))
      if (!line.empty())
        messages +=
            fmt::format("Content-Length: {}\r\n\r\n{}", line.size(), line);
  static const int file = memfd_create("messages", 0);
  if (ftruncate(file, 0) != 0 || lseek(file, 0, SEEK_SET) != 0 ||
      write(file, messages.data(), messages.size()) !=
          ssize_t(messages.size()) ||
      lseek(file, 0, SEEK_SET) != 0 || dup2(file, STDIN_FILENO) < 0)
    fail("no standard input");
  std::string out;
  llvm::raw_string_ostream stream(out);
  runCompiler({{"ppcc", "lsp"}, fileOf(smallProgram), stream, stream});
}

struct Target {
  StringRef name;
  void (*run)(Input input);
};
constexpr Target targets[] = {
#define TARGET(Name, Summary) {#Name, Name},
#include "Targets.def"
};

const Target *target;

} // namespace

#ifdef PPCC_LIBFUZZER

// As libFuzzer names them.
extern "C" {
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

/// The first argument says what is fuzzed; processes that libFuzzer starts have
/// it from their environment.
int LLVMFuzzerInitialize(int *argc, char ***argv) {
  if (const char *known = getenv("PPCC_FUZZ_TARGET")) {
    target = findBy(targets, known, &Target::name);
  } else if (*argc > 1) {
    target = findBy(targets, (*argv)[1], &Target::name);
    setenv("PPCC_FUZZ_TARGET", (*argv)[1], 1);
    std::rotate(*argv + 1, *argv + 2, *argv + *argc);
    --*argc;
  }
  if (!target)
    fail("usage: ppcc-fuzz TARGET ARGS...");
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  target->run({{reinterpret_cast<const char *>(data), size}});
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize,
                               unsigned seed) {
  Random random(seed);
  if (random() % 4 == 0)
    return LLVMFuzzerMutate(data, size, maxSize);
  bool isSchedule =
      llvm::is_contained({"schedule", "style", "prove"}, target->name);
  std::string text(reinterpret_cast<const char *>(data), size);
  for (unsigned times = 1 + random() % 3; times != 0; --times)
    text = changeTokens(text, isSchedule, random);
  text.resize(std::min(text.size(), maxSize));
  llvm::copy(text, data);
  return text.size();
}
}

#else

/// Tries the inputs of files `TARGET.txt`. Each begins with a line `%%%%`,
/// which may say what it shows.
int main(int argc, char **argv) {
  size_t count = 0;
  for (StringRef path : llvm::ArrayRef(argv, argc).drop_front()) {
    target = findBy(targets, llvm::sys::path::stem(path), &Target::name);
    auto file = llvm::MemoryBuffer::getFile(path);
    if (!target || !file)
      fail("no inputs of a target: ", path);
    SmallVector<StringRef> inputs;
    std::string text = "\n" + (*file)->getBuffer().str();
    StringRef(text).split(inputs, "\n%%%%");
    llvm::outs() << target->name << ": " << inputs.size() - 1 << '\n';
    for (StringRef input : llvm::drop_begin(inputs)) {
      llvm::errs() << target->name << ' ' << ++count << input.split('\n').first
                   << '\n';
      target->run({input.split('\n').second});
    }
  }
  return count == 0;
}

#endif
