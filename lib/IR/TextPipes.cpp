// Reads pipes, their edges and what these carry, from text.
#include "TextPipes.h"

#include "ppcc/IR/HeadChecks.h"

#include "llvm/ADT/STLExtras.h"

using namespace ppcc;
using llvm::StringRef;

bool TextPipes::pipe() {
  auto name = text.string("the name of a pipe");
  if (!name || !text.expectWord("microbatches"))
    return false;
  Pipe pipe;
  pipe.name = std::move(*name);
  if (!microbatches(pipe))
    return false;
  if (text.acceptWord("slices") && !slices(pipe))
    return false;
  return text.expectWord("ranks") && rankOfStage(pipe) &&
         addPipe(std::move(pipe));
}

/// `0..4`
bool TextPipes::microbatches(Pipe &pipe) {
  auto first = text.number("the first microbatch", Program::maxMicrobatches);
  if (!first || !text.expect(".."))
    return false;
  SourceRange at = text.here();
  auto last =
      text.number("the end of the microbatches", Program::maxMicrobatches);
  if (!last)
    return false;
  if (*last < *first)
    diags.report<diag::IrExpected>(
        at, fmt::format("a microbatch of at least {}", *first));
  pipe.firstMicrobatch = *first;
  pipe.numMicrobatches = std::max(*first, *last) - *first;
  return true;
}

bool TextPipes::slices(Pipe &pipe) {
  SourceRange at = text.here();
  auto slices =
      text.number("the slices of a sequence", Program::maxMicrobatches);
  if (!slices)
    return false;
  if (*slices == 0 || pipe.numMicrobatches % *slices != 0) {
    diags.report<diag::IrExpected>(
        at, fmt::format("a divisor of {} microbatches", pipe.numMicrobatches));
    return false;
  }
  pipe.slices = *slices;
  return true;
}

bool TextPipes::rankOfStage(Pipe &pipe) {
  if (!text.expect("["))
    return false;
  while (!text.accept("]")) {
    SourceRange at = text.here();
    auto rank = text.number("the rank of a stage", Program::maxRanks - 1);
    if (!rank)
      return false;
    if (pipe.numStages() == Program::maxStages) {
      diags.report<diag::IrTooMany>(at, Program::maxStages, "stages in a pipe");
      return false;
    }
    pipe.rankOfStage.push_back(RankId(*rank));
  }
  return true;
}

bool TextPipes::addPipe(Pipe pipe) {
  SourceRange at = text.keyRange();
  if (program.pipes.size() == Program::maxPipes) {
    diags.report<diag::IrTooMany>(at, Program::maxPipes, "pipes");
    return false;
  }
  for (const Pipe &other : program.pipes) {
    if (auto shared = sharedMicrobatch(pipe, other))
      diags.report<diag::IrPipesOverlap>(at, other.name, pipe.name, *shared);
    if (pipe.name == other.name)
      diags.report<diag::IrTwice>(at, fmt::format("pipe `{}`", pipe.name));
  }
  program.pipes.push_back(std::move(pipe));
  pipeRanges.push_back(at);
  return true;
}

/// `"main" 0 -> 1`
std::optional<TextPipes::Edge> TextPipes::edge() {
  auto pipe = pipeName();
  auto from = pipe ? text.number("a stage", Program::maxStages) : std::nullopt;
  if (!from || !text.expect("->"))
    return std::nullopt;
  auto to = text.number("a stage", Program::maxStages);
  if (!to)
    return std::nullopt;
  return Edge{*pipe, StageId(*from), StageId(*to)};
}

bool TextPipes::skip() {
  auto found = edge();
  if (!found)
    return false;
  auto [from, to] = std::pair(found->from, found->to);
  Pipe &pipe = pipeOf(*found);
  if (from.value + 1 >= to.value || to.value >= pipe.numStages()) {
    diags.report<diag::IrBadEdge>(text.keyRange(), from.value, to.value);
    return false;
  }
  pipe.skipEdges.push_back({from, to});
  return true;
}

bool TextPipes::gap() {
  auto found = edge();
  if (!found)
    return false;
  Pipe &pipe = pipeOf(*found);
  if (found->from.value + 1 != found->to.value ||
      found->to.value >= pipe.numStages()) {
    diags.report<diag::IrExpected>(text.keyRange(),
                                   "`gap` between a stage and the next");
    return false;
  }
  pipe.gaps.push_back(found->from);
  return true;
}

bool TextPipes::carry() {
  auto found = edge();
  if (!found)
    return false;
  EdgeTensors carried{found->from, found->to, {}};
  while (!text.peekWord().empty() && text.inKeyLine())
    if (!tensor(carried.tensors.emplace_back()))
      return false;
  pipeOf(*found).tensors.push_back(std::move(carried));
  tensorRanges[{found->pipe.value, found->from.value, found->to.value}] =
      text.keyRange();
  return true;
}

/// `hidden[2, ?] bf16`
bool TextPipes::tensor(Tensor &tensor) {
  SourceRange at;
  auto name = takeName("the name of a tensor");
  if (!name || !text.expect("["))
    return false;
  tensor.name = name->str();
  if (!text.accept("]")) {
    do
      if (!dim(tensor))
        return false;
    while (text.accept(","));
    if (!text.expect("]"))
      return false;
  }
  auto type = findElementType(text.takeWord(at));
  if (!type)
    diags.report<diag::IrExpected>(
        at, "a type, one of " + llvm::join(elementTypeNames(), ", "));
  tensor.type = type.value_or(tensor.type);
  return type.has_value();
}

bool TextPipes::dim(Tensor &tensor) {
  if (text.accept("?")) {
    tensor.dims.push_back(Tensor::varies);
    return true;
  }
  constexpr decimal::Scale whole{0, Tensor::maxDim};
  SourceRange at = text.here();
  StringRef word = text.peekWord();
  auto value = decimal::parse(word, whole);
  if (!value) {
    diags.report<diag::IrExpected>(at, "a size, or `?`");
    return false;
  }
  text.take(word);
  tensor.dims.push_back(*value);
  return true;
}

void TextPipes::finish() {
  for (auto [i, pipe] : llvm::enumerate(program.pipes)) {
    sortEdges(pipe);
    auto report = [&, i = uint32_t(i)](const EdgeTensors &edge,
                                       TensorFault fault) {
      auto [from, to] = std::pair(edge.from.value, edge.to.value);
      SourceRange at = tensorRanges.at({i, from, to});
      if (fault == TensorFault::NoEdge)
        diags.report<diag::IrExpected>(
            at, fmt::format("`carry` along an edge of `{}`", pipe.name));
      else
        diags.report<diag::IrTwice>(
            at, fmt::format("`carry` of the edge {} -> {}", from, to));
    };
    findTensorFaults(pipe, report);
  }
}

void TextPipes::checkRanks(bool ranksGiven) {
  if (!ranksGiven)
    for (const Pipe &pipe : program.pipes)
      for (RankId rank : pipe.rankOfStage)
        program.numRanks = std::max(program.numRanks, rank.value + 1);
  for (auto [pipe, at] : llvm::zip(program.pipes, pipeRanges))
    for (RankId rank : pipe.rankOfStage)
      if (rank.value >= program.numRanks) {
        diags.report<diag::IrNoRank>(at, rank.value, program.numRanks);
        break;
      }
}
