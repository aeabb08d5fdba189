// Runs passes one after another.
#include "ppcc/Basic/Diagnostics/Pass.h"
#include "ppcc/Pass/Pass.h"

#include "ppcc/IR/Loops.h"

#include <chrono>

using namespace ppcc;

namespace {

using Clock = std::chrono::steady_clock;

struct Runner {
  const Pipeline &pipeline;
  Program &program;
  PassContext &context;
  const Instrumentation &instrumentation;

  bool run() {
    checkPrinted();
    if (!failed() && verify())
      for (const NamedPass &pass : pipeline)
        if (!failed() ||
            (pass.kind == PassKind::CheckAlways && !hasChecked(pass)))
          runOne(pass);
    if (instrumentation.timePasses)
      printTimes();
    return !failed();
  }

  /// What is to be printed is there.
  void checkPrinted() {
    for (const std::string &name : instrumentation.printAfter)
      if (!findBy(pipeline, name, &NamedPass::name))
        context.diags.report<diag::PrintAfterUnusedPass>({}, name);
    for (RankId rank : instrumentation.print.ranks)
      if (rank.value >= program.numRanks())
        context.diags.report<diag::NothingToPrint>({}, "rank", rank.value,
                                                   program.numRanks());
    uint64_t end = 0;
    for (const Pipe &pipe : program.pipes())
      end = std::max<uint64_t>(end, pipe.endMicrobatch());
    if (const auto &range = instrumentation.print.microbatches;
        range && range->first >= end)
      context.diags.report<diag::NothingToPrint>({}, "microbatch", range->first,
                                                 end);
  }

  bool failed() const { return context.diags.errorCount() != errorsBefore; }

  /// Whether the pass has seen the program as it is, and would say the same
  /// again.
  bool hasChecked(const NamedPass &pass) const {
    return llvm::is_contained(checked, pass.name);
  }

  void runOne(const NamedPass &pass) {
    if (!program.loops().empty() && pass.kind != PassKind::Loops)
      return context.diags.refuse<diag::PassTakesNoLoops>(
          Location(program.name()), pass.name);
    Clock::time_point start = Clock::now();
    PassResult result = pass.pass(program, context);
    times.push_back({pass.name, Clock::now() - start});
    assert((result != PassResult::Changed || pass.kind > PassKind::Check) &&
           "a check changed the program");
    if (result != PassResult::Unchanged && pass.kind > PassKind::Facts)
      checked.clear();
    else
      checked.push_back(pass.name);
    recordProofs();
    if (instrumentation.printAfterAll ||
        llvm::is_contained(instrumentation.printAfter, pass.name))
      print(pass.name);
    if (result == PassResult::Changed && !failed() && !verify())
      context.diags.report<diag::BrokenByPass>(Location(program.name()),
                                               pass.name);
  }

  void recordProofs() {
    Facts facts = program.facts();
    for (std::string &transport : std::exchange(context.proven, {}))
      if (!llvm::is_contained(facts.provenUnder, transport))
        facts.provenUnder.push_back(std::move(transport));
    program.setFacts(std::move(facts));
  }

  /// Runs the passes that --verify-each names; false when they found errors.
  bool verify() {
    if (!instrumentation.verifyEach)
      return true;
    if (program.loops().empty())
      return verify(program);
    Program flat = unrolled(program);
    return verify(flat);
  }
  bool verify(Program &flat) {
    for (const NamedPass &pass : *instrumentation.verifyEach)
      if (!failed() || pass.kind == PassKind::CheckAlways)
        pass.pass(flat, context);
    return !failed();
  }

  void print(StringRef name) {
    *instrumentation.out << "// After " << name << "\n";
    instrumentation.printProgram(program, *instrumentation.out,
                                 instrumentation.print);
  }

  void printTimes() {
    using Milliseconds = std::chrono::duration<double, std::milli>;
    Clock::duration total{};
    for (const auto &[name, time] : times)
      total += time;
    *instrumentation.out << "   wall ms  pass\n";
    for (const auto &[name, time] : times)
      *instrumentation.out << fmt::format("{:10.3f}  {}\n",
                                          Milliseconds(time).count(), name);
    *instrumentation.out << fmt::format("{:10.3f}  in all\n",
                                        Milliseconds(total).count());
  }

  size_t errorsBefore = context.diags.errorCount();
  std::vector<StringRef>
      checked{}; ///< The passes that ran since the program changed.
  std::vector<std::pair<std::string, Clock::duration>> times{};
};

} // namespace

bool ppcc::runPipeline(const Pipeline &pipeline, Program &program,
                       PassContext &context,
                       const Instrumentation &instrumentation) {
  return Runner{pipeline, program, context, instrumentation}.run();
}
