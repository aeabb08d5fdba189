// Reads pipes, their edges and what these carry, from JSON.
#include "JsonPipes.h"

#include "ppcc/IR/HeadChecks.h"

using namespace ppcc;
using llvm::StringRef;

void JsonPipes::read() {
  json.list("pipes", [&] {
    Pipe pipe;
    auto readGap = [&] {
      pipe.gaps.push_back(StageId(json.number("gaps", 0, Program::maxStages)));
    };
    auto readTensors = [&] { readEdge(pipe.tensors.emplace_back()); };
    json.object(
        "a pipe",
        {{"name", [&] { pipe.name = json.string("name"); }},
         {"microbatches", [&] { readMicrobatches(pipe); }},
         {"rank_of_stage", [&] { readRankOfStage(pipe); }},
         {"skip_edges", [&] { readSkipEdges(pipe); }},
         {"gaps", [&] { json.list("gaps", readGap); }, /*isOptional=*/true},
         {"slices",
          [&] {
            pipe.slices = json.number("slices", 1, Program::maxMicrobatches);
          },
          /*isOptional=*/true},
         {"tensors", [&] { json.list("tensors", readTensors); },
          /*isOptional=*/true}});
    if (program.pipes.size() == Program::maxPipes)
      return json.tooMany(Program::maxPipes, "pipes");
    places.push_back(json.lastPlace());
    program.pipes.push_back(std::move(pipe));
  });
}

// ---- Keys of a pipe ----

void JsonPipes::readMicrobatches(Pipe &pipe) {
  std::array<int64_t, 2> ends;
  if (!json.numbers("microbatches", ends))
    return;
  if (ends[0] < 0 || ends[1] < ends[0] ||
      ends[1] > int64_t(Program::maxMicrobatches))
    return json.wrong("microbatches", "the first, and one past the last");
  pipe.firstMicrobatch = ends[0];
  pipe.numMicrobatches = ends[1] - ends[0];
}

void JsonPipes::readRankOfStage(Pipe &pipe) {
  json.list("rank_of_stage", [&] {
    int64_t rank = json.number("rank_of_stage", 0, Program::maxRanks - 1);
    if (pipe.numStages() == Program::maxStages)
      return json.tooMany(Program::maxStages, "stages in a pipe");
    pipe.rankOfStage.push_back(RankId(rank));
  });
}

void JsonPipes::readSkipEdges(Pipe &pipe) {
  json.list("skip_edges", [&] {
    std::array<int64_t, 2> edge;
    if (!json.numbers("skip_edges", edge))
      return;
    if (edge[0] < 0 || edge[1] > int64_t(Program::maxStages) ||
        edge[0] + 1 >= edge[1])
      return json.wrong("skip_edges",
                        "pairs of stages, the second more than one beyond the "
                        "first");
    pipe.skipEdges.push_back({StageId(edge[0]), StageId(edge[1])});
  });
}

// ---- Tensors ----

void JsonPipes::readEdge(EdgeTensors &edge) {
  auto readStages = [&] {
    std::array<int64_t, 2> ends;
    if (!json.numbers("edge", ends))
      return;
    if (ends[0] < 0 || ends[1] > int64_t(Program::maxStages) ||
        ends[0] >= ends[1])
      return json.wrong("edge", "two stages, the second beyond the first");
    edge.from = StageId(ends[0]);
    edge.to = StageId(ends[1]);
  };
  auto readShapes = [&] { // Follows from the tensors.
    if (json.string("shapes") != "each")
      json.wrong("shapes", "\"each\"");
  };
  auto readTensors = [&] { readTensor(edge.tensors.emplace_back()); };
  json.object("an edge",
              {{"edge", readStages},
               {"shapes", readShapes, /*isOptional=*/true},
               {"carries", [&] { json.list("carries", readTensors); }}});
}

void JsonPipes::readTensor(Tensor &tensor) {
  auto readName = [&] {
    tensor.name = json.string("name");
    if (!isName(tensor.name))
      json.wrong("name", "a word, the name of a tensor");
  };
  auto readType = [&] {
    auto type = findElementType(json.string("type"));
    if (!type)
      return json.wrong("type",
                        "one of " + llvm::join(elementTypeNames(), ", "));
    tensor.type = *type;
  };
  auto readDim = [&] {
    tensor.dims.push_back(json.number("dims", Tensor::varies, Tensor::maxDim));
  };
  json.object("a tensor", {{"name", readName},
                           {"type", readType},
                           {"dims", [&] { json.list("dims", readDim); }}});
}

// ---- Checks ----

void JsonPipes::check() {
  for (auto [i, pipe] : llvm::enumerate(program.pipes)) {
    checkNumbers(pipe, places[i]);
    sortEdges(pipe);
    checkGaps(pipe, places[i]);
    checkTensors(pipe, places[i]);
    if (pipe.numMicrobatches % pipe.slices != 0)
      json.diags.report<diag::SlicesUneven>(places[i], pipe.numMicrobatches,
                                            pipe.slices);
    for (const Pipe &other : llvm::ArrayRef(program.pipes).take_front(i))
      checkOther(pipe, other, places[i]);
  }
}

/// Checks that the ranks and stages exist.
void JsonPipes::checkNumbers(const Pipe &pipe, SourceRange place) {
  auto noRank = llvm::find_if(pipe.rankOfStage, [&](RankId rank) {
    return rank.value >= program.numRanks;
  });
  if (noRank != pipe.rankOfStage.end())
    json.diags.report<diag::ImportJsonRange>(
        place, "rank", noRank->value,
        fmt::format("the program has {}", program.numRanks));
  auto noStage = llvm::find_if(pipe.skipEdges, [&](auto edge) {
    return edge.second.value >= pipe.numStages();
  });
  if (noStage != pipe.skipEdges.end())
    json.diags.report<diag::ImportJsonRange>(
        place, "stage", noStage->second.value,
        fmt::format("pipe `{}` has {}", pipe.name, pipe.numStages()));
}

void JsonPipes::checkGaps(const Pipe &pipe, SourceRange place) {
  if (!pipe.gaps.empty() && pipe.gaps.back().value + 1 >= pipe.numStages())
    json.diags.report<diag::NoSuchNeighbours>(place, pipe.numStages(),
                                              pipe.gaps.back().value,
                                              pipe.gaps.back().value + 1);
}

void JsonPipes::checkTensors(const Pipe &pipe, SourceRange place) {
  findTensorFaults(pipe, [&](const EdgeTensors &edge, TensorFault fault) {
    if (json.diags.saturated())
      return;
    std::string name =
        fmt::format("the edge {} -> {}", edge.from.value, edge.to.value);
    if (fault == TensorFault::NoEdge)
      json.diags.report<diag::ImportNoEdge>(place, pipe.name, name);
    else
      json.diags.report<diag::ImportJsonTwice>(place, name);
  });
}

void JsonPipes::checkOther(const Pipe &pipe, const Pipe &other,
                           SourceRange place) {
  if (auto shared = sharedMicrobatch(pipe, other))
    json.diags.report<diag::ImportJsonConflict>(
        place, other.name, pipe.name, fmt::format("microbatch {}", *shared));
  if (pipe.name == other.name)
    json.diags.report<diag::ImportJsonConflict>(place, other.name, pipe.name,
                                                "their name");
}
