// Checks that each stage does its work exactly once for each microbatch.
#include "ProgramCheck.h"
#include "ppcc/Verify/Passes.h"

using namespace ppcc;

namespace {

/// Microbatches `first` to `last` that lack the same slots.
struct Run {
  uint32_t first, last;
  uint8_t missing;
  bool operator==(const Run &) const = default;
};

std::string quoted(const SmallVectorImpl<StringRef> &mnemonic,
                   StringRef separator) {
  return "`" + llvm::join(mnemonic, fmt::format("`{}`", separator)) + "`";
}

/// The kinds that would do the work of `slots`: `B` (or `I` and `W`).
std::string kindsFor(const KindTable &kinds, uint8_t slots) {
  SmallVector<StringRef> whole, parts;
  uint8_t rest = slots;
  for (const KindInfo &info : kinds.rows()) {
    if (info.isCompute() && info.defines && !(info.defines & ~rest)) {
      whole.push_back(info.mnemonic);
      rest &= ~info.defines;
    }
    if (info.isCompute() && info.defines == info.mainSlot() &&
        (info.defines & slots))
      parts.push_back(info.mnemonic);
  }
  if (whole.size() > 1 || parts.size() <= 1)
    return quoted(whole, " and no ");
  return fmt::format("{} (or {})", quoted(whole, ""), quoted(parts, " and "));
}

std::string span(StringRef one, StringRef many, uint32_t first, uint32_t last) {
  return first == last ? fmt::format("{} {}", one, first)
                       : fmt::format("{} {} to {}", many, first, last);
}

struct CompletenessChecker : IndexedCheck {
  using IndexedCheck::IndexedCheck;

  void check() {
    checkPresent();
    checkMissing();
  }

  void checkPresent() {
    uint8_t wanted = wantedSlots();
    for (ActionId row : program.rows()) {
      const KindInfo &info = program.kindOf(row);
      if (!info.isCompute() || isSaturated())
        continue;
      Action action = program[row];
      if (info.defines & ~wanted)
        report<diag::BackwardInForwardOnly>(row, cell(action));
      for (uint8_t slotBit : slotsIn(info.defines)) {
        ActionId first = *index.definer(action.pipe, action.stage,
                                        action.microbatch, slotBit);
        if (first == row)
          continue;
        reportSecond(row, first);
        break;
      }
    }
  }

  void checkMissing() {
    for (PipeId pipe : program.pipeIds()) {
      SmallVector<Run> previous, runs;
      uint32_t firstStage = 0, numStages = program.pipe(pipe).numStages();
      // Stages that lack the same are reported as one.
      for (uint32_t stage = 0; stage != numStages && !isSaturated(); ++stage) {
        findRuns(pipe, StageId(stage), runs);
        if (runs != previous) {
          reportRuns(pipe, firstStage, stage, previous);
          std::swap(runs, previous);
          firstStage = stage;
        }
      }
      reportRuns(pipe, firstStage, numStages, previous);
    }
  }

  uint8_t wantedSlots() const {
    return program.hasBackward()
               ? slot::Output | slot::InputGrad | slot::WeightGrad
               : slot::Output;
  }

  void reportSecond(ActionId second, ActionId first) {
    auto note = [&](DiagnosticEngine::Builder builder) {
      builder.note(place(first), "`{}` is here", cell(first));
    };
    if (program[first].kind == program[second].kind)
      note(report<diag::RunsTwice>(second, cell(second)));
    else
      note(report<diag::WorkTwice>(second, cell(first), cell(second)));
  }

