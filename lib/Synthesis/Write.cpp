// Writes an order as a schedule.
#include "ppcc/Synthesis/Write.h"

#include "Formula.h"

#include "llvm/ADT/STLExtras.h"

#include <fmt/format.h>

#include <map>

using namespace ppcc;
using namespace ppcc::synthesis;
using llvm::ArrayRef;
using llvm::StringRef;

constexpr auto F = Workload::F;

namespace {

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
  List compress(ArrayRef<uint32_t> letters) {
    List items;
    for (uint32_t one : letters) {
      uint32_t body = letter(one);
      if (!items.empty() && items.back().body == body)
        ++items.back().count;
      else
        items.push_back({body, 1});
    }
    while (foldOnce(items)) {
    }
    return items;
  }

private:
  using Body = std::pair<uint32_t, List>;

  uint32_t add(Body body) {
    auto [place, isNew] = numbers.try_emplace(std::move(body), bodies.size());
    if (isNew)
      bodies.push_back(&place->first);
    return place->second;
  }

  bool foldOnce(List &items) {
    constexpr size_t longest = 64;
    size_t size = items.size(), best = 1, at = 0, length = 0, times = 0;
    for (size_t period = 1; period <= std::min(longest, size / 2); ++period) {
      size_t run = 0;
      for (size_t i = size - period; i-- != 0;) {
        run = items[i] == items[i + period] ? run + 1 : 0;
        size_t count = run / period + 1, saved = (count - 1) * period;
        // The first place of the longest run, with the smallest period.
        if (count > 1 && (saved > best || (saved == best && period == length))) {
          best = saved;
          at = i;
          length = period;
          times = count;
        }
      }
    }
    if (times == 0)
      return false;
    Item loop{length == 1 && items[at].count == 1
                  ? items[at].body
                  : list(List(items.begin() + at, items.begin() + at + length)),
              int64_t(times)};
    items.erase(items.begin() + at + 1, items.begin() + at + length * times);
    items[at] = loop;
    return true;
  }

  std::map<Body, uint32_t> numbers;
  std::vector<const Body *> bodies;
};

constexpr StringRef phaseNames[] = {"warmup", "steady", "cooldown"};

/// What a rank does, by phase.
struct RankText {
  std::array<Bodies::List, 3> phases;
};

class ScheduleWriter {
public:
  ScheduleWriter(const Program &program, const Problem &problem,
                 const Order &order, const WrittenHead &head)
      : program(program), problem(problem), order(order), head(head) {}

  std::string write() {
    for (const std::string &comment : head.comment)
      line("// " + comment);
    open("schedule " + head.name + "()");
    line(fmt::format("ranks {};", program.numRanks()));
    for (PipeId pipe : program.pipeIds())
      writePipe(pipe);
    writeCosts(CostOwner::Model, "model");
    writeCosts(CostOwner::Cluster, "cluster");
    if (!head.comm.empty()) {
      open("comm");
      for (const std::string &setting : head.comm)
        line(setting + ";");
      close();
    }
    text += '\n';
    open("on rank r");
    writeRanks();
    close();
    close();
    return std::move(text);
  }

private:
  void line(const std::string &content) {
    text.append(depth * 2, ' ');
    text += content + '\n';
  }
  void open(const std::string &content) {
    line(content + " {");
    ++depth;
  }
  void close() {
    --depth;
    line("}");
  }

  // ---- The head ----

  void writePipe(PipeId id) {
    const Pipe &pipe = program.pipe(id);
    bool several = program.pipes().size() > 1;
    if (several)
      open("pipe " + pipe.name);
    line(pipe.firstMicrobatch == 0
             ? fmt::format("microbatches {};", pipe.numMicrobatches)
             : fmt::format("microbatches {} .. {};", pipe.firstMicrobatch,
                           pipe.endMicrobatch()));
    writePlacement(pipe);
    for (auto [from, to] : pipe.skipEdges)
      line(fmt::format("edge stage {} -> stage {};", from.value, to.value));
    for (StageId gap : pipe.gaps)
      line(fmt::format("no edge stage {} -> stage {};", gap.value,
                       gap.value + 1));
    if (several)
      close();
  }

