// Evaluates the layers of a model, cuts them into stages, and makes what
// follows from the cut: costs, graphs, tensors.
#pragma once

#include "Instantiate.h"

namespace ppcc::sema {

/// What a layer says of itself.
struct LayerFacts {
  /// What a cost is of, with the name of a node.
  using Key = std::tuple<Cost, KindId, StringRef>;
  std::map<Key, int64_t> costs;
  std::optional<std::vector<Tensor>> gives;
  const ast::TensorsItem *clause = nullptr; ///< Of `gives`.
  std::vector<const ast::ChainStmt *> chains;

  bool hasChain(StringRef mnemonic) const;
  /// The costs of whole actions.
  std::map<KindId, Time> times() const;
};

/// A layer where it stands.
struct PlacedLayer {
  uint32_t layer = 0;      ///< Index into Section::layers.
  bool isNumbered = false; ///< `F.L0.mlp`, not `F.mlp`.
  auto operator<=>(const PlacedLayer &) const = default;
};

/// The layers of each stage.
struct PipePartition {
  std::vector<std::vector<PlacedLayer>> stages;
  std::vector<uint32_t> firstStage; ///< By part, and the end of the last.
};

/// A model cut into stages: pipes with as many stages are cut alike.
struct ModelPartition {
  std::vector<LayerFacts> layers; ///< Of the model, as declared.
  std::vector<PipePartition> partitions;
  std::vector<uint32_t> ofPipe; ///< Indices into `cuts`.

  const PipePartition &of(PipeId pipe) const {
    return partitions[ofPipe[pipe.value]];
  }
};

/// Evaluates the layers and cuts them as `layout` or the model says: evenly
/// unless given. Adds what stages take as sums over their layers, the letters
/// of their layers, and the edges between parts. Nothing for a model without
/// layers, and after a report. O(layers + stages) for each number of stages
/// that pipes have, times log(times) where costs are to be even.
std::optional<ModelPartition>
partitionModel(const Section &model, const LayoutOverride &layout,
               const InstantiationContext &context);

/// Fills Head::nodes, for each stage of each pipe of the head, with the nodes
/// of its layers one after another, and checks that the patterns suit them.
/// Reports every error. O(layers of all stages + nodes of graphs that differ,
/// times the patterns).
void buildGraphs(const Section &model, const ModelPartition &partition,
                 const InstantiationContext &context);

/// The tensors of a clause.
std::vector<Tensor> evaluateTensors(const ast::TensorsItem &clause,
                                    Evaluator &evaluator);

/// Evaluates `output` and `input` of a model and fills
/// Pipe::tensors: a stage takes each of its inputs, by name, from the last of
/// the stages it reads that gives it, and all that they give where nothing is
/// said of its inputs. Reports inputs that nobody gives, or that differ.
/// O(stages + edges, each times its tensors).
void addTensors(const Section &model, const ModelPartition *partition,
                const InstantiationContext &context);

} // namespace ppcc::sema
