#include "ppcc/IR/Program.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"

#include <algorithm>
#include <charconv>

using namespace ppcc;
using llvm::SmallVector;
using llvm::SmallVectorImpl;
using llvm::StringRef;

RankId Program::rankOf(ActionId id) const {
  auto after = std::upper_bound(rankStarts.begin(), rankStarts.end(), id.value);
  return RankId(after - rankStarts.begin() - 1);
}

void Program::reserve(size_t rows) {
  kindColumn.reserve(rows);
  pipeColumn.reserve(rows);
  stageColumn.reserve(rows);
  microbatchColumn.reserve(rows);
  peerColumn.reserve(rows);
  phaseColumn.reserve(rows);
  siteColumn.reserve(rows);
}

void Program::layout(llvm::ArrayRef<uint32_t> rowsOfRank) {
  rankStarts.assign(1, 0);
  for (uint32_t rows : rowsOfRank)
    rankStarts.push_back(rankStarts.back() + rows);
  size_t rows = rankStarts.back();
  kindColumn.resize(rows);
  pipeColumn.resize(rows);
  stageColumn.resize(rows);
  microbatchColumn.resize(rows);
  peerColumn.resize(rows);
  phaseColumn.resize(rows);
  siteColumn.resize(rows);
}

void Program::set(ActionId id, const Action &action) {
  size_t i = id.value;
  kindColumn[i] = static_cast<uint8_t>(action.kind.value);
  pipeColumn[i] = static_cast<uint8_t>(action.pipe.value);
  stageColumn[i] = static_cast<uint16_t>(action.stage.value);
  microbatchColumn[i] = action.microbatch;
  peerColumn[i] = static_cast<uint16_t>(action.peer.value);
  phaseColumn[i] = static_cast<uint16_t>(action.phase.value |
                                         (action.joined ? joinedBit : 0));
  siteColumn[i] = action.site.value;
}

Program Program::withoutRows(bool keepFacts) const {
  Program copy;
  copy.name = name;
  copy.params = params;
  copy.numRanks = numRanks;
  copy.pipes = pipes;
  copy.hasBackward = hasBackward;
  copy.kinds = kinds;
  copy.costs = costs;
  copy.stageLayers = stageLayers;
  copy.nodes = nodes;
  copy.calls = calls;
  copy.phases = phases;
  copy.files = files;
  copy.sites = sites;
  if (keepFacts) {
    copy.provenUnder = provenUnder;
    copy.preconnect = preconnect;
  }
  return copy;
}

PhaseId Program::phase(StringRef name) {
  auto found = llvm::find(phases, name);
  if (found == phases.end()) {
    phases.push_back(name.str());
    return PhaseId(phases.size() - 1);
  }
  return PhaseId(found - phases.begin());
}

uint32_t Program::file(StringRef name) {
  auto found = llvm::find_if(
      files, [&](const SiteFile &file) { return file.name == name; });
  if (found == files.end()) {
    files.push_back({name.str(), false});
    return static_cast<uint32_t>(files.size() - 1);
  }
  return static_cast<uint32_t>(found - files.begin());
}

std::optional<PipeId> Program::pipeOfMicrobatch(uint32_t microbatch) const {
  for (size_t i = 0; i != pipes.size(); ++i)
    if (pipes[i].hasMicrobatch(microbatch))
      return PipeId(i);
  return std::nullopt;
}

std::optional<std::pair<PipeId, StageId>>
Program::firstStageOf(RankId rank) const {
  for (size_t pipe = 0; pipe != pipes.size(); ++pipe)
    if (auto stage = llvm::find(pipes[pipe].rankOfStage, rank);
        stage != pipes[pipe].rankOfStage.end())
      return std::pair(PipeId(pipe),
                       StageId(stage - pipes[pipe].rankOfStage.begin()));
  return std::nullopt;
}

void Program::setKinds(KindTable table, llvm::ArrayRef<KindId> renumbered) {
  for (uint8_t &kind : kindColumn)
    kind = static_cast<uint8_t>(renumbered[kind].value);
  for (std::vector<CostSetting> *settings : {&costs.actions, &costs.memory}) {
    llvm::erase_if(*settings, [&](CostSetting &setting) {
      return !table.find(kinds[setting.kind].letters);
    });
    for (CostSetting &setting : *settings)
      setting.kind = renumbered[setting.kind.value];
  }
  llvm::erase_if(costs.scales, [&](MicrobatchScale &scale) {
    return scale.kind && !table.find(kinds[*scale.kind].letters);
  });
  for (MicrobatchScale &scale : costs.scales)
    if (scale.kind)
      scale.kind = renumbered[scale.kind->value];
  kinds = std::move(table);
}

std::optional<ActionId> Program::firstMessage() const {
  for (uint32_t row = 0; row != size(); ++row)
    if (!kindOf(ActionId(row)).isCompute())
      return ActionId(row);
  return std::nullopt;
}

uint64_t Program::totalMicrobatches() const {
  uint64_t total = 0;
  for (const Pipe &pipe : pipes)
    total += pipe.numMicrobatches;
  return total;
}

/// The stages below (`step` -1) or above (+1) `stage` that share an edge with
/// it, ascending.
static SmallVector<StageId, 2> neighbours(const Pipe &pipe, StageId stage,
                                          int step) {
  SmallVector<StageId, 2> result;
  bool isInside =
      step < 0 ? stage.value > 0 : stage.value + 1 < pipe.numStages();
  if (isInside && pipe.hasEdgeToNext(StageId(stage.value - (step < 0))))
    result.push_back(StageId(stage.value + step));
  for (auto [from, to] : pipe.skipEdges)
    if ((step < 0 ? to : from) == stage)
      result.push_back(step < 0 ? from : to);
  llvm::sort(result);
  return result;
}

SmallVector<StageId, 2> ppcc::sourcesOf(const Pipe &pipe, StageId stage,
                                        uint8_t slotBit) {
  if (slotBit == slot::WeightGrad)
    return {};
  return neighbours(pipe, stage, slotBit == slot::Output ? -1 : 1);
}

SmallVector<StageId, 2> ppcc::readersOf(const Pipe &pipe, StageId stage,
                                        uint8_t slotBit) {
  if (slotBit == slot::WeightGrad)
    return {};
  return neighbours(pipe, stage, slotBit == slot::Output ? 1 : -1);
}

static void appendNumber(uint32_t number, SmallVectorImpl<char> &out) {
  char digits[10];
  auto end = std::to_chars(digits, digits + sizeof(digits), number).ptr;
  out.append(digits, end);
}

void ppcc::appendCell(const Program &program, const Action &action,
                      SmallVectorImpl<char> &out) {
  const KindInfo &info = program.kinds[action.kind];
  if (info.scope != KindScope::Rank)
    appendNumber(action.stage.value, out);
  out.append(info.letters.begin(), info.letters.end());
  if (action.hasMicrobatch())
    appendNumber(action.microbatch, out);
  if (!action.hasPeer())
    return;
  bool up = (info.defines & slot::Output) ==
            (info.kindClass == KindClass::Send ? slot::Output : 0);
  if (action.peer.value != action.stage.value + (up ? 1 : -1)) {
    out.push_back(info.kindClass == KindClass::Send ? '>' : '<');
    appendNumber(action.peer.value, out);
  }
}

std::string ppcc::cell(const Program &program, const Action &action) {
  llvm::SmallString<16> text;
  appendCell(program, action, text);
  return text.str().str();
}
