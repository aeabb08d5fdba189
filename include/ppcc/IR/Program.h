// A program: what each rank does, in order. The value that every pass takes and
// every emitter prints.
#pragma once

#include "ppcc/IR/Head.h"

#include <typeindex>

namespace ppcc {

/// Values by type and name, each made when it is first asked for. They speak of
/// the object that holds them as it stands: who changes it clears them, and a
/// copy begins without. Not for several threads at once.
class AnalysisCache {
public:
  AnalysisCache() = default;
  AnalysisCache(const AnalysisCache &) noexcept {}
  AnalysisCache(AnalysisCache &&other) noexcept { other.clear(); }
  AnalysisCache &operator=(AnalysisCache) noexcept {
    clear();
    return *this;
  }

  /// The value of this type and name, else what `make` gives.
  template <class Make>
  const std::invoke_result_t<Make> &get(const std::string &name, Make make) {
    using Value = std::invoke_result_t<Make>;
    std::shared_ptr<void> &value = values[{typeid(Value), name}];
    if (!value)
      value = std::shared_ptr<Value>(new Value(make()));
    return *static_cast<const Value *>(value.get());
  }
  void clear() { values.clear(); }

private:
  std::map<std::pair<std::type_index, std::string>, std::shared_ptr<void>>
      values;
};

/// Two ranks, the smaller first.
struct RankPair {
  RankId low, high;
  auto operator<=>(const RankPair &) const = default;
};

/// What was found out about the rows of a program, all of them together.
struct Facts {
  /// The transports under which its messages arrive in order and no rank waits
  /// for itself, as far as somebody looked.
  std::vector<std::string> provenUnder;
  /// The ranks that meet before the first action, each pair once, in one order
  /// that all ranks keep; empty when nobody asked for it.
  std::vector<RankPair> preconnect;
};

/// A head, which programs share until one of them changes it; rows; and facts,
/// which are gone when rows change.
class Program : Rows {
public:
  // The largest numbers that fit the columns.
  static constexpr uint32_t maxStages = 0xFFFE;
  static constexpr uint32_t maxPipes = 0x100;
  static constexpr uint32_t maxPhases = 0x7FFF;
  static constexpr uint32_t maxMicrobatches = 0xFFFFFFFE;
  static constexpr uint32_t maxRanks = 1u << 20;

  Program() : sharedHead(std::make_shared<Head>()) {}
  explicit Program(Head head)
      : sharedHead(std::make_shared<Head>(std::move(head))) {}

  // ---- Head ----

  const Head &head() const { return *sharedHead; }
  /// The head, to be changed; no other program sees it.
  Head &editHead() {
    derived.clear();
    if (sharedHead.use_count() != 1)
      sharedHead = std::make_shared<Head>(*sharedHead);
    return const_cast<Head &>(*sharedHead);
  }

  const std::string &name() const { return head().name; }
  const std::vector<ProgramParam> &params() const { return head().params; }
  uint32_t numRanks() const { return head().numRanks; }
  const std::vector<Pipe> &pipes() const { return head().pipes; }
  const Pipe &pipe(PipeId id) const { return head().pipes[id.value]; }
  bool hasBackward() const { return head().hasBackward; }
  const KindTable &kinds() const { return head().kinds; }
  const CostModel &costs() const { return head().costs; }
  const Units &units() const { return head().units; }
  const std::vector<std::string> &stageLayers() const {
    return head().stageLayers;
  }
  const NodeGraphs &nodes() const { return head().nodes; }
  /// Whether it is said what nodes take: of all, or in graphs.
  bool hasNodeCosts() const {
    return costs().has({Cost::Node}) || nodes().hasCosts();
  }
  CallStyle calls() const { return head().calls; }
  const std::vector<std::string> &phases() const { return head().phases; }
  const std::vector<SiteFile> &files() const { return head().files; }
  const std::vector<Site> &sites() const { return head().sites; }

  IdRange<PipeId> pipeIds() const { return head().pipeIds(); }
  std::optional<PipeId> pipeOfMicrobatch(uint32_t microbatch) const {
    return head().pipeOfMicrobatch(microbatch);
  }
  RankId rankOfStage(PipeId pipe, StageId stage) const {
    return head().rankOfStage(pipe, stage);
  }
  std::optional<std::pair<PipeId, StageId>> firstStageOf(RankId rank) const {
    return head().firstStageOf(rank);
  }
  uint64_t totalMicrobatches() const { return head().totalMicrobatches(); }

  // ---- Rows ----

  using Rows::begin, Rows::end, Rows::size, Rows::rankOf, Rows::ranksBegun;
  using Rows::groupEnd, Rows::itemOf, Rows::items, Rows::ranks, Rows::rows;
  using Rows::joined, Rows::kind, Rows::operator[], Rows::rowBytes;
  ArrayRef<Loop> loops() const { return Rows::loops; }
  const Rows &allRows() const { return *this; }
  const KindInfo &kindOf(ActionId id) const { return kinds()[kind(id)]; }
  const KindInfo &kindOf(const Action &action) const {
    return kinds()[action.kind];
  }
  /// The first row that sends or receives. O(actions).
  std::optional<ActionId> firstMessage() const;

  /// Whether a row of `rank` is the peer side of an action between two ranks.
  bool isPeerSide(const Action &action, RankId rank) const {
    return kindOf(action).isMove() &&
           rankOfStage(action.pipe, action.stage) != rank;
  }
  /// The rank at the other end of a message.
  RankId peerRank(const Action &message) const {
    return rankOfStage(message.pipe, message.peer);
  }
  /// The stages that a message leads from and to.
  std::pair<StageId, StageId> endpointsOf(const Action &message) const {
    return kindOf(message).isSend() ? std::pair(message.stage, message.peer)
                                    : std::pair(message.peer, message.stage);
  }

  /// The rows, to be changed.
  Rows &editRows() {
    known = {};
    derived.clear();
    return *this;
  }
  /// The same head over other rows.
  Program withRows(Rows rows) const {
    return Program(sharedHead, std::move(rows), {});
  }
  /// The same over rows that stand for the same actions.
  Program withEquivalentRows(Rows rows) const {
    return Program(sharedHead, std::move(rows), known);
  }
  /// Puts other kinds in the place of the program's; see Head. O(actions).
  void setKinds(KindTable table, ArrayRef<KindId> renumbered) {
    renumberKinds(renumbered);
    editHead().setKinds(std::move(table), renumbered);
  }

  // ---- Facts ----

  const Facts &facts() const { return known; }
  const std::vector<std::string> &provenUnder() const {
    return known.provenUnder;
  }
  const std::vector<RankPair> &preconnect() const { return known.preconnect; }
  /// For those who found them out.
  void setFacts(Facts facts) { known = std::move(facts); }

  /// What is worked out about head and rows, as Analyses does; gone when those
  /// change.
  mutable AnalysisCache derived;

private:
  Program(std::shared_ptr<const Head> head, Rows rows, Facts facts)
      : Rows(std::move(rows)), sharedHead(std::move(head)),
        known(std::move(facts)) {}

  std::shared_ptr<const Head> sharedHead;
  Facts known;
};

/// `0F3`, or `0SEND_F3>7` for a message along a skip edge (the peer of a
/// receive stands after `<`); `0REDUCE_GRAD` for an action of a stage, `STEP`
/// for one of a rank.
std::string cell(const Program &program, const Action &action);
inline std::string cell(const Program &program, ActionId row) {
  return cell(program, program[row]);
}
void appendCell(const Program &program, const Action &action,
                SmallVectorImpl<char> &out);
} // namespace ppcc
