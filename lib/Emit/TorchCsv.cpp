// Writes the program as the CSV that PyTorch's
// _PipelineScheduleRuntime._load_csv reads.
#include "Cells.h"
#include "Emitters.h"

#include "ppcc/Analysis/Analyses.h"
#include "ppcc/Analysis/Run/Turns.h"
#include "ppcc/Basic/Diagnostics/Emit.h"
#include "ppcc/Basic/Diagnostics/Simulation.h"
#include "ppcc/Basic/Diagnostics/Verify.h"
#include "ppcc/IR/Location.h"

using namespace ppcc;

namespace {

constexpr llvm::StringLiteral reduceGrad = "REDUCE_GRAD";

/// Finds what the CSV cannot express.
struct TorchCheck {
  const Program &program;
  EmitContext &context;

  bool check(bool withMessages) {
    size_t before = context.diags.errorCount();
    if (!program.hasBackward())
      context.diags.report<diag::TorchForwardOnly>(Location(program.name()));
    checkPlacement();
    checkRanks();
    checkMicrobatches();
    checkEdges();
    checkDeclared(withMessages);
    for (RankId rank : program.ranks())
      for (RowRange item : program.items(rank))
        if (item.size() > 1 &&
            (withMessages || program.kindOf(item.from).isCompute()))
          checkGroup(rank, item);
    if (program.hasBackward())
      checkLossOrder();
    if (withMessages)
      checkMessages();
    return context.diags.errorCount() == before;
  }

  Location locationOfStage(PipeId pipe, uint32_t stage) {
    return ppcc::locationOfStage(program, pipe, StageId(stage),
                                 context.sources);
  }

  void checkPlacement() {
    for (uint32_t p = 1; p < program.pipes().size(); ++p) {
      const Pipe &first = program.pipes().front(), &pipe = program.pipes()[p];
      if (first.rankOfStage == pipe.rankOfStage)
        continue;
      auto differs = std::ranges::mismatch(first.rankOfStage, pipe.rankOfStage);
      bool inFirst = differs.in1 != first.rankOfStage.end();
      const Pipe &here = inFirst ? first : pipe,
                 &there = inFirst ? pipe : first;
      uint32_t stage = differs.in1 - first.rankOfStage.begin();
      context.diags.report<diag::TorchStageOnTwoRanks>(
          locationOfStage(PipeId(p), stage), stage,
          here.rankOfStage[stage].value, here.name, rankName(there, stage),
          there.name);
    }
  }

  /// PyTorch's schedule begins with the stages of the rank; there must be one.
  void checkRanks() {
    BitVector hasStage(program.numRanks());
    for (const Pipe &pipe : program.pipes())
      for (RankId rank : pipe.rankOfStage)
        hasStage.set(rank.value);
    if (int idle = hasStage.find_first_unset(); idle != -1)
      context.diags.report<diag::TorchIdleRank>(Location(program.name()), idle);
  }

  /// PyTorch cuts a batch into microbatches from 0 on.
  void checkMicrobatches() {
    std::vector<Pipe> pipes = program.pipes();
    llvm::sort(pipes, [](const Pipe &a, const Pipe &b) {
      return a.firstMicrobatch < b.firstMicrobatch;
    });
    uint32_t next = 0;
    for (const Pipe &pipe : pipes) {
      if (pipe.firstMicrobatch != next)
        return context.diags.refuse<diag::TorchMicrobatches>(
            Location(program.name()), next, pipe.name, pipe.firstMicrobatch);
      next = pipe.endMicrobatch();
    }
  }

  static std::string rankName(const Pipe &pipe, uint32_t stage) {
    return stage < pipe.numStages()
               ? fmt::format("rank {}", pipe.rankOfStage[stage].value)
               : "no rank";
  }

  void checkEdges() {
    for (PipeId p : program.pipeIds()) {
      const Pipe &pipe = program.pipe(p);
      auto report = [&](StringRef article, StageId from, StageId to) {
        if (!context.diags.saturated())
          context.diags.report<diag::TorchSkipEdge>(
              locationOfStage(p, to.value), pipe.name, article, from.value,
              to.value);
      };
      for (auto [from, to] : pipe.skipEdges)
        report("an", from, to);
      for (StageId gap : pipe.gaps)
        report("no", gap, StageId(gap.value + 1));
    }
  }

  /// Actions of a stage that PyTorch has too have its cells.
  void checkDeclared(bool withMessages) {
    if (!program.kinds().hasDeclared())
      return;
    for (ActionId row : program.rows())
      if (const KindInfo &info = program.kindOf(row);
          info.isDeclared() && !isOfTorch(info, withMessages) &&
          !context.diags.saturated())
        context.diags.report<diag::TorchNoAction>(
            locationOf(program, row, context.sources), cell(program, row));
  }

