// Checks of what programs say in their heads, and names and places that their
// readers make, whatever the format.
#include "ppcc/IR/HeadChecks.h"
#include "ppcc/Basic/Diagnostics/Expand.h"
#include "ppcc/Basic/Diagnostics/IR.h"
#include "ppcc/Basic/Diagnostics/Sema.h"
#include "ppcc/Basic/Diagnostics/Simulation.h"
#include "ppcc/Basic/Diagnostics/Verify.h"

using namespace ppcc;

KindId KindDeclarations::declare(KindInfo info) {
  KindId kind = kinds.declare(std::move(info));
  for (Named &named : current) {
    named.by = kind;
    all.push_back(std::move(named));
  }
  current.clear();
  return kind;
}

void KindDeclarations::resolve(
    function_ref<void(StringRef name, SourceRange at)> unknown) {
  for (const Named &named : all) {
    auto kind = kinds.find(named.name);
    KindInfo &info = kinds.declared(named.by);
    if (!kind)
      unknown(named.name, named.at);
    else if (named.member)
      info.*named.member = *kind;
    else
      info.rules[named.rule].kinds.push_back(*kind);
  }
}

SiteId CellSites::add(uint32_t line, uint32_t column) {
  Head &head = program.editHead();
  if (!file) {
    file = uint32_t(head.files.size());
    head.files.push_back({fileName.str(), true});
  }
  return head.addSite({*file, line, column, {}});
}

std::optional<KindScope> ppcc::findKindScope(StringRef word) {
  return findEnum<KindScope>(kindScopeNames(), word);
}

std::optional<Collective> ppcc::findCollective(StringRef word) {
  for (Collective one : {Collective::All, Collective::Replicas, Collective::To,
                         Collective::From})
    if (word == collectiveName(one))
      return one;
  return std::nullopt;
}

bool ppcc::isIdentifier(StringRef text) {
  return !text.empty() && llvm::all_of(text, [](char c) {
    return llvm::isAlnum(c) || c == '_';
  });
}

bool ppcc::isKindName(StringRef mnemonic) {
  return !mnemonic.empty() && llvm::all_of(mnemonic, [](char c) {
    return llvm::isAlpha(c) || c == '_';
  });
}

bool ppcc::canNameKind(StringRef mnemonic) {
  return isKindName(mnemonic) && !isCostWord(mnemonic) && mnemonic != "phase" &&
         mnemonic != "loop" && mnemonic != "rank";
}

std::string ppcc::kindHint(const KindTable &kinds, StringRef mnemonic) {
  if (mnemonic.size() < 2)
    return "";
  return didYouMean(mnemonic, namesIn(kinds.rows(), &KindInfo::mnemonic));
}

bool ppcc::checkCollective(const KindInfo &info, SourceRange at,
                           DiagnosticEngine &diags) {
  if (info.isValidCollective())
    return true;
  return diags.report<diag::BadCollective>(at,
                                           kindScopeNames()[size_t(info.scope)],
                                           collectiveName(info.collective));
}

std::optional<uint32_t> ppcc::sharedMicrobatch(const Pipe &a, const Pipe &b) {
  uint32_t shared = std::max(a.firstMicrobatch, b.firstMicrobatch);
  return a.hasMicrobatch(shared) && b.hasMicrobatch(shared)
             ? std::optional(shared)
             : std::nullopt;
}

/// Sorts, and leaves one of equal values.
template <class T> static void sortUnique(std::vector<T> &values) {
  llvm::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

void ppcc::sortEdges(Pipe &pipe) {
  sortUnique(pipe.skipEdges);
  sortUnique(pipe.gaps);
  sortTensors(pipe);
}

void ppcc::sortTensors(Pipe &pipe) {
  std::ranges::sort(pipe.tensors, {}, [](const EdgeTensors &edge) {
    return std::pair(edge.from, edge.to);
  });
}

void ppcc::findTensorErrors(
    const Pipe &pipe,
    function_ref<void(const EdgeTensors &edge, TensorError fault)> report) {
  const EdgeTensors *before = nullptr;
  for (const EdgeTensors &edge : pipe.tensors) {
    if (!pipe.hasEdge(edge.from, edge.to))
      report(edge, TensorError::NoEdge);
    if (before && before->from == edge.from && before->to == edge.to)
      report(edge, TensorError::Twice);
    before = &edge;
  }
}

void ppcc::checkLayout(const Head &head, SourceRange at,
                       DiagnosticEngine &diags) {
  size_t stages = head.stageLayers.size();
  for (const Pipe &pipe : head.pipes)
    if (stages != 0 && stages != pipe.numStages())
      diags.report<diag::CostCount>(
          at, "layout", stages,
          fmt::format("{} stages in `{}`", pipe.numStages(), pipe.name));
}

/// Reports the first fault of a pattern for this graph; true then.
static bool reportPatternError(const Head &head, const NodePattern &pattern,
                               size_t number, SourceRange at,
                               DiagnosticEngine &diags) {
  const NodeGraph &graph = head.nodes.graphs[number];
  auto fault = findPatternError(pattern, graph);
  if (!fault)
    return false;
  const GraphNode &node = graph.nodes[fault->node];
  diags.report<diag::IrPatternFault>(
      at, fault->words(),
      head.kinds[node.part].mnemonic + "." + head.nodes.pathOf(node), number);
  return true;
}

void ppcc::checkPatterns(const Head &head, ArrayRef<SourceRange> places,
                         DiagnosticEngine &diags,
                         function_ref<void(SourceRange at)> tooMany) {
  uint64_t looked = 0;
  for (auto [pattern, at] : llvm::zip(head.nodes.patterns, places))
    for (auto [i, graph] : llvm::enumerate(head.nodes.graphs)) {
      if (!llvm::is_contained(pattern.kinds, graph.kind))
        continue;
      looked += patternPositions(pattern, graph);
      if (looked > maxPatternPositions)
        return tooMany(at);
      if (reportPatternError(head, pattern, i, at, diags))
        return;
    }
}

bool ppcc::assignFirstStage(Action &action, const Head &head, RankId rank,
                            SourceRange at, DiagnosticEngine &diags) {
  auto first = head.firstStageOf(rank);
  if (!first)
    return diags.report<diag::NoChunk>(at, rank.value, "");
  std::tie(action.pipe, action.stage) = *first;
  return true;
}

bool ppcc::checkLastIteration(const Loop &loop, uint32_t microbatch,
                              const Pipe &pipe, SourceRange at,
                              DiagnosticEngine &diags) {
  int64_t last = microbatch + int64_t(loop.count - 1) * loop.advance;
  if (last >= pipe.firstMicrobatch && last < pipe.endMicrobatch())
    return true;
  return diags.report<diag::IrLoopTooLong>(at, loop.count, last, pipe.name);
}
