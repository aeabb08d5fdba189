// Reads pipes, their edges and what these carry, from text. An edge stands
// behind its pipe.
#include "TextSection.h"
#include "ppcc/Basic/Diagnostics/IR.h"

using namespace ppcc;

namespace {

class TextPipes : public TextSection {
public:
  explicit TextPipes(HeadText &in) : TextSection(in) {
    keys = {{"pipe", [this] { pipe(); }},
            {"skip", [this] { skip(); }},
            {"gap", [this] { gap(); }},
            {"carry", [this] { carry(); }}};
  }

  /// Puts the edges in order: `carry` may stand before the `skip` or `gap` of
  /// its edge. Without `ranks` there are those that the pipes use.
  void check() override {
    for (PipeId id : head.pipeIds()) {
      sortEdges(head.pipes[id.value]);
      checkTensors(id);
    }
    if (!in.ranksGiven)
      for (const Pipe &pipe : head.pipes)
        for (RankId rank : pipe.rankOfStage)
          head.numRanks = std::max(head.numRanks, rank.value + 1);
    for (auto [pipe, at] : llvm::zip(head.pipes, pipeRanges)) {
      auto missing = llvm::find_if(pipe.rankOfStage, [&](RankId rank) {
        return rank.value >= head.numRanks;
      });
      if (missing != pipe.rankOfStage.end())
        diags.report<diag::IrNoRank>(at, missing->value, head.numRanks);
    }
  }

private:
  void checkTensors(PipeId id) {
    const Pipe &pipe = head.pipes[id.value];
    findTensorFaults(pipe, [&](const EdgeTensors &edge, TensorFault fault) {
      auto [from, to] = std::pair(edge.from.value, edge.to.value);
      SourceRange at = tensorRanges.at({id.value, from, to});
      if (fault == TensorFault::NoEdge)
        diags.report<diag::IrExpected>(
            at, fmt::format("`carry` along an edge of `{}`", pipe.name));
      else
        diags.report<diag::IrTwice>(
            at, fmt::format("`carry` of the edge {} -> {}", from, to));
    });
  }

  /// `pipe "main" microbatches 0..4 ranks [0 1 2 3]`
  void pipe() {
    Pipe pipe;
    pipe.name = string("the name of a pipe");
    expectWord("microbatches");
    microbatches(pipe);
    if (acceptWord("slices"))
      slices(pipe);
    expectWord("ranks");
    list([&] {
      SourceRange at = text.here();
      RankId rank(number("the rank of a stage", Program::maxRanks - 1));
      if (pipe.numStages() == Program::maxStages)
        return refuse<diag::IrTooMany>(at, Program::maxStages,
                                       "stages in a pipe");
      pipe.rankOfStage.push_back(rank);
    });
    if (going)
      add(std::move(pipe));
  }

  void microbatches(Pipe &pipe) {
    uint32_t first = number("the first microbatch", Program::maxMicrobatches);
    expect("..");
    SourceRange at = text.here();
    uint32_t last =
        number("the end of the microbatches", Program::maxMicrobatches);
    if (last < first)
      report<diag::IrExpected>(
          at, fmt::format("a microbatch of at least {}", first));
    pipe.firstMicrobatch = first;
    pipe.numMicrobatches = std::max(first, last) - first;
  }

  void slices(Pipe &pipe) {
    SourceRange at = text.here();
    pipe.slices = number("the slices of a sequence", Program::maxMicrobatches);
    if (going && (pipe.slices == 0 || pipe.numMicrobatches % pipe.slices != 0))
      expected(at, fmt::format("a divisor of {} microbatches",
                               pipe.numMicrobatches));
  }

  void add(Pipe pipe) {
    SourceRange at = text.keyRange();
    if (head.pipes.size() == Program::maxPipes)
      return refuse<diag::IrTooMany>(at, Program::maxPipes, "pipes");
    for (const Pipe &other : head.pipes) {
      if (auto shared = sharedMicrobatch(pipe, other))
        report<diag::IrPipesOverlap>(at, other.name, pipe.name, *shared);
      if (pipe.name == other.name)
        report<diag::IrTwice>(at, fmt::format("pipe `{}`", pipe.name));
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
    StageId from(number("a stage", Program::maxStages));
    expect("->");
    return {pipe, from, StageId(number("a stage", Program::maxStages))};
  }

  /// `skip "main" 0 -> 3`
  void skip() {
    auto [id, from, to] = edge();
    if (!going)
      return;
    Pipe &pipe = head.pipes[id.value];
    if (from.value + 1 >= to.value || to.value >= pipe.numStages())
      return refuse<diag::IrBadEdge>(text.keyRange(), from.value, to.value);
    pipe.skipEdges.push_back({from, to});
  }

  /// `gap "main" 1 -> 2`
  void gap() {
    auto [id, from, to] = edge();
    if (!going)
      return;
    Pipe &pipe = head.pipes[id.value];
    if (from.value + 1 != to.value || to.value >= pipe.numStages())
      return expected(text.keyRange(), "`gap` between a stage and the next");
    pipe.gaps.push_back(from);
  }

  /// `carry "main" 0 -> 1 hidden[2, ?] bf16 mask[2] i32`
  void carry() {
    auto [id, from, to] = edge();
    EdgeTensors carried{from, to, {}};
    while (going && !text.peekWord().empty() && text.inKeyLine())
      tensor(carried.tensors.emplace_back());
    if (!going)
      return;
    head.pipes[id.value].tensors.push_back(std::move(carried));
    tensorRanges[{id.value, from.value, to.value}] = text.keyRange();
  }

  /// `hidden[2, ?] bf16`
  void tensor(Tensor &tensor) {
    SourceRange at;
    tensor.name = name("the name of a tensor").str();
    expect("[");
    if (going && !accept("]")) {
      do
        tensor.dims.push_back(dim());
      while (accept(","));
      expect("]");
    }
    if (!going)
      return;
    auto type = findElementType(text.takeWord(at));
    if (!type)
      expected(at, "a type, one of " + llvm::join(elementTypeNames(), ", "));
    tensor.type = type.value_or(tensor.type);
  }

  int64_t dim() {
    if (accept("?"))
      return Tensor::varies;
    SourceRange at = text.here();
    StringRef word = text.peekWord();
    auto value = decimal::parse(word, {0, Tensor::maxDim});
    if (value)
      text.take(word);
    else
      expected(at, "a size, or `?`");
    return value.value_or(0);
  }

  std::vector<SourceRange> pipeRanges; ///< The keys of those read so far.
  std::map<std::array<uint32_t, 3>, SourceRange>
      tensorRanges; ///< By pipe and stages.
};

} // namespace

std::unique_ptr<TextSection> ppcc::textPipes(HeadText &in) {
  return std::make_unique<TextPipes>(in);
}
