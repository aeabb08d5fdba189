// Checks of what programs say in their heads, and names and places that their
// readers make, whatever the format.
#pragma once

#include "ppcc/Basic/Diagnostics.h"
#include "ppcc/IR/Program.h"

namespace ppcc {

/// Declares kinds, which may name others that are declared after them.
class KindDeclarations {
public:
  explicit KindDeclarations(KindTable &kinds) : kinds(kinds) {}

  /// Begins a declaration; one that was not declared is given up.
  void begin() { current.clear(); }
  /// The kind that is being declared has this name in a rule, or in a member.
  void name(size_t rule, StringRef name, SourceRange at) {
    current.push_back({KindId(), rule, nullptr, name.str(), at});
  }
  void name(std::optional<KindId> KindInfo::*member, StringRef name,
            SourceRange at) {
    current.push_back({KindId(), 0, member, name.str(), at});
  }
  /// Adds the kind that is being declared; its mnemonic is new.
  KindId declare(KindInfo info);
  /// Finds the kinds that were named, when all are declared. `unknown` reports
  /// a name that no kind has.
  void resolve(function_ref<void(StringRef name, SourceRange at)> unknown);

private:
  struct Named {
    KindId by;
    size_t rule;
    std::optional<KindId> KindInfo::*member; ///< Null in a rule.
    std::string name;
    SourceRange at;
  };

  KindTable &kinds;
  std::vector<Named> current, all;
};

/// Gives actions of unknown origin their places in the file that is read.
class CellSites {
public:
  CellSites(Program &program, StringRef fileName)
      : program(program), fileName(fileName) {}

  /// A new site. Lines and columns count from 1.
  SiteId add(uint32_t line, uint32_t column);
  /// Whether the site is of the file that is read.
  bool isFromThisFile(SiteId site) const {
    return file && program.sites()[site.value].file == *file;
  }

private:
  Program &program;
  StringRef fileName;
  std::optional<uint32_t> file; ///< Its entry, when there is a site.
};

/// Whether it can name a lane, a node, a tensor: letters, digits and
/// underscores, one at least.
bool isIdentifier(StringRef text);

/// Whether this can be a mnemonic: letters and underscores, one at least.
bool isKindName(StringRef mnemonic);
/// Whether a program may declare a kind of this name: texts have no other
/// meaning for it.
bool canNameKind(StringRef mnemonic);

/// What a declared kind has one action for each of, and who does it together,
/// by their words; not the groups that have names of their own.
std::optional<KindScope> findKindScope(StringRef word);
std::optional<Collective> findCollective(StringRef word);

/// A table of words, where they are added when they are new.
struct StringInterner {
  std::vector<std::string> &table;
  StringMap<uint32_t> numbers = {};

  uint32_t operator()(StringRef word) {
    auto [found, isNew] = numbers.try_emplace(word, uint32_t(table.size()));
    if (isNew)
      table.push_back(word.str());
    return found->second;
  }
};

/// The end of a message about an unknown mnemonic: what it may have been meant
/// to be.
std::string kindHint(const KindTable &kinds, StringRef mnemonic);

/// Reports a kind for which KindInfo::isValidCollective() is false, and gives
/// that.
bool checkCollective(const KindInfo &info, SourceRange at,
                     DiagnosticEngine &diags);

/// The first microbatch that passes through both pipes.
std::optional<uint32_t> sharedMicrobatch(const Pipe &a, const Pipe &b);

/// Puts what is said of the edges of a pipe in the order that Pipe has.
/// O(edges * log edges).
void sortEdges(Pipe &pipe);
/// The same for what edges carry alone.
void sortTensors(Pipe &pipe);

/// What is wrong with one of Pipe::tensors.
enum class TensorError : uint8_t { NoEdge, Twice };

/// Calls `report` for each fault of the tensors, whose pipe is sorted.
/// O(edges * log edges).
void findTensorErrors(
    const Pipe &pipe,
    function_ref<void(const EdgeTensors &edge, TensorError fault)> report);

/// Reports at `at` each pipe that has another number of stages than the layout.
void checkLayout(const Head &head, SourceRange at, DiagnosticEngine &diags);

/// All patterns may look at so many places of all graphs.
inline constexpr uint64_t maxPatternPositions = uint64_t(1) << 28;

/// Reports the first pattern, of those that stand at `places`, that is wrong
/// for a graph; or calls `tooMany` for the one that goes beyond
/// maxPatternPositions.
void checkPatterns(const Head &head, ArrayRef<SourceRange> places,
                   DiagnosticEngine &diags,
                   function_ref<void(SourceRange at)> tooMany);

/// Makes an action that is one of its rank stand for the first stage that the
/// rank hosts; false, and a report, when it hosts none.
bool assignFirstStage(Action &action, const Head &head, RankId rank,
                      SourceRange at, DiagnosticEngine &diags);

/// Reports an action in a loop whose pipe does not have the microbatch of the
/// last iteration; false then.
bool checkLastIteration(const Loop &loop, uint32_t microbatch, const Pipe &pipe,
                        SourceRange at, DiagnosticEngine &diags);

} // namespace ppcc
