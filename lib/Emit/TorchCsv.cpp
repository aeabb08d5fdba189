// Writes the program as the CSV that PyTorch's
// _PipelineScheduleRuntime._load_csv reads.
#include "Cells.h"
#include "Emitters.h"

#include "ppcc/IR/Place.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"

using namespace ppcc;

namespace {

constexpr TorchVersion overlapSince{2, 9}, reduceGradSince{2, 10};

std::string text(TorchVersion version) {
  return fmt::format("{}.{}", version.major, version.minor);
}

/// Finds what the CSV cannot express.
class TorchCheck {
public:
  TorchCheck(const Program &program, EmitContext &context)
      : program(program), context(context) {}

  bool check(bool withMessages) {
    size_t before = context.diags.errorCount();
    checkPlacement();
    checkEdges();
    for (uint32_t rank = 0; rank != program.ranksBegun(); ++rank)
      forEachItem(program, RankId(rank), [&](ActionId begin, ActionId end) {
        bool isWritten = withMessages || program.kindOf(begin).isCompute();
        if (end.value - begin.value > 1 && isWritten)
          checkGroup(RankId(rank), begin, end);
      });
    if (program.hasBackward)
      checkLossOrder();
    if (withMessages)
      checkMessages();
    return context.diags.errorCount() == before;
  }

private:
  Place placeOfStage(PipeId pipe, uint32_t stage) {
    for (uint32_t row = 0; row != program.size(); ++row)
      if (Action action = program[ActionId(row)];
          action.pipe == pipe && action.stage.value == stage)
        return placeOf(program, action.site, context.sources);
    return {};
  }

  void checkPlacement() {
    for (uint32_t p = 1; p < program.pipes.size(); ++p) {
      const Pipe &first = program.pipes.front(), &pipe = program.pipes[p];
      uint32_t stage = 0,
               stages = std::max(first.numStages(), pipe.numStages());
      while (stage != stages && rankName(first, stage) == rankName(pipe, stage))
        ++stage;
      if (stage == stages)
        continue;
      bool inFirst = stage < first.numStages();
      const Pipe &here = inFirst ? first : pipe,
                 &there = inFirst ? pipe : first;
      context.diags.report<diag::TorchStageOnTwoRanks>(
          placeOfStage(PipeId(p), stage), stage, here.rankOfStage[stage].value,
          here.name, rankName(there, stage), there.name);
    }
  }

  static std::string rankName(const Pipe &pipe, uint32_t stage) {
    return stage < pipe.numStages()
               ? fmt::format("rank {}", pipe.rankOfStage[stage].value)
               : "no rank";
  }

  void checkEdges() {
    for (uint32_t p = 0; p != program.pipes.size(); ++p)
      for (auto [from, to] : program.pipes[p].skipEdges) {
        if (context.diags.saturated())
          return;
        context.diags.report<diag::TorchSkipEdge>(
            placeOfStage(PipeId(p), to.value), program.pipes[p].name,
            from.value, to.value);
      }
  }

  std::string groupName(RankId rank, ActionId begin, ActionId end) const {
    constexpr size_t longest = 80;
    std::string name;
    {
      llvm::raw_string_ostream out(name);
      Writer writer(out);
      putItem(writer, program, begin, end,
              CallNames(program, rank).of(begin, end));
    }
    return name.size() <= longest ? name : name.substr(0, longest) + "...";
  }

  void checkGroup(RankId rank, ActionId begin, ActionId end) {
    bool known = end.value - begin.value == 2;
    if (known) {
      llvm::StringRef one = program.kindOf(begin).letters,
                      other = program.kindOf(ActionId(begin.value + 1)).letters;
      known = (one == "F" && other == "B") || (one == "B" && other == "F");
    }
    std::string name = groupName(rank, begin, end);
    Place place = placeOf(program, begin, context.sources);
    if (!known)
      context.diags.report<diag::TorchGroup>(place, name);
    else if (context.options.torchVersion < overlapSince)
      context.diags.report<diag::TorchTooOld>(
          place, name, text(overlapSince), text(context.options.torchVersion));
  }

  /// PyTorch appends the loss of each microbatch to a list and later takes it
  /// by the microbatch's number.
  void checkLossOrder() {
    if (program.pipes.empty() || program.pipes.front().rankOfStage.empty())
      return;
    const Pipe &pipe = program.pipes.front();
    StageId last(pipe.numStages() - 1);
    RankId rank = pipe.rankOfStage.back();
    std::optional<Action> before;
    for (uint32_t row = program.begin(rank).value;
         row != program.end(rank).value; ++row) {
      Action action = program[ActionId(row)];
      const KindInfo &info = program.kinds[action.kind];
      if (action.stage != last || !info.isCompute() ||
          !(info.defines & slot::Output))
        continue;
      if (before && before->microbatch > action.microbatch) {
        context.diags.report<diag::TorchLossOrder>(
            placeOf(program, ActionId(row), context.sources),
            cell(program, action), cell(program, *before));
        return;
      }
      before = action;
    }
  }