  /// At most as many runs as errors are shown.
  void findRuns(PipeId pipe, StageId stage, SmallVectorImpl<Run> &runs) const {
    runs.clear();
    const Pipe &info = program.pipe(pipe);
    uint8_t wanted = wantedSlots();
    for (uint32_t mb = info.firstMicrobatch; mb != info.endMicrobatch(); ++mb) {
      uint8_t missing = 0;
      for (uint8_t slotBit : slotsIn(wanted))
        if (!index.definer(pipe, stage, mb, slotBit))
          missing |= slotBit;
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

  /// Where a rank that hosts a stage ends, or as near as can be said.
  Location endOf(PipeId pipe, StageId stage) const {
    RankId rank = program.rankOfStage(pipe, stage);
    if (rank.value < program.ranksBegun() && program.rows(rank).size() != 0)
      return place(ActionId(program.end(rank).value - 1));
    return Location(program.files().empty() ? program.name()
                                            : program.files().front().name);
  }

  void reportRuns(PipeId pipe, uint32_t firstStage, uint32_t endStage,
                  ArrayRef<Run> runs) {
    for (const Run &run : runs) {
      std::string where =
          span("stage", "stages", firstStage, endStage - 1) + ofPipe(pipe);
      auto present = lastPresent(pipe, StageId(firstStage), run);
      auto builder = context.diags.report<diag::MissingWork>(
          present ? place(*present) : endOf(pipe, StageId(firstStage)),
          span("microbatch", "microbatches", run.first, run.last), where,
          run.first == run.last ? "has" : "have",
          kindsFor(program.kinds(), run.missing));
      if (present)
        builder.note({}, "the program has its `{}`", cell(*present));
      uint8_t slotBit = *slotsIn(run.missing).begin();
      if (run.first != program.pipe(pipe).firstMicrobatch)
        if (auto before = index.definer(pipe, StageId(firstStage),
                                        run.first - 1, slotBit))
          builder.note(place(*before),
                       "`{}`, which the microbatch before has, "
                       "is here",
                       cell(*before));
    }
  }

  /// The action that does the last part of what the first of the microbatches
  /// does have.
  std::optional<ActionId> lastPresent(PipeId pipe, StageId stage,
                                      const Run &run) const {
    std::optional<ActionId> last;
    for (uint8_t slotBit : slotsIn(wantedSlots() & ~run.missing))
      last = index.definer(pipe, stage, run.first, slotBit);
    return last;
  }
};

/// Checks what declared actions ask for.
struct DeclaredChecker : IndexedCheck {
  using IndexedCheck::IndexedCheck;

  void check() {
    for (RankId rank : program.ranks())
      for (ActionId row : program.rows(rank))
        if (!isSaturated() && program.kindOf(row).isDeclared())
          enter(row, rank.value,
                program.isPeerSide(program[row], rank) ? peerRows : rows);
    bool hasMessages = program.firstMessage().has_value();
    for (const RuleIndex::UnmetRule &lack : index.rules().unmetRules())
      if (!isSaturated())
        checkUnmetRule(lack, hasMessages);
    for (KindId kind : program.kinds().ids())
      if (program.kinds()[kind].isRequired && !isSaturated())
        checkRequired(kind);
  }

  using Work = std::tuple<uint32_t, uint32_t, uint32_t>;

  static Work workOf(const Action &action, const KindInfo &info,
                     uint32_t rank) {
    return {action.kind.value,
            info.scope == KindScope::Rank
                ? rank
                : action.pipe.value << 16 | action.stage.value,
            action.microbatch};
  }

  void enter(ActionId row, uint32_t rank, DenseMap<Work, uint32_t> &entered) {
    Action action = program[row];
    auto [first, isNew] = entered.try_emplace(
        workOf(action, program.kindOf(action), rank), row.value);
    if (!isNew)
      report<diag::RunsTwice>(row, cell(action))
          .note(place(ActionId(first->second)), "`{}` is here, on rank {}",
                cell(action), rank);
  }

  void checkUnmetRule(const RuleIndex::UnmetRule &lack, bool hasMessages) {
    Action action = program[lack.row];
    const KindInfo &info = program.kindOf(action);
    const KindRule &rule = info.rules[lack.rule];
    SmallVector<StringRef> mnemonic;
    bool areMessages = true, anyByMicrobatch = false;
    for (KindId kind : rule.kinds) {
      mnemonic.push_back(program.kinds()[kind].mnemonic);
      areMessages &= !program.kinds()[kind].isCompute();
      anyByMicrobatch |= program.kinds()[kind].scope == KindScope::Microbatch;
    }
    if (areMessages && !hasMessages)
      return; // They are placed later.
    report<diag::RelatedActionMissing>(
        lack.row, cell(action), rule.isBefore ? "before" : "after",
        quoted(mnemonic, " or "),
        info.scope == KindScope::Rank ? "none on its rank"
        : info.scope == KindScope::Microbatch && anyByMicrobatch
            ? "none of its stage and microbatch"
            : "none of its stage");
  }

  /// Reports the first that is missing of a kind that the program has.
  void checkRequired(KindId kind) {
    const KindInfo &info = program.kinds()[kind];
    auto all = program.rows();
    auto present = llvm::find_if(
        all, [&](ActionId row) { return program.kind(row) == kind; });
    if (present == all.end())
      return;
    bool isByMicrobatch = info.scope == KindScope::Microbatch;
    for (PipeId id : program.pipeIds()) {
      const Pipe &pipe = program.pipe(id);
      for (StageId stage : pipe.stages())
        for (uint32_t i = 0; i != (isByMicrobatch ? pipe.numMicrobatches : 1);
             ++i) {
          Action action{kind, id, stage, Action::noMicrobatch};
          if (isByMicrobatch)
            action.microbatch = pipe.firstMicrobatch + i;
          uint32_t rank = pipe.rankOfStage[stage.value].value;
          if (rows.contains(workOf(action, info, rank)))
            continue;
          std::string where =
              info.scope == KindScope::Rank
                  ? fmt::format("rank {}", rank)
                  : fmt::format("stage {}{}", stage.value, ofPipe(id));
          if (isByMicrobatch)
            where =
                fmt::format("microbatch {} of {}", action.microbatch, where);
          report<diag::RequiredMissing>(*present, where, info.mnemonic,
                                        cell(*present));
          return;
        }
    }
  }

  DenseMap<Work, uint32_t> rows;     ///< The first of each work.
  DenseMap<Work, uint32_t> peerRows; ///< The same, on the other rank.
};

} // namespace

void ppcc::verifyCompleteness(const Program &program, PassContext &context) {
  checkIndexed<CompletenessChecker>(program, context);
  if (program.kinds().hasDeclared() && Analyses(program).index().fits())
    DeclaredChecker(program, context).check();
}
