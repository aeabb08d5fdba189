// Finds out what the edges between stages carry.
#include "Layers.h"
#include "ppcc/Basic/Diagnostics/Sema.h"
#include "ppcc/IR/HeadChecks.h"

using namespace ppcc;
using namespace ppcc::sema;

namespace {

/// Tensors that stages give and take, and edges carry.
constexpr uint64_t maxTensors = 1u << 20;

/// What is said of the tensors of a stage, and where; nothing without a clause.
struct StageTensors {
  const ast::TensorsItem *clause = nullptr;
  std::vector<Tensor> tensors;

  const Tensor *find(StringRef name) const {
    return findBy(tensors, name, &Tensor::name);
  }
  SourceRange rangeOf(StringRef name) const {
    return clause->tensors[find(name) - tensors.data()].name.range;
  }
};

struct TensorBuilder {
  const Section &model;
  const ModelPartition *partition;
  const InstantiationContext &context;
  Evaluator &evaluator = context.evaluator;
  DiagnosticEngine &diags = context.diags;
  Head &head = context.head;

  void build() {
    for (Pipe &pipe : head.pipes) {
      size_t before = diags.errorCount();
      outputs.assign(pipe.numStages(), {});
      inputs.assign(pipe.numStages(), {});
      Evaluator::Frame frame(evaluator, model.numLocals);
      ofLayers(pipe);
      for (auto [clause, slot] : model.tensors)
        evaluate(*clause, slot, pipe);
      if (diags.errorCount() == before)
        connect(pipe);
    }
  }

  void evaluate(const ast::TensorsItem &clause, uint32_t slot,
                const Pipe &pipe) {
    if (!clause.pipe.text.empty() && clause.pipe.text != pipe.name)
      return;
    evaluator.clearFailed();
    int64_t from = 0, to = pipe.numStages();
    if (clause.from) {
      from = evaluator.evalInRange(clause.from, "a stage", 0, to);
      to = evaluator.evalInRange(clause.to, "a stage", from, to);
    }
    std::vector<StageTensors> &list =
        clause.name.text == "input" ? inputs : outputs;
    for (int64_t s = from; s < to && !evaluator.failed(); ++s) {
      evaluator.local(slot) = {.i = s};
      list[s] = {&clause, {}};
      if (!count(clause, clause.tensors.size()))
        return;
      list[s].tensors = evaluateTensors(clause, evaluator);
    }
  }

  /// Counts tensors of stages and edges; false, and reported, when they are too
  /// many.
  bool count(const ast::TensorsItem &clause, size_t tensors) {
    numTensors += tensors;
    if (numTensors > maxTensors)
      evaluator.refuse<diag::OutOfRange>(clause.name.range,
                                         "the number of tensors", numTensors, 0,
                                         maxTensors);
    return numTensors <= maxTensors;
  }

  /// What stages give whose layers say it; one without such a layer passes on
  /// what it was given.
  void ofLayers(const Pipe &pipe) {
    if (!partition)
      return;
    const PipePartition &made =
        partition->of(PipeId(&pipe - head.pipes.data()));
    size_t part = 0;
    StageTensors given;
    for (auto [s, stage] : llvm::enumerate(made.stages)) {
      for (; part + 1 < made.firstStage.size() && s == made.firstStage[part];
           ++part)
        given = {};
      for (PlacedLayer layer : stage)
        if (const LayerFacts &facts = partition->layers[layer.layer];
            facts.gives)
          given = {facts.clause, *facts.gives};
      if (given.clause && !count(*given.clause, given.tensors.size()))
        return;
      outputs[s] = given;
    }
  }

  /// Fills `pipe.tensors`.
  void connect(Pipe &pipe) {
    std::vector<SmallVector<StageId, 2>> sources(pipe.numStages());
    for (auto [from, to] : pipe.skipEdges)
      sources[to.value].push_back(from);
    for (uint32_t s = 1; s < pipe.numStages(); ++s)
      if (pipe.hasEdgeToNext(StageId(s - 1)))
        sources[s].push_back(StageId(s - 1)); // Behind all that skip some.
    for (uint32_t s = 0; s != pipe.numStages(); ++s)
      if (inputs[s].clause && !sources[s].empty()) // Else the model's input.
        take(pipe, StageId(s), sources[s]);
      else
        for (StageId source : sources[s])
          if (const StageTensors &given = outputs[source.value];
              given.clause && count(*given.clause, given.tensors.size()))
            add(pipe, source, StageId(s), given.tensors);
    sortTensors(pipe);
  }

