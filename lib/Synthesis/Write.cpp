// Writes an order as a schedule.
#include "ppcc/Synthesis/Write.h"

#include "Formula.h"
#include "ppcc/Basic/Diagnostics.h" // Formats StringRef, in all files alike.

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

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

/// How often a loop turns: so often, and so often for each M / period.
struct Count {
  int64_t turns, more = 0;
};

/// What a rank does, by phase.
struct RankText {
  std::array<Bodies::List, 3> phases;
  std::vector<uint32_t> shape; ///< Without the counts.
  std::vector<Count> counts;   ///< Of its items, in order.
};

class ScheduleWriter {
public:
  ScheduleWriter(const Program &program, const Problem &problem,
                 const WrittenHead &head)
      : program(program), problem(problem), head(head) {}

  std::string write(const Order &order) {
    writeHead("");
    for (const Word &word : order)
      texts.push_back(textOf(word));
    text += '\n';
    open("on rank r");
    writeRanks();
    close();
    close();
    return std::move(text);
  }

  std::optional<WrittenFamily> write(ArrayRef<Growth> growths, int64_t least) {
    int64_t period = growths.size();
    std::vector<std::vector<RankText>> remainders;
    for (const Growth &growth : growths) {
      remainders.emplace_back();
      for (auto [word, longer] : llvm::zip(growth.order, growth.longer)) {
        auto grown = textOf(word, longer, growth.microbatches / period);
        if (!grown)
          return std::nullopt;
        for (Count count : grown->counts)
          if (count.more > 0) // Never less than no turns.
            least = std::max(least, period * ((count.more - 1 - count.turns) /
                                              count.more) -
                                        period + 1 +
                                        growth.microbatches % period);
        remainders.back().push_back(std::move(*grown));
      }
    }
    for (auto [rest, ranks] : llvm::enumerate(remainders))
      for (auto [rank, grown] : llvm::enumerate(ranks))
        // At each place a rank holds what is a line over n: the most of these
        // is no more in between than at the ends.
        for (int64_t n : {(least - int64_t(rest) + period - 1) / period,
                          int64_t(1'000'000'000)})
          if (peakOf(grown, rank, n) > problem.room[rank])
            return std::nullopt;
    writeHead(fmt::format("M: int >= {}", least));
    if (period > 1)
      line(fmt::format("let n = M / {};", period));
    turns = period > 1 ? "n" : "M";
    text += '\n';
    open("on rank r");
    for (int64_t rest = 0; rest != period; ++rest) {
      texts = std::move(remainders[rest]);
      if (period > 1)
        open(rest + 1 == period ? std::string("else")
                                : fmt::format("{}if M % {} == {}",
                                              rest == 0 ? "" : "else ", period,
                                              rest));
      writeRanks();
      if (period > 1)
        close();
    }
    close();
    close();
    return WrittenFamily{std::move(text), least};
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

  void writeHead(const std::string &params) {
    for (const std::string &comment : head.comment)
      line("// " + comment);
    open(fmt::format("schedule {}({})", head.name, params));
    line(fmt::format("ranks {};", program.numRanks()));
    for (PipeId pipe : program.pipeIds())
      writePipe(pipe, !params.empty());
    writeCosts(CostOwner::Model, "model");
    writeCosts(CostOwner::Cluster, "cluster");
    if (!head.comm.empty()) {
      open("comm");
      for (const std::string &setting : head.comm)
        line(setting + ";");
      close();
    }
  }

  void writePipe(PipeId id, bool isFamily) {
    const Pipe &pipe = program.pipe(id);
    bool several = program.pipes().size() > 1;
    if (several)
      open("pipe " + pipe.name);
    line(isFamily ? std::string("microbatches M;")
         : pipe.firstMicrobatch == 0
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

  /// What stages give to those that read them, and take: the same for stages
  /// in a row once.
  void addTensors(const Pipe &pipe, std::vector<std::string> &lines) const {
    std::string where =
        program.pipes().size() > 1 ? " pipe " + pipe.name : std::string();
    for (bool isOutput : {true, false}) {
      std::map<uint32_t, std::vector<std::string>> ofStage;
      for (const EdgeTensors &edge : pipe.tensors)
        for (const Tensor &tensor : edge.tensors) {
          auto &texts = ofStage[(isOutput ? edge.from : edge.to).value];
          if (!llvm::is_contained(texts, tensorText(tensor)))
            texts.push_back(tensorText(tensor));
        }
      for (auto it = ofStage.begin(); it != ofStage.end();) {
        auto begin = it;
        uint32_t end = it->first;
        for (; it != ofStage.end() && it->first == end &&
               it->second == begin->second;
             ++it)
          ++end;
        lines.push_back(fmt::format("{}{} stage s in {} .. {} = {};",
                                    isOutput ? "output" : "input", where,
                                    begin->first, end,
                                    llvm::join(begin->second, ", ")));
      }
    }
  }

  void writeCosts(CostOwner owner, StringRef section) {
    std::vector<std::string> lines;
    // By what is said of them, and how much.
    std::map<StringRef, std::map<std::string, std::vector<std::string>>> links;
    if (owner == CostOwner::Model)
      for (PipeId pipe : program.pipeIds())
        addTensors(program.pipe(pipe), lines);
    if (owner == CostOwner::Model && !program.stageLayers().empty())
      lines.push_back(fmt::format("layout \"{}\";",
                                  llvm::join(program.stageLayers(), "|")));
    for (const CostSetting *setting : program.costs().inEffect()) {
      const CostRow &row = rowOf(setting->what);
      if (row.owner != owner ||
          (setting->what == Cost::MemoryLimit && !head.hasLimits))
        continue;
      if (setting->link) {
        links[row.item][row.number.format(setting->values.front())].push_back(
            fmt::format("a == {} and b == {}", setting->link->first.value,
                        setting->link->second.value));
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
      for (auto &[item, byValue] : links) {
        auto usual = llvm::max_element(byValue, [](auto &a, auto &b) {
          return a.second.size() < b.second.size();
        });
        std::string value;
        for (const auto &[number, pairs] : byValue)
          if (number != usual->first)
            value += fmt::format("{} ? {} : ", llvm::join(pairs, " or "), number);
        line(fmt::format("{} = {}{};", item, value, usual->first));
      }
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

  RankText textOf(const Word &word) {
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
    text.shape.push_back(
        word.empty() ||
        problem.load.ofRank[problem.rank[word.front()]].size() == 1);
    for (const Bodies::List &phase : text.phases)
      shapeOf(phase, text.shape, text.counts);
    return text;
  }

  /// That of a word which stands for M / period = n, and of one for n + 1.
  std::optional<RankText> textOf(const Word &word, const Word &longer,
                                 int64_t n) {
    RankText text = textOf(word), other = textOf(longer);
    if (text.shape != other.shape)
      return std::nullopt;
    for (auto [count, one] : llvm::zip(text.counts, other.counts)) {
      count.more = one.turns - count.turns;
      if (count.more < 0)
        return std::nullopt;
      count.turns -= count.more * n;
    }
    return text;
  }

  /// What a list adds to what a rank holds, and the most that it holds more
  /// meanwhile.
  struct Held {
    decimal::Sum net = 0, most = 0;
  };
  Held heldBy(const Bodies::List &list, const uint32_t *stages, int64_t n,
              const Count *&count) const {
    Held all;
    for (Bodies::Item item : list) {
      decimal::Sum times = count->turns + decimal::Sum(count->more) * n;
      ++count;
      Held one;
      if (bodies.isLetter(item.body)) {
        uint32_t letter = bodies.letterOf(item.body);
        Op op = opOf(stages[stageOf(letter)], partOf(letter));
        one = {decimal::Sum(problem.takes[op]) - problem.gives[op],
               problem.takes[op]};
      } else {
        one = heldBy(bodies.listOf(item.body), stages, n, count);
      }
      if (times > 0)
        all.most = std::max(all.most,
                            all.net + one.most +
                                std::max<decimal::Sum>(one.net, 0) * (times - 1));
      all.net += one.net * times;
    }
    return all;
  }

  decimal::Sum peakOf(const RankText &rank, uint32_t number, int64_t n) const {
    Held all;
    const Count *count = rank.counts.data();
    for (const Bodies::List &phase : rank.phases) {
      Held one = heldBy(phase, problem.load.ofRank[number].data(), n, count);
      all.most = std::max(all.most, all.net + one.most);
      all.net += one.net;
    }
    return all.most;
  }

  /// The structure of a list, counts left out, and the counts in order.
  void shapeOf(const Bodies::List &list, std::vector<uint32_t> &shape,
               std::vector<Count> &counts) const {
    shape.push_back(~0u);
    for (Bodies::Item item : list) {
      counts.push_back({item.count});
      if (bodies.isLetter(item.body))
        shape.push_back(bodies.letterOf(item.body));
      else
        shapeOf(bodies.listOf(item.body), shape, counts);
    }
    shape.push_back(~1u);
  }

  void writeRanks() {
    uint32_t ranks = program.numRanks();
    for (uint32_t begin = 0, end; begin != ranks; begin = end) {
      end = begin + 1;
      while (end != ranks && texts[end].shape == texts[begin].shape &&
             areLines(begin, end + 1))
        ++end;
      writeGroup(begin, end);
    }
  }

  /// The formula of a count in the number of the rank and M / period.
  std::optional<std::string> countOf(uint32_t begin, uint32_t end,
                                     size_t which) const {
    std::vector<int64_t> values;
    int64_t more = texts[begin].counts[which].more;
    for (uint32_t rank = begin; rank != end; ++rank) {
      values.push_back(texts[rank].counts[which].turns);
      if (texts[rank].counts[which].more != more)
        return std::nullopt;
    }
    auto rest = synthesis::line(values, begin, "r");
    if (!rest || more == 0)
      return rest;
    std::string term = more == 1 ? turns : fmt::format("{} * {}", more, turns);
    StringRef tail = *rest;
    if (tail == "0")
      return term;
    bool isLess = tail.consume_front("-");
    return fmt::format("{} {} {}", term, isLess ? "-" : "+", tail.str());
  }

  bool areLines(uint32_t begin, uint32_t end) const {
    for (size_t i = 0; i != texts[begin].counts.size(); ++i)
      if (!countOf(begin, end, i))
        return false;
    return true;
  }

  void writeGroup(uint32_t begin, uint32_t end) {
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
      return *countOf(begin, end, next++);
    };
    hasOneStage = problem.load.ofRank[begin].size() == 1;
    for (auto [phase, list] : llvm::enumerate(texts[begin].phases)) {
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
  const WrittenHead &head;
  Bodies bodies;
  std::vector<RankText> texts; ///< By rank.
  std::string turns;           ///< M / period.
  std::string text;
  size_t depth = 0;
  bool hasOneStage = false;
};

} // namespace

std::string synthesis::write(const Program &program, const Problem &problem,
                             const Order &order, const WrittenHead &head) {
  return ScheduleWriter(program, problem, head).write(order);
}

std::optional<WrittenFamily>
synthesis::writeFamily(const Program &program, ArrayRef<Growth> growths,
                       const WrittenHead &head, int64_t least) {
  return ScheduleWriter(program, *growths.front().problem, head)
      .write(growths, least);
}
