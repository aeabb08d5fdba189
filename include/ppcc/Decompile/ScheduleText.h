// The text of a schedule: what stands around the orders, and orders as loops.
#pragma once

#include "ppcc/IR/Program.h"

namespace ppcc::schedtext {

/// What of a program's costs no schedule can say; empty for nothing.
std::string inexpressibleCost(const Program &program);

/// What stands around the orders.
struct ScheduleHeader {
  std::string name;
  std::vector<std::string> comm; ///< Settings of `comm`.
  std::string transports;        ///< Of its cluster, as they are written there.
  /// Declared actions, above the schedule, and statements that insert them;
  /// what they cost is written where they are.
  std::vector<std::string> actions, inserts;
  /// Of a schedule with parameters: what must hold, and the microbatches of
  /// each pipe.
  std::vector<std::string> conditions, microbatches;
};

/// Bodies by number, each once, so that equal ones are found by number.
class BodyTable {
public:
  /// Some times the same, one after another.
  struct Item {
    uint32_t body, count;
    auto operator<=>(const Item &) const = default;
  };
  using List = std::vector<Item>;

  uint32_t symbol(uint32_t symbol) { return add({~symbol, {}}); }
  uint32_t list(List items) { return add({0, std::move(items)}); }

  bool isSymbol(uint32_t body) const { return bodies[body]->first != 0; }
  uint32_t symbolOf(uint32_t body) const { return ~bodies[body]->first; }
  const List &listOf(uint32_t body) const { return bodies[body]->second; }

  /// What becomes a loop first: letters that repeat themselves; what saves
  /// most, at its first or at its last place; the longest body.
  enum class Fold { RunsFirst, Longest, LongestLast, WidestLast };

  /// The letters with loops for all that repeats itself.
  List compress(ArrayRef<uint32_t> letters, Fold fold);
  /// Whether so many of the steps are left that look for a shorter text; takes
  /// them.
  bool spend(uint64_t steps) {
    bool areLeft = steps <= stepsLeft;
    stepsLeft -= areLeft ? steps : 0;
    return areLeft;
  }
  void limit(uint64_t steps) { stepsLeft = std::min(stepsLeft, steps); }

private:
  using Body = std::pair<uint32_t, List>;

  uint32_t add(Body body);

  void foldAll(List &items, Fold fold);
  bool foldOnce(List &items, Fold fold);

  std::map<Body, uint32_t> numbers;
  std::vector<const Body *> bodies;
  uint64_t stepsLeft = uint64_t(1) << 29; ///< About a second.
};

/// How often a loop runs: so often, and so often for each M / period.
struct TripCount {
  int64_t base, perPeriod = 0;
};

/// What a rank does in a phase, which may have no name.
struct RankPhase {
  std::string name;
  BodyTable::List items;
};

/// What a rank does.
struct RankText {
  std::vector<RankPhase> phases;
  std::vector<uint32_t> shape;   ///< Without the counts.
  std::vector<TripCount> counts; ///< Of its items, in order.
};

/// Letters by the name of their phase, in order.
using Phases = std::vector<std::pair<std::string, std::vector<uint32_t>>>;
/// In three: until the first that is no forward, until the last forward, and
/// the rest.
Phases splitIntoPhases(ArrayRef<uint32_t> letters, size_t firstBack,
                       size_t lastForward);

/// Writes a schedule: the head first, then what its ranks do.
class ScheduleText {
public:
  /// The statement of a letter on a rank.
  using Statement = function_ref<std::string(uint32_t symbol, uint32_t rank)>;

  ScheduleText(const Program &program, const ScheduleHeader &head);

  /// What a pipe is called: `down_0` for `down[0]`.
  const std::string &nameOf(PipeId pipe) const { return pipes[pipe.value]; }

  void blank() { text += '\n'; }
  void line(const std::string &content);
  void open(const std::string &content);
  void close();
  /// `header { ... }` around what `write` writes, on one line if that is short.
  void block(const std::string &header, function_ref<void()> write);
  /// Without a name in none.
  void writePhase(const std::string &name, function_ref<void()> write);
  /// Writes what is shortest of them: few lines and few letters.
  void shortest(ArrayRef<std::function<void()>> ways);
  /// What `write` writes, and what it costs to read.
  std::pair<std::string, size_t> trial(function_ref<void()> write);
  void put(StringRef lines) { text += lines; }

  /// With its placement and costs.
  void writeHead(const std::string &params);

  /// The letters of each phase with loops for what repeats itself. Only ranks
  /// of the same `mark` are written as one. O(letters * longest period).
  RankText textOf(const Phases &phases, uint32_t mark,
                  BodyTable::Fold fold = BodyTable::Fold::RunsFirst);
  /// One piece for ranks that differ in the counts of their loops alone, all of
  /// it or by phases, every second or third rank apart if that is less; `turns`
  /// is what stands for M / period, `variable` for the number of the rank.
  void writeRanks(ArrayRef<RankText> ranks, const std::string &periods,
                  Statement statement, StringRef variable = "r");

  std::string take() { return std::move(text); }
  BodyTable bodyTable;

private:
  void writePipe(PipeId id);
  void writeBody(PipeId id);
  void writePlacement(const Pipe &pipe);
  /// What stages give to those that read them, and take: the same for stages
  /// in a row once.
  void addTensors(PipeId id, std::vector<std::string> &lines) const;
  void writeCosts(CostOwner owner, StringRef section);
  std::string factorsText(const CostSetting &setting) const;
  void writeLinks(StringRef item, ArrayRef<const CostSetting *> settings);
  /// The structure of a list, counts left out, and the counts in order.
  void shapeOf(const BodyTable::List &list, std::vector<uint32_t> &shape,
               std::vector<TripCount> &counts) const;

  const Program &program;
  const ScheduleHeader &head;
  std::vector<std::string> pipes; ///< Their names.
  bool namesMicrobatches = false; ///< By a parameter.
  std::string text;
  size_t depth = 0;
  std::map<std::string, uint32_t> phaseNumbers;
};

} // namespace ppcc::schedtext

namespace ppcc {

/// The source text of a schedule called `name` with the placement and costs of
/// the program that runs its compute actions in their order: phases, loops
/// where something repeats itself, one piece for ranks that differ in the
/// counts of their loops alone, and no messages. It is a guess where the
/// language has more than one meaning for what is left out: compile it and
/// compare. O(actions * longest period).
std::string decompile(const Program &program, StringRef name);

} // namespace ppcc
