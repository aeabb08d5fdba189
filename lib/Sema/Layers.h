// Evaluates the layers of a model, and cuts them into stages.
#pragma once

#include "ppcc/IR/Tensors.h"
#include "ppcc/Sema/Instance.h"

#include <map>

namespace ppcc::sema {

/// What a layer says of itself.
struct LayerFacts {
  std::map<KindId, Time> times;
  std::map<std::pair<KindId, llvm::StringRef>, Time> nodes; ///< By name.
  std::map<KindId, Amount> memory;
  Amount atRest = 0;
  std::optional<std::vector<Tensor>> gives;
  const ast::TensorsItem *clause = nullptr; ///< Of `gives`.
  std::vector<const ast::ChainStmt *> chains;

  bool hasChain(llvm::StringRef letters) const;
};

/// A layer where it stands.
struct PlacedLayer {
  uint32_t layer = 0;      ///< Index into Section::layers.
  bool isNumbered = false; ///< `F.L0.mlp`, not `F.mlp`.
  auto operator<=>(const PlacedLayer &) const = default;
};

/// The layers of each stage.
struct StageCut {
  std::vector<std::vector<PlacedLayer>> stages;
  std::vector<uint32_t> firstStage; ///< By part, and the end of the last.
};

/// A model cut into stages: pipes with as many stages are cut alike.
struct Cut {
  std::vector<LayerFacts> layers; ///< Of the model, as declared.
  std::vector<StageCut> cuts;
  std::vector<uint32_t> ofPipe; ///< Indices into `cuts`.

  const StageCut &of(PipeId pipe) const { return cuts[ofPipe[pipe.value]]; }
};

/// Evaluates the layers and cuts them as `layout` or the model says: evenly
/// unless told. Nothing for a model without layers, and after a report.
/// O(layers + stages) for each number of stages that pipes have, times
/// log(times) where costs are to be even.
std::optional<Cut> cutModel(const Section &model, const LayoutChoice &layout,
                            const Limits &limits, Evaluator &evaluator,
                            Head &program, DiagnosticEngine &diags);

/// Adds what stages take as sums over their layers, the letters of their
/// layers, and the edges between parts.
void addLayers(const Section &model, const Cut &cut, Head &program,
               DiagnosticEngine &diags);

} // namespace ppcc::sema
