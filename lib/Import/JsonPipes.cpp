// Reads pipes, their edges and what these carry, from JSON.
#include "JsonPipes.h"

#include "ppcc/IR/Reading.h"

using namespace ppcc;
using llvm::StringRef;

const JsonKey<JsonPipes> JsonPipes::keys[] = {
    {"name", &JsonPipes::readName},
    {"microbatches", &JsonPipes::readMicrobatches},
    {"rank_of_stage", &JsonPipes::readRankOfStage},
    {"skip_edges", &JsonPipes::readSkipEdges},
    {"gaps", &JsonPipes::readGaps, /*isOptional=*/true},
    {"slices", &JsonPipes::readSlices, /*isOptional=*/true},
    {"tensors", &JsonPipes::readEdges, /*isOptional=*/true},
};
const JsonKey<JsonPipes> JsonPipes::edgeKeys[] = {
    {"edge", &JsonPipes::readEdge},
    {"shapes", &JsonPipes::readShapes, /*isOptional=*/true},
    {"carries", &JsonPipes::readTensors},
};
const JsonKey<JsonPipes> JsonPipes::tensorKeys[] = {
    {"name", &JsonPipes::readTensorName},
    {"type", &JsonPipes::readTensorType},
    {"dims", &JsonPipes::readTensorDims},
};

void JsonPipes::read() {
  json.list("pipes", [&] {
    pipe = Pipe();
    json.object<JsonPipes>("a pipe", keys, *this);
    if (program.pipes.size() == Program::maxPipes)
      return json.tooMany(Program::maxPipes, "pipes");
    places.push_back(json.lastPlace());
    program.pipes.push_back(std::move(pipe));
  });
}

// ---- Keys of a pipe ----

void JsonPipes::readMicrobatches() {
  std::array<int64_t, 2> ends;
  if (!json.numbers("microbatches", ends))
    return;
  if (ends[0] < 0 || ends[1] < ends[0] ||
      ends[1] > int64_t(Program::maxMicrobatches))
    return json.wrong("microbatches", "the first, and one past the last");
  pipe.firstMicrobatch = ends[0];
  pipe.numMicrobatches = ends[1] - ends[0];
}

void JsonPipes::readRankOfStage() {
  json.list("rank_of_stage", [&] {
    int64_t rank = json.number("rank_of_stage", 0, Program::maxRanks - 1);
    if (pipe.numStages() == Program::maxStages)
      return json.tooMany(Program::maxStages, "stages in a pipe");
    pipe.rankOfStage.push_back(RankId(rank));
  });
}

void JsonPipes::readSkipEdges() {
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

void JsonPipes::readGaps() {
  json.list("gaps", [&] {
    pipe.gaps.push_back(StageId(json.number("gaps", 0, Program::maxStages)));
  });
}

void JsonPipes::readSlices() {
  pipe.slices = json.number("slices", 1, Program::maxMicrobatches);
}

// ---- Tensors ----

void JsonPipes::readEdges() {
  json.list("tensors", [&] {
    edge = EdgeTensors();
    json.object<JsonPipes>("an edge", edgeKeys, *this);
    pipe.tensors.push_back(std::move(edge));
  });
}

void JsonPipes::readEdge() {
  std::array<int64_t, 2> ends;
  if (!json.numbers("edge", ends))
    return;
  if (ends[0] < 0 || ends[1] > int64_t(Program::maxStages) ||
      ends[0] >= ends[1])
    return json.wrong("edge", "two stages, the second beyond the first");
  edge.from = StageId(ends[0]);
  edge.to = StageId(ends[1]);
}

/// Follows from the tensors.
void JsonPipes::readShapes() {
  if (json.string("shapes") != "each")
    json.wrong("shapes", "\"each\"");
}

void JsonPipes::readTensors() {
  json.list("carries", [&] {
    tensor = Tensor();
    json.object<JsonPipes>("a tensor", tensorKeys, *this);
    edge.tensors.push_back(std::move(tensor));
  });
}

void JsonPipes::readTensorName() {
  tensor.name = json.string("name");
  if (!isWord(tensor.name))
    json.wrong("name", "a word, the name of a tensor");
}

void JsonPipes::readTensorType() {
  auto type = findElementType(json.string("type"));
  if (!type)
    return json.wrong("type", "one of " + llvm::join(elementTypeNames(), ", "));
  tensor.type = *type;
}

void JsonPipes::readTensorDims() {
  json.list("dims", [&] {
    tensor.dims.push_back(json.number("dims", Tensor::varies, Tensor::maxDim));
  });
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
