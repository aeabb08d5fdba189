// Reads the graphs of nodes of a program from text.
#pragma once

#include "TextSection.h"

#include "llvm/ADT/StringMap.h"

namespace ppcc {

/// Reads the items `graph`, `graphs` and `pattern`.
class TextNodes : TextSection {
public:
  TextNodes(TextCursor &text, Head &program, DiagnosticEngine &diags)
      : TextSection(text, program, diags), nodes(program.nodes) {}

  /// `graph F layers 1 [compute:F.L0.attn comm:F.L0.combine<0]`
  bool graph();
  /// `graphs F "main" [0 0 1 -]`
  bool use();
  /// `pattern F B before [F.embed] layer [F.attn B.mlp] after [last:F.mlp]`
  bool pattern();
  /// Checks the patterns, which may stand before the graphs that they order.
  void check();

private:
  using Numbers = llvm::StringMap<uint32_t>;

  bool node(NodeGraph &graph);
  bool nodeName(KindId &part, uint32_t &name, uint32_t *layer);
  bool needs(GraphNode &node, const NodeGraph &graph, SourceRange at);
  bool graphOfStage(GraphUse &use);
  bool checkUse(const GraphUse &use);
  bool places(std::vector<PatternNode> &places);

  NodeGraphs &nodes;
  Numbers laneNumbers, nameNumbers;
  uint64_t numNodes = 0; ///< Of all graphs, and layers.
  std::vector<SourceRange> patternRanges;
};

} // namespace ppcc
