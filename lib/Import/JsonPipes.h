// Reads pipes, their edges and what these carry, from JSON.
#pragma once

#include "JsonReader.h"
#include "ppcc/IR/Program.h"

namespace ppcc {

/// Reads the key `pipes` of docs/program-format.md.
class JsonPipes {
public:
  JsonPipes(ProgramJson &json, Head &program) : json(json), program(program) {}

  /// The key `pipes`.
  void read();
  /// Puts the edges in order, and checks what refers to what.
  void check();

private:
  void readMicrobatches(Pipe &pipe);
  void readRankOfStage(Pipe &pipe);
  void readSkipEdges(Pipe &pipe);
  void readEdge(EdgeTensors &edge);
  void readTensor(Tensor &tensor);

  void checkNumbers(const Pipe &pipe, SourceRange place);
  void checkGaps(const Pipe &pipe, SourceRange place);
  void checkTensors(const Pipe &pipe, SourceRange place);
  void checkOther(const Pipe &pipe, const Pipe &other, SourceRange place);

  ProgramJson &json;
  Head &program;
  std::vector<SourceRange> places; ///< Of the pipes.
};

} // namespace ppcc