  void checkMessages() {
    for (uint32_t row = 0; row != program.size(); ++row)
      if (!program.kindOf(ActionId(row)).isCompute())
        return;
    for (uint32_t p = 0; p != program.pipes.size(); ++p) {
      const auto &ranks = program.pipes[p].rankOfStage;
      auto change =
          std::adjacent_find(ranks.begin(), ranks.end(), std::not_equal_to<>());
      if (change == ranks.end())
        continue;
      uint32_t stage = change - ranks.begin();
      context.diags.report<diag::TorchNoMessages>(
          placeOfStage(PipeId(p), stage), stage, stage + 1);
      return;
    }
  }

  const Program &program;
  EmitContext &context;
};

class TorchWriter {
public:
  TorchWriter(const Program &program, llvm::raw_ostream &out, bool withMessages,
              bool withReduceGrad)
      : program(program), writer(out), withMessages(withMessages),
        withReduceGrad(withReduceGrad) {}

  void write() {
    for (uint32_t rank = 0; rank != program.ranksBegun(); ++rank)
      writeRank(RankId(rank));
  }

private:
  void writeRank(RankId rank) {
    if (withReduceGrad)
      countBackwards(rank);
    firstCell = true;
    forEachItem(program, rank, [&](ActionId begin, ActionId end) {
      KindClass kindClass = program.kindOf(begin).kindClass;
      if (kindClass != KindClass::Send)
        reduceFinished();
      if (kindClass == KindClass::Compute || withMessages) {
        separate();
        putTorchItem(begin, end);
      }
      if (withReduceGrad)
        countDown(begin, end);
    });
    reduceFinished();
    writer.put('\n');
  }

  void separate() {
    if (!firstCell)
      writer.put(',');
    firstCell = false;
  }

  /// In PyTorch's name for a group F comes first; its members are independent.
  void putTorchItem(ActionId begin, ActionId end) {
    if (end.value - begin.value == 1 || program.kindOf(begin).letters == "F") {
      putItem(writer, program, begin, end, /*call=*/"");
      return;
    }
    writer.put('(');
    writer.cell(program, program[ActionId(begin.value + 1)]);
    writer.put(';');
    writer.cell(program, program[begin]);
    writer.put(")OVERLAP_F_B");
  }

  bool endsBackward(ActionId id) const {
    const KindInfo &info = program.kindOf(id);
    return info.isCompute() && (info.defines & slot::WeightGrad);
  }

  void countBackwards(RankId rank) {
    uint32_t stages = 0;
    for (const Pipe &pipe : program.pipes)
      stages = std::max(stages, pipe.numStages());
    backwardsLeft.assign(stages, 0);
    for (uint32_t row = program.begin(rank).value;
         row != program.end(rank).value; ++row)
      backwardsLeft[program[ActionId(row)].stage.value] +=
          endsBackward(ActionId(row));
  }

  void countDown(ActionId begin, ActionId end) {
    for (uint32_t row = begin.value; row != end.value; ++row) {
      StageId stage = program[ActionId(row)].stage;
      if (endsBackward(ActionId(row)) && --backwardsLeft[stage.value] == 0)
        finished.push_back(stage);
    }
  }

  /// Sends of the last backward come first: another rank waits for them.
  void reduceFinished() {
    for (StageId stage : finished) {
      separate();
      writer.number(stage.value);
      writer.put("REDUCE_GRAD");
    }
    finished.clear();
  }

  const Program &program;
  Writer writer;
  bool withMessages, withReduceGrad;
  bool firstCell = true;
  std::vector<uint32_t> backwardsLeft; ///< Of each stage on this rank.
  llvm::SmallVector<StageId, 4>
      finished; ///< Stages whose gradients are complete, but not reduced yet.
};

} // namespace

bool ppcc::emitTorchCsv(const Program &program, llvm::raw_ostream &out,
                        EmitContext &context) {
  if (!TorchCheck(program, context).check(/*withMessages=*/true))
    return false;
  bool withReduceGrad =
      program.hasBackward && context.options.torchVersion >= reduceGradSince;
  TorchWriter(program, out, /*withMessages=*/true, withReduceGrad).write();
  return true;
}

bool ppcc::emitTorchCsvCompute(const Program &program, llvm::raw_ostream &out,
                               EmitContext &context) {
  if (!TorchCheck(program, context).check(/*withMessages=*/false))
    return false;
  TorchWriter(program, out, /*withMessages=*/false, /*withReduceGrad=*/false)
      .write();
  return true;
}