  void writePlacement(const Pipe &pipe) {
    uint32_t ranks = program.numRanks();
    std::vector<int64_t> map;
    bool isLoop = pipe.numStages() % ranks == 0, isWave = isLoop;
    for (RankId rank : pipe.rankOfStage) {
      uint32_t place = map.size() % ranks, lap = map.size() / ranks;
      isLoop &= rank.value == place;
      isWave &= rank.value == (lap % 2 ? ranks - 1 - place : place);
      map.push_back(rank.value);
    }
    uint32_t laps = pipe.numStages() / ranks;
    if (isLoop)
      return line(laps == 1 ? "placement linear;"
                            : fmt::format("placement loop({});", laps));
    if (isWave)
      return line(laps == 2 ? "placement v;"
                            : fmt::format("placement wave({});", laps));
    line(fmt::format("stages {};", map.size()));
    line(fmt::format("stage s on rank {};", formula(map, "s")));
  }

  void writeCosts(CostOwner owner, StringRef section) {
    std::vector<std::string> lines;
    std::map<StringRef, std::string> links; // By what is said of them.
    for (const CostSetting *setting : program.costs().inEffect()) {
      const CostRow &row = rowOf(setting->what);
      if (row.owner != owner)
        continue;
      if (setting->link) {
        links[row.item] +=
            fmt::format("a == {} and b == {} ? {} : ",
                        setting->link->first.value, setting->link->second.value,
                        row.number.format(setting->values.front()));
        continue;
      }
      std::string name = row.item.str();
      if (!row.subject.empty())
        name += " " + subjectOf(*setting, program.kinds());
      bool isList = setting->values.size() > 1;
      if (setting->pipe && program.pipes().size() > 1)
        name += " pipe " + program.pipe(*setting->pipe).name;
      StringRef variable = row.spread == CostSpread::Ranks ? "r" : "s";
      if (isList)
        name += row.spread == CostSpread::Ranks ? " rank r" : " stage s";
      auto number = [&](int64_t value) { return row.number.format(value); };
      lines.push_back(
          fmt::format("{} = {};", name,
                      isList ? formula(setting->values, variable, number)
                             : number(setting->values.front())));
    }
    if (owner == CostOwner::Cluster && !head.transports.empty())
      lines.push_back("transport " + head.transports + ";");
    if (lines.empty() && links.empty())
      return;
    open(section.str());
    for (const std::string &one : lines)
      line(one);
    if (!links.empty()) {
      open("link a, b");
      for (const auto &[item, value] : links)
        line(fmt::format("{} = {}1;", item, value));
      close();
    }
    close();
  }

  // ---- The ranks ----

  /// A letter is the chunk and the part of an action.
  uint32_t letterOf(Op op) const {
    const auto &stages = problem.load.ofRank[problem.rank[op]];
    return opOf(llvm::find(stages, stageOf(op)) - stages.begin(), partOf(op));
  }

  RankText textOf(uint32_t rank) {
    const Word &word = order[rank];
    auto isForward = [](Op op) { return partOf(op) == F; };
    size_t firstBack = llvm::find_if_not(word, isForward) - word.begin();
    size_t lastForward = word.size();
    while (lastForward != 0 && !isForward(word[lastForward - 1]))
      --lastForward;
    lastForward = std::max(lastForward, firstBack);
    RankText text;
    size_t ends[] = {0, firstBack, lastForward, word.size()};
    for (int phase = 0; phase != 3; ++phase) {
      std::vector<uint32_t> letters;
      for (size_t i = ends[phase]; i != ends[phase + 1]; ++i)
        letters.push_back(letterOf(word[i]));
      text.phases[phase] = bodies.compress(letters);
    }
    return text;
  }

  /// The structure of a list, counts left out, and the counts in order.
  void shapeOf(const Bodies::List &list, std::vector<uint32_t> &shape,
               std::vector<int64_t> &counts) const {
    shape.push_back(~0u);
    for (Bodies::Item item : list) {
      counts.push_back(item.count);
      if (bodies.isLetter(item.body))
        shape.push_back(bodies.letterOf(item.body));
      else
        shapeOf(bodies.listOf(item.body), shape, counts);
    }
    shape.push_back(~1u);
  }

