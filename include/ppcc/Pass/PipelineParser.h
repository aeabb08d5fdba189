// Pipelines as text: `verify,inject-comm{order=sweep},verify`.
#pragma once

#include "ppcc/Pass/PassManager.h"
#include "ppcc/Pass/PassRegistry.h"

namespace ppcc {

/// The pipeline that `text` describes, or reports, at places in a buffer called
/// `<passes>`, all that is wrong with it. An empty text is an empty pipeline.
std::optional<Pipeline> parsePipeline(StringRef text,
                                      const PassRegistry &registry,
                                      SourceManager &sources,
                                      DiagnosticEngine &diags);

/// Appends the pass called `name`, with its default options, or the passes of
/// that alias.
void append(StringRef name, const PassRegistry &registry, Pipeline &pipeline);

} // namespace ppcc
