// Pipelines as text: `verify,inject-comm,verify`.
#include "ppcc/Basic/Diagnostics/Pass.h"
#include "ppcc/Pass/PassRegistry.h"
#include "ppcc/Support/Suggest.h"

using namespace ppcc;

std::optional<Pipeline> ppcc::parsePipeline(StringRef text,
                                            const PassRegistry &registry,
                                            SourceManager &sources,
                                            DiagnosticEngine &diags) {
  uint32_t file = sources.add(
      "<passes>", llvm::MemoryBuffer::getMemBufferCopy(text, "<passes>"));
  StringRef all = sources.text(file);
  size_t errorsBefore = diags.errorCount();
  Pipeline pipeline;
  if (!all.trim().empty())
    for (StringRef part : llvm::split(all, ',')) {
      StringRef name = part.trim();
      size_t offset = (name.empty() ? part : name).begin() - all.begin();
      SourceRange range{sources.loc(file, offset),
                        sources.loc(file, offset + name.size())};
      if (name.empty())
        diags.report<diag::PipelineExpected>(range);
      else if (!registry.find(name))
        diags.report<diag::UnknownPass>(range, name,
                                        didYouMean(name, registry.names()));
      else
        append(name, registry, pipeline);
    }
  if (diags.errorCount() != errorsBefore)
    return std::nullopt;
  return pipeline;
}

void ppcc::append(StringRef name, const PassRegistry &registry,
                  Pipeline &pipeline) {
  const PassRegistry::Entry *found = registry.find(name);
  auto one = [&](const PassRegistry::Entry *entry) {
    pipeline.push_back({entry->name.str(), entry->kind, entry->pass});
  };
  if (found->pass)
    one(found);
  else
    llvm::for_each(found->sequence, one);
}