  /// Releases that reduce by themselves know no cell for it, and need none when
  /// they place what is no computation.
  bool isOfTorch(const KindInfo &info, bool withMessages) const {
    if (info.scope != KindScope::Stage)
      return false;
    if (info.mnemonic == reduceGrad)
      return context.options.torch.reduces() || !withMessages;
    return info.mnemonic == "UNSHARD" || info.mnemonic == "RESHARD";
  }

  std::string groupName(RankId rank, RowRange item) const {
    constexpr size_t longest = 80;
    std::string name;
    llvm::raw_string_ostream out(name);
    {
      Writer writer(out);
      putItem(writer, program, item,
              CallNames(program, rank).of(item.from, item.to));
    }
    return name.size() <= longest ? name : name.substr(0, longest) + "...";
  }

  void checkGroup(RankId rank, RowRange item) {
    std::string mnemonic;
    for (ActionId row : item)
      mnemonic += program.kindOf(row).mnemonic + ' ';
    const TorchTarget &torch = context.options.torch;
    Location place = locationOf(program, item.from, context.sources);
    if (mnemonic != "F B " && mnemonic != "B F ")
      context.diags.report<diag::TorchGroup>(place, groupName(rank, item));
    else if (!torch.overlaps())
      context.diags.report<diag::TorchTooOld>(place, groupName(rank, item),
                                              torch.version.major,
                                              torch.version.minor);
  }

  /// PyTorch appends the loss of each microbatch to a list and later takes it
  /// by the microbatch's number.
  void checkLossOrder() {
    if (program.pipes().empty() || program.pipes().front().rankOfStage.empty())
      return;
    const Pipe &pipe = program.pipes().front();
    std::optional<Action> before;
    for (ActionId row : program.rows(pipe.rankOfStage.back())) {
      Action action = program[row];
      const KindInfo &info = program.kindOf(action);
      if (action.stage.value + 1 != pipe.numStages() || !info.isCompute() ||
          !(info.defines & slot::Output))
        continue;
      if (before && before->microbatch > action.microbatch)
        return context.diags.refuse<diag::TorchLossOrder>(
            locationOf(program, row, context.sources), cell(program, action),
            cell(program, *before));
      before = action;
    }
  }

  void checkMessages() {
    if (program.firstMessage())
      return;
    for (PipeId p : program.pipeIds()) {
      const auto &ranks = program.pipe(p).rankOfStage;
      auto change =
          std::adjacent_find(ranks.begin(), ranks.end(), std::not_equal_to<>());
      if (change == ranks.end())
        continue;
      uint32_t stage = change - ranks.begin();
      return context.diags.refuse<diag::TorchNoMessages>(
          locationOfStage(p, stage), stage, stage + 1);
    }
  }
};

/// Finds where the steps of ranks stand among messages: where PyTorch has them
/// when it runs the program in turns.
struct StepPlacer {
  const Program &program;
  const TorchTarget &target;
  const Turns *turns = nullptr;
  std::vector<std::vector<TorchStep>> steps{};
  std::vector<uint32_t> reached{}; ///< By rank, the first row not posted yet.

  /// Gives each step the row before which it is written; nothing when the
  /// program cannot be run.
  std::optional<std::vector<std::vector<TorchStep>>> place() {
    const ProgramIndex &index = Analyses(program).index();
    if (!index.fits())
      return std::nullopt;
    for (RankId rank : program.ranks()) {
      steps.push_back(torchSteps(program, rank, target));
      reached.push_back(program.begin(rank).value);
    }
    Turns run(program, index, steps);
    turns = &run;
    if (run.run(*this))
      return std::nullopt;
    return std::move(steps);
  }

  void item(RankId rank, ActionId, ActionId end) {
    reached[rank.value] = end.value;
  }
  void result(ActionId, RankId, uint8_t, StageId) {}
  void itemDone(RankId, ActionId, ActionId) {}

  /// Behind the messages that have been posted by then.
  void step(RankId rank, size_t number) {
    uint32_t &row = reached[rank.value];
    while (row != program.end(rank).value && wasPosted(ActionId(row)))
      ++row;
    steps[rank.value][number].before = ActionId(row);
  }

  bool wasPosted(ActionId id) const {
    const KindInfo &info = program.kindOf(id);
    Action action = program[id];
    return info.isSend() ||
           (info.isRecv() &&
            turns->state().hasRun(action.pipe, action.peer, action.microbatch,
                                  info.mainSlot()));
  }
};

struct TorchWriter {
  const Program &program;
  raw_ostream &out;
  bool withMessages;
  const TorchTarget &target;
  Writer writer{out};
  bool firstCell = true;

  void write(ArrayRef<std::vector<TorchStep>> steps) {
    for (RankId rank : program.ranks()) {
      if (!withMessages)
        writeRank(rank, {});
      else
        writeRank(rank,
                  steps.empty() ? stepsBehindSends(rank) : steps[rank.value]);
    }
  }