  /// An edge of which nothing is said is none in the list.
  static void add(Pipe &pipe, StageId from, StageId to,
                  std::vector<Tensor> tensors) {
    if (!tensors.empty())
      pipe.tensors.push_back({from, to, std::move(tensors)});
  }

  /// Takes the inputs of a stage from its sources.
  void take(Pipe &pipe, StageId reader, ArrayRef<StageId> sources) {
    const StageTensors &wanted = inputs[reader.value];
    std::map<StageId, std::vector<Tensor>> taken;
    for (const Tensor &tensor : wanted.tensors)
      if (auto source = sourceOf(tensor.name, sources)) {
        taken[*source].push_back(tensor);
        compare(tensor, reader, *source);
      } else if (evaluator.fail(diag::InputWithoutProducer,
                                wanted.rangeOf(tensor.name))) {
        reportMissing(tensor, reader, sources);
      }
    for (StageId source : sources) {
      if (outputs[source.value].clause && !taken.count(source) &&
          evaluator.fail(diag::UnusedEdge, wanted.clause->name.range))
        diags
            .report<diag::UnusedEdge>(wanted.clause->name.range, reader.value,
                                      source.value)
            .note(outputs[source.value].clause->name.range,
                  "what stage {} gives", source.value);
      add(pipe, source, reader, std::move(taken[source]));
    }
  }

  /// The last source that gives the tensor or, when none does, that says
  /// nothing of what it gives.
  std::optional<StageId> sourceOf(StringRef name,
                                  ArrayRef<StageId> sources) const {
    for (StageId source : llvm::reverse(sources))
      if (outputs[source.value].find(name))
        return source;
    for (StageId source : llvm::reverse(sources))
      if (!outputs[source.value].clause)
        return source;
    return std::nullopt;
  }

  void compare(const Tensor &wanted, StageId reader, StageId source) {
    const StageTensors &given = outputs[source.value];
    if (!given.clause || *given.find(wanted.name) == wanted)
      return;
    SourceRange range = inputs[reader.value].rangeOf(wanted.name);
    if (evaluator.fail(diag::InputDiffers, range))
      diags
          .report<diag::InputDiffers>(range, reader.value, tensorText(wanted),
                                      source.value,
                                      tensorText(*given.find(wanted.name)))
          .note(given.rangeOf(wanted.name), "stage {} gives it here",
                source.value);
  }

  void reportMissing(const Tensor &tensor, StageId reader,
                     ArrayRef<StageId> sources) {
    auto builder = diags.report<diag::InputWithoutProducer>(
        inputs[reader.value].rangeOf(tensor.name), reader.value, tensor.name);
    for (StageId source : sources.take_back(4))
      builder.note(outputs[source.value].clause->name.range,
                   "what stage {} gives", source.value);
  }

  std::vector<StageTensors> outputs{}, inputs{}; ///< By stage of the pipe.
  uint64_t numTensors = 0;
};

} // namespace

std::vector<Tensor> sema::evaluateTensors(const ast::TensorsItem &clause,
                                          Evaluator &evaluator) {
  std::vector<Tensor> tensors;
  for (const ast::TensorDecl &decl : clause.tensors) {
    Tensor &result = tensors.emplace_back(
        Tensor{decl.name.text.str(), *findElementType(decl.type.text), {}});
    for (const ast::Expr *dim : decl.dims) {
      if (!evaluator.step(decl.name.range))
        break;
      result.dims.push_back(
          dim ? evaluator.evalInRange(dim, "a size", 0, Tensor::maxDim)
              : Tensor::dynamic);
    }
  }
  return tensors;
}

void sema::addTensors(const Section &model, const ModelPartition *partition,
                      const InstantiationContext &context) {
  if (partition || !model.tensors.empty())
    TensorBuilder{model, partition, context}.build();
}