  void writeRanks() {
    uint32_t ranks = program.numRanks();
    std::vector<RankText> texts;
    std::vector<std::vector<uint32_t>> shapes(ranks);
    std::vector<std::vector<int64_t>> counts(ranks);
    for (uint32_t rank = 0; rank != ranks; ++rank) {
      texts.push_back(textOf(rank));
      shapes[rank].push_back(problem.load.ofRank[rank].size() == 1);
      for (const Bodies::List &phase : texts[rank].phases)
        shapeOf(phase, shapes[rank], counts[rank]);
    }
    for (uint32_t begin = 0, end; begin != ranks; begin = end) {
      end = begin + 1;
      while (end != ranks && shapes[end] == shapes[begin] &&
             areLines(counts, begin, end + 1))
        ++end;
      writeGroup(texts[begin], counts, begin, end);
    }
  }

  static std::vector<int64_t>
  column(const std::vector<std::vector<int64_t>> &counts, uint32_t begin,
         uint32_t end, size_t which) {
    std::vector<int64_t> values;
    for (uint32_t rank = begin; rank != end; ++rank)
      values.push_back(counts[rank][which]);
    return values;
  }

  static bool areLines(const std::vector<std::vector<int64_t>> &counts,
                       uint32_t begin, uint32_t end) {
    for (size_t i = 0; i != counts[begin].size(); ++i)
      if (!synthesis::line(column(counts, begin, end, i), begin, "r"))
        return false;
    return true;
  }

  void writeGroup(const RankText &rank,
                  const std::vector<std::vector<int64_t>> &counts,
                  uint32_t begin, uint32_t end) {
    bool isAll = end - begin == program.numRanks();
    std::string condition =
        end == program.numRanks() ? "else"
        : end - begin == 1        ? fmt::format("if r == {}", begin)
                                  : fmt::format("if r < {}", end);
    if (begin != 0 && end != program.numRanks())
      condition = "else " + condition;
    if (!isAll)
      open(condition);
    size_t next = 0;
    auto count = [&] {
      return *synthesis::line(column(counts, begin, end, next++), begin, "r");
    };
    hasOneStage = problem.load.ofRank[begin].size() == 1;
    for (auto [phase, list] : llvm::enumerate(rank.phases)) {
      if (list.empty())
        continue;
      open(fmt::format("phase {}", phaseNames[phase]));
      writeList(list, count);
      close();
    }
    if (!isAll)
      close();
  }

  /// What stands on one line between other lines.
  template <class Count> void writeList(const Bodies::List &list, Count &count) {
    std::string row;
    auto flush = [&] {
      if (!row.empty())
        line(row);
      row.clear();
    };
    for (Bodies::Item item : list) {
      std::string times = count();
      std::string inner;
      if (!bodies.isLetter(item.body) && !fitsLine(item.body)) {
        flush();
        open("repeat " + times);
        writeList(bodies.listOf(item.body), count);
        close();
        continue;
      }
      inner = oneLine(item.body, count);
      if (times != "1")
        inner = fmt::format("repeat {} {{ {} }}", times, inner);
      if (row.size() + inner.size() > 90)
        flush();
      row += (row.empty() ? "" : " ") + inner;
      if (times != "1")
        flush();
    }
    flush();
  }

  /// A short list without long loops.
  bool fitsLine(uint32_t body) const {
    if (bodies.isLetter(body))
      return true;
    const Bodies::List &list = bodies.listOf(body);
    return list.size() <= 12 && llvm::all_of(list, [&](Bodies::Item item) {
             return bodies.isLetter(item.body);
           });
  }

  template <class Count> std::string oneLine(uint32_t body, Count &count) {
    if (bodies.isLetter(body))
      return action(bodies.letterOf(body));
    std::string row;
    for (Bodies::Item item : bodies.listOf(body)) {
      std::string times = count(), inner = action(bodies.letterOf(item.body));
      row += (row.empty() ? "" : " ") +
             (times == "1" ? inner
                           : fmt::format("repeat {} {{ {} }}", times, inner));
    }
    return row;
  }

  std::string action(uint32_t letter) const {
    bool isFused = problem.load.backward == Workload::Backward::Fused;
    StringRef name = isFused && partOf(letter) != F
                         ? "B"
                         : StringRef("FIW").substr(partOf(letter), 1);
    return hasOneStage ? name.str() + ";"
                       : fmt::format("{}({});", name, stageOf(letter));
  }

  const Program &program;
  const Problem &problem;
  const Order &order;
  const WrittenHead &head;
  Bodies bodies;
  std::string text;
  size_t depth = 0;
  bool hasOneStage = false;
};

} // namespace

std::string synthesis::write(const Program &program, const Problem &problem,
                             const Order &order, const WrittenHead &head) {
  return ScheduleWriter(program, problem, order, head).write();
}
