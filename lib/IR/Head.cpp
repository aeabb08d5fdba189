#include "ppcc/IR/Head.h"

using namespace ppcc;

PhaseId Head::phase(StringRef name) {
  auto found = llvm::find(phases, name);
  PhaseId id(found - phases.begin());
  if (found == phases.end())
    phases.push_back(name.str());
  return id;
}

uint32_t Head::file(StringRef name) {
  if (auto *found = findBy(files, name, &SiteFile::name))
    return uint32_t(found - files.data());
  files.push_back({name.str(), false});
  return uint32_t(files.size() - 1);
}

std::optional<PipeId> Head::pipeOfMicrobatch(uint32_t microbatch) const {
  for (PipeId id : pipeIds())
    if (pipes[id.value].hasMicrobatch(microbatch))
      return id;
  return std::nullopt;
}

std::optional<std::pair<PipeId, StageId>>
Head::firstStageOf(RankId rank) const {
  for (PipeId id : pipeIds())
    for (StageId stage : pipes[id.value].stages())
      if (rankOfStage(id, stage) == rank)
        return std::pair(id, stage);
  return std::nullopt;
}

void Head::setKinds(KindTable table, ArrayRef<KindId> renumbered) {
  llvm::erase_if(costs.settings, [&](const CostSetting &setting) {
    return setting.isPerKind() && !table.find(kinds[setting.kind].mnemonic);
  });
  for (CostSetting &setting : costs.settings)
    if (setting.isPerKind())
      setting.kind = renumbered[setting.kind.value];
  kinds = std::move(table);
}

uint64_t Head::totalMicrobatches() const {
  uint64_t total = 0;
  for (const Pipe &pipe : pipes)
    total += pipe.numMicrobatches;
  return total;
}
