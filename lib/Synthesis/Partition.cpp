// How many layers each stage gets.
#include "ppcc/Synthesis/Partition.h"
#include "SynthesisContext.h"

#include "ppcc/Parse/Parser.h"

using namespace ppcc;
using namespace ppcc::synthesis;

Partition synthesis::evenPartition(uint32_t layers, uint32_t stages) {
  Partition even(stages, layers / stages);
  for (uint32_t stage = 0; stage != layers % stages; ++stage)
    ++even[stage];
  return even;
}

std::optional<Partition> synthesis::searchPartitions(
    uint32_t layers, uint32_t stages, unsigned maxTried,
    function_ref<std::optional<Time>(const Partition &)> valueOf) {
  std::optional<Partition> best;
  Time bestValue = 0;
  std::set<Partition> seen;
  auto isBetter = [&](const Partition &layers) {
    if (seen.size() == maxTried || !seen.insert(layers).second)
      return false;
    auto value = valueOf(layers);
    if (!value || (best && *value >= bestValue))
      return false;
    best = layers;
    bestValue = *value;
    return true;
  };
  Partition from = evenPartition(layers, stages);
  isBetter(from);
  // From the best so far a layer goes, or several, from one stage to another;
  // the stages between hand on as many.
  for (bool isImproving = true; isImproving;) {
    isImproving = false;
    for (uint32_t count = 1; count <= 2; ++count)
      for (uint32_t distance = 1; distance < stages; ++distance)
        for (uint32_t stage = 0; stage + distance < stages; ++stage)
          for (bool isUp : {true, false}) {
            Partition next = from;
            uint32_t &donor = next[isUp ? stage : stage + distance],
                     &taker = next[isUp ? stage + distance : stage];
            if (donor <= count)
              continue;
            donor -= count;
            taker += count;
            if (isBetter(next)) {
              from = std::move(next);
              isImproving = true;
            }
          }
  }
  return best;
}

bool synthesis::chooseLayout(SynthesisContext &context) {
  SynthesisRequest &userRequest = context.userRequest;
  Session &session = context.session;
  SynthesisRequest bare = userRequest; // Costs of layers need them.
  bare.request.costs = {};
  SynthesisContext first(bare, session);
  if (!first.readPlacement(userRequest.request.params))
    return false;
  const Program &program = first.program;
  uint32_t stages = program.pipes().front().numStages();
  std::string letters = llvm::join(program.stageLayers(), "");
  if (userRequest.layers != "model") {
    auto parsed =
        parseLayout(userRequest.layers,
                    session.sources.loc(
                        session.sources.add(
                            "--layers", llvm::MemoryBuffer::getMemBuffer(
                                            userRequest.layers, "--layers")),
                        0),
                    session.diags);
    if (!parsed)
      return false;
    if (parsed->size() != 1)
      return first.refuse(
          "--layers has bars, but the search chooses the stages");
    letters = parsed->front();
  }
  if (letters.size() < stages)
    return first.refuse(fmt::format("there are {} layers for {} stages",
                                    letters.size(), stages));
  auto layoutOf = [&](const Partition &layers) {
    std::vector<StringRef> parts;
    StringRef rest = letters;
    for (uint32_t count : layers) {
      parts.push_back(rest.take_front(count));
      rest = rest.drop_front(count);
    }
    return llvm::join(parts, "|");
  };
  // Only so many, and each quickly: what is best shows by then.
  constexpr unsigned maxPartitions = 2000, passesEach = 8;
  auto found = searchPartitions(
      letters.size(), stages, maxPartitions,
      [&](const Partition &layers) -> std::optional<Time> {
        if (userRequest.stop && *userRequest.stop)
          return std::nullopt;
        Session quiet(&session.sources.fileSystem());
        SynthesisRequest one = userRequest;
        one.request.layout = layoutOf(layers);
        one.layers.clear();
        one.recompute = one.offload = false;
        auto instance =
            SynthesisContext(one, quiet).instance(one.request.params);
        if (!instance)
          return std::nullopt;
        SearchOptions options;
        options.budget = uint64_t(instance->problem.numActions) * passesEach;
        options.refines = false;
        SearchResult found = search(instance->problem, {}, options);
        context.actions += found.actions;
        return found.order.empty() ? std::nullopt : std::optional(found.value);
      });
  // Without any, what is wrong with an even one is reported.
  userRequest.request.layout =
      layoutOf(found.value_or(evenPartition(letters.size(), stages)));
  return true;
}
