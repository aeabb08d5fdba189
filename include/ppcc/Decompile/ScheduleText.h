// The text of a schedule: what stands around the orders, and orders as loops.
#pragma once

#include "ppcc/IR/Program.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <map>

namespace ppcc::written {

/// What stands around the orders.
struct WrittenHead {
  std::string name;
  std::vector<std::string> comm;    ///< Settings of `comm`.
  std::string transports; ///< Of its cluster, as they are written there.
  /// Declared actions, above the schedule, and statements that insert them;
  /// what they cost is written where they are.
  std::vector<std::string> actions, inserts;
  /// Of a schedule with parameters: what must hold, and the microbatches of each
  /// pipe.
  std::vector<std::string> conditions, microbatches;
};

/// Bodies by number, each once, so that equal ones are found by number.
class Bodies {
public:
  /// Some times the same, one after another.
  struct Item {
    uint32_t body;
    int64_t count;
    bool operator==(const Item &) const = default;
    auto operator<=>(const Item &) const = default;
  };
  using List = std::vector<Item>;

  uint32_t letter(uint32_t letter) { return add({~letter, {}}); }
  uint32_t list(List items) { return add({0, std::move(items)}); }

  bool isLetter(uint32_t body) const { return bodies[body]->first != 0; }
  uint32_t letterOf(uint32_t body) const { return ~bodies[body]->first; }
  const List &listOf(uint32_t body) const { return bodies[body]->second; }

  /// The letters with loops for all that repeats itself: the loop that saves
  /// most first.
  List compress(llvm::ArrayRef<uint32_t> letters);

private:
  using Body = std::pair<uint32_t, List>;

  uint32_t add(Body body);

  bool foldOnce(List &items);

  std::map<Body, uint32_t> numbers;
  std::vector<const Body *> bodies;
};

/// How often a loop turns: so often, and so often for each M / period.
struct Count {
  int64_t turns, more = 0;
};

/// What a rank does in a phase, which may have no name.
struct RankPhase {
  std::string name;
  Bodies::List items;
};

/// What a rank does.
struct RankText {
  std::vector<RankPhase> phases;
  std::vector<uint32_t> shape; ///< Without the counts.
  std::vector<Count> counts;   ///< Of its items, in order.
};

/// Letters by the name of their phase, in order.
using Phases = std::vector<std::pair<std::string, std::vector<uint32_t>>>;
/// In three: until the first that is no forward, until the last forward, and
/// the rest.
Phases inPhases(llvm::ArrayRef<uint32_t> letters, size_t firstBack,
                size_t lastForward);

/// Writes a schedule: the head first, then what its ranks do.
class ScheduleText {
public:
  /// The statement of a letter on a rank.
  using Statement =
      llvm::function_ref<std::string(uint32_t letter, uint32_t rank)>;

  ScheduleText(const Program &program, const WrittenHead &head)
      : program(program), head(head) {}

  void blank() { text += '\n'; }
  void line(const std::string &content);
  void open(const std::string &content);
  void close();
  /// With its placement and costs.
  void writeHead(const std::string &params);

  /// The letters of each phase with loops for what repeats itself. Only ranks
  /// of the same `mark` are written as one. O(letters * longest period).
  RankText textOf(const Phases &phases, uint32_t mark);
  /// One piece for ranks that differ in the counts of their loops alone, or do
  /// where loops of no turns are written too, even and odd ranks apart if that
  /// is less; `turns` is what stands for M / period.
  void writeRanks(llvm::ArrayRef<RankText> ranks, const std::string &turns,
                  Statement statement);

  std::string take() { return std::move(text); }
  Bodies bodies;

private:
  /// Gives one count after another.
  using NextCount = llvm::function_ref<std::string()>;
  /// Gives the statement of a letter on the ranks that are written.
  using Action = llvm::function_ref<std::string(uint32_t letter)>;

  void writePipe(PipeId id);
  void writePlacement(const Pipe &pipe);
  /// What stages give to those that read them, and take: the same for stages
  /// in a row once.
  void addTensors(const Pipe &pipe, std::vector<std::string> &lines) const;
  void writeCosts(CostOwner owner, llvm::StringRef section);
  /// The structure of a list, counts left out, and the counts in order.
  void shapeOf(const Bodies::List &list, std::vector<uint32_t> &shape,
               std::vector<Count> &counts) const;
  /// The formula of a count in the number of the rank and M / period.
  std::optional<std::string> countOf(uint32_t begin, uint32_t end,
                                     size_t which) const;
  /// Ranks in a row that one text stands for, each with counts on lines.
  struct Run {
    uint32_t begin, end, from; ///< `first` is the text of the rank `from`.
    RankText first;
    std::vector<int64_t> steps; ///< Of the counts, from rank to rank.
    RankText of(uint32_t rank) const;
  };
  /// Those of three ranks and more: the text of one, with the counts that its
  /// neighbour needs, tells the counts of the next.
  std::vector<Run> findRuns() const;
  /// The letters that a text stands for, unless they are more than `most`.
  std::optional<Phases> spell(const RankText &rank, size_t most) const;
  bool spell(const Bodies::List &list, const Count *&count,
             std::vector<uint32_t> &letters, size_t most) const;
  /// The text with other counts, maybe 0, of its outer loops, so that it stands
  /// for the phases.
  std::optional<RankText> fitted(RankText rank, const Phases &phases) const;
  /// Finds which of every `by`-th rank are written as one.
  void group(llvm::ArrayRef<RankText> ranks, uint32_t from, uint32_t by);
  uint32_t rankOf(uint32_t text) const { return first + text * stride; }
  bool areLines(uint32_t begin, uint32_t end) const;
  void writeGroup(uint32_t begin, uint32_t end, Statement statement);
  /// What stands on one line between other lines.
  void writeList(const Bodies::List &list, NextCount count, Action action);
  /// A short list without long loops.
  bool fitsLine(uint32_t body) const;
  std::string oneLine(uint32_t body, NextCount count, Action action);
  const Program &program;
  const WrittenHead &head;
  std::vector<RankText> texts;    ///< Of the ranks that are written now.
  uint32_t first = 0, stride = 1; ///< Which these are.
  std::vector<std::pair<uint32_t, uint32_t>> groups; ///< Of `texts`.
  std::string turns;                                 ///< M / period.
  std::string text;
  size_t depth = 0;
  std::map<std::string, uint32_t> phaseNumbers;
};

} // namespace ppcc::written