  /// The steps of a rank, each after the sends of the action that it follows:
  /// another rank waits for them.
  std::vector<TorchStep> stepsBehindSends(RankId rank) const {
    std::vector<TorchStep> steps = torchSteps(program, rank, target);
    for (TorchStep &step : steps) {
      uint32_t row = step.before.value;
      while (!program.kindOf(ActionId(row - 1)).isCompute())
        --row;
      while (row != step.before.value && program.kindOf(ActionId(row)).isSend())
        ++row;
      step.before = ActionId(row);
    }
    return steps;
  }

  /// A program that declares steps has them where they stand.
  bool declares(TorchStep::Kind kind) const {
    bool reduces =
        kind == TorchStep::ReduceGrad || kind == TorchStep::WaitReduceGrad;
    return program.kinds().find(reduces ? reduceGrad : "UNSHARD").has_value();
  }

  void writeRank(RankId rank, ArrayRef<TorchStep> steps) {
    firstCell = true;
    for (RowRange item : program.items(rank)) {
      writeSteps(steps, item.from);
      const KindInfo &info = program.kindOf(item.from);
      bool isCompute = info.isCompute();
      if ((isCompute && !info.isDeclared()) || withMessages) {
        separate();
        putTorchItem(item);
        if (target.waits() && info.mnemonic == reduceGrad)
          putStep(TorchStep::WaitReduceGrad, program[item.from].stage);
      }
      if (isCompute && withMessages && target.waits())
        endForwardSends(item);
    }
    writeSteps(steps, program.end(rank));
    if (withMessages && target.waits())
      endBackwardSends(rank);
    writer.put('\n');
  }

  void separate() {
    if (!firstCell)
      writer.put(',');
    firstCell = false;
  }

  /// In PyTorch's name for a group F comes first; its members are independent.
  void putTorchItem(RowRange item) {
    if (item.size() == 1 || program.kindOf(item.from).mnemonic == "F")
      return putItem(writer, program, item, /*call=*/"");
    writer.put('(');
    writer.cell(program, ActionId(item.from.value + 1));
    writer.put(';');
    writer.cell(program, item.from);
    writer.put(")OVERLAP_F_B");
  }

  /// Writes the steps that stand before `row`, and drops them.
  void writeSteps(ArrayRef<TorchStep> &steps, ActionId row) {
    for (; !steps.empty() && steps.front().before == row;
         steps = steps.drop_front())
      if (!declares(steps.front().kind))
        putStep(steps.front().kind, steps.front().stage);
  }

  void putStep(TorchStep::Kind kind, StageId stage) {
    separate();
    writer.put(stage, torchStepName(kind));
  }

  /// A stage that has got the gradient of its output knows that the output has
  /// been read.
  void endForwardSends(RowRange item) {
    for (ActionId row : item) {
      Action action = program[row];
      if (!(program.kindOf(action).defines & slot::InputGrad))
        continue;
      const auto &ranks = program.pipe(action.pipe).rankOfStage;
      uint32_t reader = action.stage.value + 1;
      if (reader == ranks.size() || ranks[reader] == ranks[reader - 1])
        continue;
      action.kind = *program.kinds().find(KindClass::Send, slot::Output);
      action.peer = StageId(reader);
      wait(action);
    }
  }

  /// Nothing on the rank tells that a gradient has been read.
  void endBackwardSends(RankId rank) {
    for (ActionId row : program.rows(rank)) {
      const KindInfo &info = program.kindOf(row);
      if (info.isSend() && info.mainSlot() == slot::InputGrad)
        wait(program[row]);
    }
  }

  void wait(const Action &send) {
    separate();
    writer.put(send.stage, "WAIT_", program.kindOf(send).mnemonic,
               send.microbatch);
  }
};

} // namespace

void ppcc::emitTorchCsv(const Program &program, raw_ostream &out,
                        EmitContext &context) {
  if (!TorchCheck{program, context}.check(/*withMessages=*/true))
    return;
  const TorchTarget &target = context.options.torch;
  std::vector<std::vector<TorchStep>> steps;
  if (target.fsdp) {
    auto placed = StepPlacer{program, target}.place();
    if (!placed)
      return context.diags.refuse<diag::CannotSimulate>(
          Location(program.name()), "by data alone");
    steps = std::move(*placed);
  }
  TorchWriter{program, out, /*withMessages=*/true, target}.write(steps);
}

void ppcc::emitTorchCsvCompute(const Program &program, raw_ostream &out,
                               EmitContext &context) {
  if (!TorchCheck{program, context}.check(/*withMessages=*/false))
    return;
  TorchWriter{program, out, /*withMessages=*/false, context.options.torch}
      .write({});
}
