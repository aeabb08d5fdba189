// Reads pipes, their edges and what these carry, from text. An edge stands
// after its pipe.
#pragma once

#include "TextReader.h"

namespace ppcc {

class TextPipes : TextHead {
public:
  explicit TextPipes(const TextHead &head) : TextHead(head) {}

  /// Puts the edges in order: `carry` may stand before the `skip` or `gap` of
  /// its edge. Without `ranks` there are those that the pipes use.
  void check(bool ranksGiven) {
    for (PipeId id : head.pipeIds()) {
      sortEdges(head.pipes[id.value]);
      checkTensors(id);
    }
    if (!ranksGiven)
      for (const Pipe &pipe : head.pipes)
        for (RankId rank : pipe.rankOfStage)
          head.numRanks = std::max(head.numRanks, rank.value + 1);
    for (auto [pipe, at] : llvm::zip(head.pipes, pipeRanges)) {
      auto missing = llvm::find_if(pipe.rankOfStage, [&](RankId rank) {
        return rank.value >= head.numRanks;
      });
      if (missing != pipe.rankOfStage.end())
        in.diags.report<diag::IrNoRank>(at, missing->value, head.numRanks);
    }
  }

  /// `pipe "main" microbatches 0..4 ranks [0 1 2 3]`
  void pipe() {
    Pipe pipe;
    pipe.name = in.string("the name of a pipe");
    in.expectWord("microbatches");
    microbatches(pipe);
    if (in.acceptWord("slices"))
      slices(pipe);
    in.expectWord("ranks");
    in.list([&] {
      SourceRange at = in.here();
      RankId rank(in.number("the rank of a stage", Program::maxRanks - 1));
      if (pipe.numStages() == Program::maxStages)
        return in.refuse<diag::IrTooMany>(at, Program::maxStages,
                                          "stages in a pipe");
      pipe.rankOfStage.push_back(rank);
    });
    if (in.ok())
      add(std::move(pipe));
  }

  /// `skip "main" 0 -> 3`
  void skip() {
    auto [id, from, to] = edge();
    if (!in.ok())
      return;
    Pipe &pipe = head.pipes[id.value];
    if (from.value + 1 >= to.value || to.value >= pipe.numStages())
      return in.refuse<diag::IrBadEdge>(in.keyRange(), from.value, to.value);
    pipe.skipEdges.push_back({from, to});
  }

  /// `gap "main" 1 -> 2`
  void gap() {
    auto [id, from, to] = edge();
    if (!in.ok())
      return;
    Pipe &pipe = head.pipes[id.value];
    if (from.value + 1 != to.value || to.value >= pipe.numStages())
      return in.expected(in.keyRange(), "`gap` between a stage and the next");
    pipe.gaps.push_back(from);
  }

  /// `carry "main" 0 -> 1 hidden[2, ?] bf16 mask[2] i32`
  void carry() {
    auto [id, from, to] = edge();
    EdgeTensors carried{from, to, {}};
    while (in.ok() && !in.peekWord().empty() && in.inKeyLine())
      tensor(carried.tensors.emplace_back());
    if (!in.ok())
      return;
    head.pipes[id.value].tensors.push_back(std::move(carried));
    tensorRanges[{id.value, from.value, to.value}] = in.keyRange();
  }

private:
  void checkTensors(PipeId id) {
    const Pipe &pipe = head.pipes[id.value];
    findTensorErrors(pipe, [&](const EdgeTensors &edge, TensorError fault) {
      auto [from, to] = std::pair(edge.from.value, edge.to.value);
      SourceRange at = tensorRanges.at({id.value, from, to});
      if (fault == TensorError::NoEdge)
        in.diags.report<diag::IrExpected>(
            at, fmt::format("`carry` along an edge of `{}`", pipe.name));
      else
        in.diags.report<diag::IrDuplicate>(
            at, fmt::format("`carry` of the edge {} -> {}", from, to));
    });
  }

  void microbatches(Pipe &pipe) {
    uint32_t first =
        in.number("the first microbatch", Program::maxMicrobatches);
    in.expect("..");
    SourceRange at = in.here();
    uint32_t last =
        in.number("the end of the microbatches", Program::maxMicrobatches);
    if (last < first)
      in.report<diag::IrExpected>(
          at, fmt::format("a microbatch of at least {}", first));
    pipe.firstMicrobatch = first;
    pipe.numMicrobatches = std::max(first, last) - first;
  }

  void slices(Pipe &pipe) {
    SourceRange at = in.here();
    pipe.slices =
        in.number("the slices of a sequence", Program::maxMicrobatches);
    if (in.ok() &&
        (pipe.slices == 0 || pipe.numMicrobatches % pipe.slices != 0))
      in.expected(at, fmt::format("a divisor of {} microbatches",
                                  pipe.numMicrobatches));
  }

  void add(Pipe pipe) {
    SourceRange at = in.keyRange();
    if (head.pipes.size() == Program::maxPipes)
      return in.refuse<diag::IrTooMany>(at, Program::maxPipes, "pipes");
    for (const Pipe &other : head.pipes) {
      if (auto shared = sharedMicrobatch(pipe, other))
        in.report<diag::IrPipesOverlap>(at, other.name, pipe.name, *shared);
      if (pipe.name == other.name)
        in.report<diag::IrDuplicate>(at, fmt::format("pipe `{}`", pipe.name));
    }
    head.pipes.push_back(std::move(pipe));
    pipeRanges.push_back(at);
  }

  /// What may be an edge.
  struct Edge {
    PipeId pipe;
    StageId from, to;
  };
  /// `"main" 0 -> 1`
  Edge edge() {
    PipeId pipe = pipeName();
    StageId from(in.number("a stage", Program::maxStages));
    in.expect("->");
    return {pipe, from, StageId(in.number("a stage", Program::maxStages))};
  }

  /// `hidden[2, ?] bf16`
  void tensor(Tensor &tensor) {
    SourceRange at;
    tensor.name = in.name("the name of a tensor").str();
    in.expect("[");
    if (in.ok() && !in.accept("]")) {
      do
        tensor.dims.push_back(dim());
      while (in.accept(","));
      in.expect("]");
    }
    if (!in.ok())
      return;
    auto type = findElementType(in.takeWord(at));
    if (!type)
      in.expected(at, "a type, one of " + llvm::join(elementTypeNames(), ", "));
    tensor.type = type.value_or(tensor.type);
  }

  int64_t dim() {
    auto parse = [](StringRef word) {
      return decimal::parse(word, {0, Tensor::maxDim});
    };
    return in.accept("?") ? Tensor::dynamic
                          : in.word(parse, "a size, or `?`").value_or(0);
  }

  std::vector<SourceRange> pipeRanges; ///< The keys of those read so far.
  std::map<std::array<uint32_t, 3>, SourceRange>
      tensorRanges; ///< By pipe and stages.
};

} // namespace ppcc
