// Reads pipes, their edges and what these carry, from text.
#pragma once

#include "TextSection.h"

#include <array>
#include <map>

namespace ppcc {

/// Reads the items `pipe`, `skip`, `gap` and `carry`. An edge stands behind its
/// pipe.
class TextPipes : TextSection {
public:
  TextPipes(TextCursor &text, Head &program, DiagnosticEngine &diags)
      : TextSection(text, program, diags) {}

  /// `pipe "main" microbatches 0..4 ranks [0 1 2 3]`
  bool pipe();
  /// `skip "main" 0 -> 3`
  bool skip();
  /// `gap "main" 1 -> 2`
  bool gap();
  /// `carry "main" 0 -> 1 hidden[2, ?] bf16 mask[2] i32`
  bool carry();
  /// Puts the edges in order. `carry` may stand before the `skip` or `gap` of
  /// its edge.
  void finish();
  /// Checks that the program has the ranks; without `ranks` it has those that
  /// the pipes use.
  void checkRanks(bool ranksGiven);

private:
  /// What may be an edge.
  struct Edge {
    PipeId pipe;
    StageId from, to;
  };
  std::optional<Edge> edge();
  Pipe &pipeOf(const Edge &edge) { return program.pipes[edge.pipe.value]; }

  bool microbatches(Pipe &pipe);
  bool slices(Pipe &pipe);
  bool rankOfStage(Pipe &pipe);
  bool addPipe(Pipe pipe);
  bool tensor(Tensor &tensor);
  bool dim(Tensor &tensor);

  std::vector<SourceRange> pipeRanges; ///< The keys of those read so far.
  std::map<std::array<uint32_t, 3>, SourceRange>
      tensorRanges; ///< By pipe and stages.
};

} // namespace ppcc
