// Writes the order of a program as statements.
#include "ppcc/Decompile/Decompile.h"
#include "ppcc/Basic/Diagnostics.h" // Formats StringRef, in all files alike.
#include "ppcc/Decompile/ScheduleText.h"

#include "llvm/ADT/STLExtras.h"

#include <fmt/format.h>

#include <deque>

using namespace ppcc;
using namespace ppcc::written;
using llvm::StringRef;

namespace {

/// Writes the statements of a rank, each for one item; counts what was issued
/// as the compiler will.
class RankStatements {
public:
  /// `namesWeights`: each W says of which chunk it is, also the oldest.
  RankStatements(const Program &program, RankId rank, bool namesWeights)
      : program(program), namesWeights(namesWeights) {
    for (PipeId pipe : program.pipeIds())
      for (StageId stage : program.pipe(pipe).stages())
        if (program.pipe(pipe).rankOfStage[stage.value] == rank)
          chunks.push_back({pipe, stage});
  }

  /// Whether each W so far was the oldest of the rank.
  bool takesOldest = true;

  std::string of(RowRange item) {
    std::string text;
    for (ActionId row : item)
      text += (text.empty() ? "" : " ") + of(program[row]);
    return item.size() == 1 ? text : "overlap { " + text + " }";
  }

private:
  struct Chunk {
    PipeId pipe;
    StageId stage;
    uint32_t forwards = 0, backwards = 0; ///< Those issued.
    bool operator==(const Chunk &other) const {
      return pipe == other.pipe && stage == other.stage;
    }
  };

  std::string of(const Action &action) {
    const KindInfo &kind = program.kindOf(action);
    auto chunk = llvm::find(chunks, Chunk{action.pipe, action.stage});
    uint32_t first = program.pipe(action.pipe).firstMicrobatch;
    std::optional<uint32_t> next;
    if (kind.defines & slot::Output) {
      next = first + chunk->forwards++;
    } else if (kind.defines & slot::InputGrad) {
      next = first + chunk->backwards++;
      if (!(kind.defines & slot::WeightGrad))
        pending.push_back({size_t(chunk - chunks.begin()), action.microbatch});
    } else {
      return weights(kind.letters, chunk - chunks.begin(), action.microbatch);
    }
    std::vector<std::string> arguments;
    if (chunks.size() > 1)
      arguments.push_back(nameOf(*chunk));
    if (action.microbatch != *next)
      arguments.push_back(fmt::format("mb: {}", action.microbatch));
    return statement(kind.letters, arguments);
  }

  /// The oldest of the rank, else the oldest of the chunk, else that one.
  std::string weights(StringRef letters, size_t chunk, uint32_t microbatch) {
    std::pair<size_t, uint32_t> one{chunk, microbatch};
    auto at = llvm::find(pending, one);
    auto oldest = llvm::find_if(
        pending, [&](const auto &other) { return other.first == chunk; });
    std::vector<std::string> arguments;
    takesOldest &= at == pending.begin();
    if (namesWeights && chunks.size() > 1)
      arguments.push_back(nameOf(chunks[chunk]));
    if (at != oldest)
      arguments.push_back(fmt::format("mb: {}", microbatch));
    if (at != pending.end())
      pending.erase(at);
    return statement(letters, arguments);
  }

  static std::string statement(StringRef letters,
                               const std::vector<std::string> &arguments) {
    if (arguments.empty())
      return letters.str() + ";";
    return fmt::format("{}({});", letters, fmt::join(arguments, ", "));
  }

  /// The pipe where the rank has one stage of it among several pipes, else the
  /// number of the chunk.
  std::string nameOf(const Chunk &chunk) const {
    auto ofPipe = [&](const Chunk &other) { return other.pipe == chunk.pipe; };
    return program.pipes().size() > 1 && llvm::count_if(chunks, ofPipe) == 1
               ? program.pipe(chunk.pipe).name
               : fmt::to_string(&chunk - chunks.data());
  }

  const Program &program;
  bool namesWeights;
  std::vector<Chunk> chunks;
  std::deque<std::pair<size_t, uint32_t>> pending; ///< W's: chunk, microbatch.
};

} // namespace

std::string ppcc::decompile(const Program &program, StringRef name) {
  WrittenHead head;
  head.name = name;
  ScheduleText text(program, head);
  std::vector<std::string> statements;
  std::map<std::string, uint32_t> letters;
  std::vector<RankText> ranks;
  bool hasPhases = program.phases().size() > 1;
  for (RankId rank : program.ranks()) {
    RankStatements trial(program, rank, false);
    for (RowRange item : program.items(rank))
      if (program.kindOf(item.from).isCompute())
        trial.of(item);
    RankStatements rankStatements(program, rank, !trial.takesOldest);
    std::vector<uint32_t> word;
    Phases phases;
    size_t firstBack = SIZE_MAX, lastForward = 0;
    for (RowRange item : program.items(rank)) {
      if (!program.kindOf(item.from).isCompute())
        continue;
      auto [letter, isNew] =
          letters.try_emplace(rankStatements.of(item), statements.size());
      if (isNew)
        statements.push_back(letter->first);
      bool isForward = true;
      for (ActionId row : item)
        isForward &= (program.kindOf(row).defines & slot::Output) != 0;
      if (!isForward)
        firstBack = std::min(firstBack, word.size());
      word.push_back(letter->second);
      for (ActionId row : item)
        if (program.kindOf(row).defines & slot::Output)
          lastForward = word.size();
      const std::string &phase =
          program.phases()[program[item.from].phase.value];
      if (phases.empty() || phases.back().first != phase)
        phases.push_back({phase, {}});
      phases.back().second.push_back(letter->second);
    }
    firstBack = std::min(firstBack, word.size());
    if (!hasPhases)
      phases = inPhases(word, firstBack, std::max(firstBack, lastForward));
    ranks.push_back(text.textOf(phases, 0));
  }
  text.writeHead("");
  text.blank();
  text.open("on rank r");
  text.writeRanks(
      ranks, "", [&](uint32_t letter, uint32_t) { return statements[letter]; });
  text.close();
  text.close();
  return text.take();
}
