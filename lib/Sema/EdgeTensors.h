// Finds out what the edges between stages carry.
#pragma once

#include "ppcc/IR/Program.h"
#include "ppcc/Sema/Evaluator.h"

namespace ppcc::sema {

struct Cut;

/// The tensors of a clause.
std::vector<Tensor> evaluateTensors(const ast::TensorsItem &clause,
                                    Evaluator &evaluator);

/// Evaluates `output` and `input` of a model and fills
/// Pipe::tensors: a stage takes each of its inputs, by name, from the last of
/// the stages it reads that gives it, and all that they give where nothing is
/// said of its inputs. Reports inputs that nobody gives, or that differ.
/// O(stages + edges, each times its tensors).
void addTensors(const Section &model, const Cut *cut, Evaluator &evaluator, Head &program,
                DiagnosticEngine &diags);

} // namespace ppcc::sema
