// Checks that each stage does its work exactly once for each microbatch.
#include "Report.h"
#include "ppcc/Verify/Passes.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace ppcc;

namespace {

/// Microbatches `first` to `last` that lack the same slots.
struct Run {
  uint32_t first, last;
  uint8_t missing;
  bool operator==(const Run &) const = default;
};

std::string quoted(const llvm::SmallVectorImpl<llvm::StringRef> &letters,
                   llvm::StringRef separator) {
  return "`" + llvm::join(letters, fmt::format("`{}`", separator)) + "`";
}

/// The kinds that would do the work of `slots`: `B` (or `I` and `W`).
std::string kindsFor(const KindTable &kinds, uint8_t slots) {
  llvm::SmallVector<llvm::StringRef> whole, parts;
  uint8_t rest = slots;
  for (const KindInfo &info : kinds.rows()) {
    if (info.isCompute() && info.defines && !(info.defines & ~rest)) {
      whole.push_back(info.letters);
      rest &= ~info.defines;
    }
    if (info.isCompute() && info.defines == info.mainSlot() &&
        (info.defines & slots))
      parts.push_back(info.letters);
  }
  if (whole.size() > 1 || parts.size() <= 1)
    return quoted(whole, " and no ");
  return fmt::format("{} (or {})", quoted(whole, ""), quoted(parts, " and "));
}

std::string span(llvm::StringRef one, llvm::StringRef many, uint32_t first,
                 uint32_t last) {
  return first == last ? fmt::format("{} {}", one, first)
                       : fmt::format("{} {} to {}", many, first, last);
}

class Checker {
public:
  Checker(const Program &program, const ProgramIndex &index,
          PassContext &context)
      : program(program), index(index), context(context) {}

  void checkPresent() {
    uint8_t wanted = wantedSlots();
    for (uint32_t i = 0; i != program.size() && !context.diags.saturated();
         ++i) {
      const KindInfo &info = program.kindOf(ActionId(i));
      if (!info.isCompute())
        continue;
      Action action = program[ActionId(i)];
      if (info.defines & ~wanted)
        reportAt<diag::BackwardInForwardOnly>(program, context, ActionId(i),
                                              cell(program, action));
      for (unsigned rest = info.defines; rest; rest &= rest - 1) {
        ActionId first = *index.definer(action.pipe, action.stage,
                                        action.microbatch, rest & -rest);
        if (first == ActionId(i))
          continue;
        reportSecond(ActionId(i), first);
        break;
      }
    }
  }

  void checkMissing() {
    for (uint32_t pipe = 0; pipe != program.pipes.size(); ++pipe) {
      llvm::SmallVector<Run> previous, runs;
      uint32_t firstStage = 0, numStages = program.pipes[pipe].numStages();
      // Stages that lack the same are reported as one.
      for (uint32_t stage = 0; stage != numStages && !context.diags.saturated();
           ++stage) {
        findRuns(PipeId(pipe), StageId(stage), runs);
        if (runs != previous) {
          reportRuns(PipeId(pipe), firstStage, stage, previous);
          std::swap(runs, previous);
          firstStage = stage;
        }
      }
      reportRuns(PipeId(pipe), firstStage, numStages, previous);
    }
  }

private:
  uint8_t wantedSlots() const {
    return program.hasBackward
               ? slot::Output | slot::InputGrad | slot::WeightGrad
               : slot::Output;
  }

  void reportSecond(ActionId second, ActionId first) {
    auto note = [&](DiagnosticEngine::Builder builder) {
      builder.note(placeOf(program, first, context.sources), "`{}` is here",
                   cell(program, first));
    };
    if (program[first].kind == program[second].kind)
      note(reportAt<diag::RunsTwice>(program, context, second,
                                     cell(program, second)));
    else
      note(reportAt<diag::WorkTwice>(program, context, second,
                                     cell(program, first),
                                     cell(program, second)));
  }

  /// At most as many runs as errors are shown.
  void findRuns(PipeId pipe, StageId stage,
                llvm::SmallVectorImpl<Run> &runs) const {
    runs.clear();
    const Pipe &info = program.pipes[pipe.value];
    uint8_t wanted = wantedSlots();
    for (uint32_t mb = info.firstMicrobatch; mb != info.endMicrobatch(); ++mb) {
      uint8_t missing = 0;
      for (unsigned rest = wanted; rest; rest &= rest - 1)
        if (!index.definer(pipe, stage, mb, rest & -rest))
          missing |= rest & -rest;
      if (!missing)
        continue;
      if (!runs.empty() && runs.back().last + 1 == mb &&
          runs.back().missing == missing)
        runs.back().last = mb;
      else if (runs.size() > context.diags.maxErrors)
        return;
      else
        runs.push_back({mb, mb, missing});
    }
  }

  void reportRuns(PipeId pipe, uint32_t firstStage, uint32_t endStage,
                  llvm::ArrayRef<Run> runs) {
    for (const Run &run : runs) {
      std::string where = span("stage", "stages", firstStage, endStage - 1);
      if (program.pipes.size() > 1)
        where += fmt::format(" of pipe `{}`", program.pipes[pipe.value].name);
      auto present = lastPresent(pipe, StageId(firstStage), run);
      Place place = present ? placeOf(program, *present, context.sources)
                            : Place(program.name);
      auto builder = context.diags.report<diag::MissingWork>(
          place, span("microbatch", "microbatches", run.first, run.last), where,
          run.first == run.last ? "has" : "have",
          kindsFor(program.kinds, run.missing));
      if (present)
        builder.note({}, "the program has its `{}`", cell(program, *present));
    }
  }

  /// The action that does the last part of what the first of the microbatches
  /// does have.
  std::optional<ActionId> lastPresent(PipeId pipe, StageId stage,
                                      const Run &run) const {
    std::optional<ActionId> last;
    for (unsigned rest = wantedSlots() & ~run.missing; rest; rest &= rest - 1)
      last = index.definer(pipe, stage, run.first, rest & -rest);
    return last;
  }

  const Program &program;
  const ProgramIndex &index;
  PassContext &context;
};

class Completeness final : public CheckPass {
public:
  bool runsAfterErrors() const override { return true; }

  void check(const Program &program, PassContext &context) const override {
    const ProgramIndex *index = indexOf(program, context);
    if (!index)
      return;
    Checker checker(program, *index, context);
    checker.checkPresent();
    checker.checkMissing();
  }
};

} // namespace

PassFactory ppcc::verifyCompleteness() { return passFactory<Completeness>(); }
