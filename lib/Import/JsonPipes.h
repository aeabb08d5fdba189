// Reads pipes, their edges and what these carry, from JSON.
#pragma once

#include "JsonReader.h"
#include "ppcc/Basic/Diagnostics/Sema.h"
#include "ppcc/IR/HeadChecks.h"

namespace ppcc {

/// Reads the key `pipes` of docs/program-format.md.
class JsonPipes {
public:
  JsonPipes(JsonReader &json, Head &head) : json(json), head(head) {}

  /// Takes one pipe.
  void read() {
    Pipe pipe;
    json.object(
        "a pipe",
        {json.textField("name", pipe.name),
         {"microbatches", [&] { readMicrobatches(pipe); }},
         json.listField("rank_of_stage", [&] { readRank(pipe); }),
         json.listField("skip_edges",
                        [&] {
                          if (auto edge =
                                  readStages("skip_edges", 2,
                                             "pairs of stages, the second more "
                                             "than one beyond the first"))
                            pipe.skipEdges.push_back(*edge);
                        }),
         optional(json.listField("gaps",
                                 [&] {
                                   pipe.gaps.push_back(StageId(json.number(
                                       "gaps", 0, Program::maxStages)));
                                 })),
         optional(json.numberField("slices", pipe.slices, 1,
                                   Program::maxMicrobatches)),
         optional(json.listField(
             "tensors", [&] { readEdge(pipe.tensors.emplace_back()); }))});
    if (head.pipes.size() == Program::maxPipes)
      return json.tooMany(Program::maxPipes, "pipes");
    if (json.isGood())
      check(pipe, json.lastPlace());
    head.pipes.push_back(std::move(pipe));
  }

private:
  /// Puts the edges in order, and checks what refers to what.
  void check(Pipe &pipe, SourceRange place) {
    checkNumbers(pipe, place);
    sortEdges(pipe);
    if (!pipe.gaps.empty() && pipe.gaps.back().value + 1 >= pipe.numStages())
      json.diags.report<diag::NoSuchNeighbours>(place, pipe.numStages(),
                                                pipe.gaps.back().value,
                                                pipe.gaps.back().value + 1);
    checkTensors(pipe, place);
    if (pipe.numMicrobatches % pipe.slices != 0)
      json.diags.report<diag::SlicesUneven>(place, pipe.numMicrobatches,
                                            pipe.slices);
    for (const Pipe &other : head.pipes)
      checkOther(pipe, other, place);
  }

  void readMicrobatches(Pipe &pipe) {
    auto ends = json.numbers<2>("microbatches");
    if (!ends)
      return;
    auto [first, last] = *ends;
    if (first < 0 || last < first || last > int64_t(Program::maxMicrobatches))
      return json.wrong("microbatches", "the first, and one past the last");
    pipe.firstMicrobatch = first;
    pipe.numMicrobatches = last - first;
  }

  void readRank(Pipe &pipe) {
    RankId rank(json.number("rank_of_stage", 0, Program::maxRanks - 1));
    if (pipe.numStages() == Program::maxStages)
      return json.tooMany(Program::maxStages, "stages in a pipe");
    pipe.rankOfStage.push_back(rank);
  }

  /// Two stages that are so far apart at least.
  std::optional<std::pair<StageId, StageId>>
  readStages(StringRef what, int64_t apart, StringRef form) {
    auto ends = json.numbers<2>(what);
    if (!ends)
      return std::nullopt;
    auto [from, to] = *ends;
    if (from >= 0 && from < to && to <= int64_t(Program::maxStages) &&
        to - from >= apart)
      return std::pair(StageId(from), StageId(to));
    json.wrong(what, form);
    return std::nullopt;
  }

  void readEdge(EdgeTensors &edge) {
    auto readEnds = [&] {
      if (auto ends =
              readStages("edge", 1, "two stages, the second beyond the first"))
        std::tie(edge.from, edge.to) = *ends;
    };
    bool hasShapes = false;
    auto readShapes = [&] {
      hasShapes = true;
      if (json.string("shapes") != "each")
        json.wrong("shapes", "\"each\"");
    };
    bool isRead =
        json.object("an edge", {{"edge", readEnds},
                                {"shapes", readShapes, /*isOptional=*/true},
                                json.listField("carries", [&] {
                                  readTensor(edge.tensors.emplace_back());
                                })});
    if (isRead && hasShapes != edge.needsShapes())
      json.wrong("shapes", "\"each\" if a size is -1, and absent otherwise");
  }

  void readTensor(Tensor &tensor) {
    auto readName = [&] {
      tensor.name = json.string("name");
      if (!isIdentifier(tensor.name))
        json.wrong("name", "a word, the name of a tensor");
    };
    auto readType = [&] {
      tensor.type = json.word("type", findElementType,
                              "one of " + llvm::join(elementTypeNames(), ", "))
                        .value_or(tensor.type);
    };
    json.object(
        "a tensor",
        {{"name", readName}, {"type", readType}, json.listField("dims", [&] {
           tensor.dims.push_back(
               json.number("dims", Tensor::dynamic, Tensor::maxDim));
         })});
  }

  /// Checks that the ranks and stages exist.
  void checkNumbers(const Pipe &pipe, SourceRange place) {
    auto noRank = llvm::find_if(pipe.rankOfStage, [&](RankId rank) {
      return rank.value >= head.numRanks;
    });
    if (noRank != pipe.rankOfStage.end())
      json.diags.report<diag::ImportJsonRange>(
          place, "rank", noRank->value,
          fmt::format("the program has {}", head.numRanks));
    auto noStage = llvm::find_if(pipe.skipEdges, [&](auto edge) {
      return edge.second.value >= pipe.numStages();
    });
    if (noStage != pipe.skipEdges.end())
      json.diags.report<diag::ImportJsonRange>(
          place, "stage", noStage->second.value,
          fmt::format("pipe `{}` has {}", pipe.name, pipe.numStages()));
  }

  void checkTensors(const Pipe &pipe, SourceRange place) {
    findTensorErrors(pipe, [&](const EdgeTensors &edge, TensorError fault) {
      if (json.diags.saturated())
        return;
      std::string name =
          fmt::format("the edge {} -> {}", edge.from.value, edge.to.value);
      if (fault == TensorError::NoEdge)
        json.diags.report<diag::ImportNoEdge>(place, pipe.name, name);
      else
        json.diags.report<diag::ImportJsonTwice>(place, name);
    });
  }

  void checkOther(const Pipe &pipe, const Pipe &other, SourceRange place) {
    if (auto shared = sharedMicrobatch(pipe, other))
      json.diags.report<diag::ImportJsonConflict>(
          place, other.name, pipe.name, fmt::format("microbatch {}", *shared));
    if (pipe.name == other.name)
      json.diags.report<diag::ImportJsonConflict>(place, other.name, pipe.name,
                                                  "their name");
  }

  JsonReader &json;
  Head &head;
};

} // namespace ppcc
