// The text of a schedule: what stands around the orders, and orders as loops.
#include "ppcc/Decompile/ScheduleText.h"

#include "Formula.h"
#include "ppcc/Basic/Diagnostics.h" // Formats StringRef, in all files alike.

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <fmt/format.h>

using namespace ppcc;
using namespace ppcc::written;
using llvm::ArrayRef;
using llvm::StringRef;

// ---- Loops ----

Bodies::List Bodies::compress(ArrayRef<uint32_t> letters) {
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

uint32_t Bodies::add(Body body) {
  auto [place, isNew] = numbers.try_emplace(std::move(body), bodies.size());
  if (isNew)
    bodies.push_back(&place->first);
  return place->second;
}

bool Bodies::foldOnce(List &items) {
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

// ---- Lines ----

void ScheduleText::line(const std::string &content) {
  text.append(depth * 2, ' ');
  text += content + '\n';
}
void ScheduleText::open(const std::string &content) {
  line(content + " {");
  ++depth;
}
void ScheduleText::close() {
  --depth;
  line("}");
}

// ---- The head ----

void ScheduleText::writeHead(const std::string &params) {
  for (const std::string &action : head.actions)
    line(action);
  open(fmt::format("schedule {}({})", head.name, params));
  for (const std::string &condition : head.conditions)
    line(condition);
  line(fmt::format("ranks {};", program.numRanks()));
  for (PipeId pipe : program.pipeIds())
    writePipe(pipe);
  if (!program.hasBackward())
    line("backward when false;");
  writeCosts(CostOwner::Model, "model");
  writeCosts(CostOwner::Cluster, "cluster");
  for (const std::string &insert : head.inserts)
    line(insert);
  if (!head.comm.empty()) {
    open("comm");
    for (const std::string &setting : head.comm)
      line(setting + ";");
    close();
  }
}

void ScheduleText::writePipe(PipeId id) {
  const Pipe &pipe = program.pipe(id);
  bool several = program.pipes().size() > 1;
  if (several)
    open("pipe " + pipe.name);
  line(!head.microbatches.empty()
           ? fmt::format("microbatches {};", head.microbatches[id.value])
       : pipe.firstMicrobatch == 0
           ? fmt::format("microbatches {};", pipe.numMicrobatches)
           : fmt::format("microbatches {} .. {};", pipe.firstMicrobatch,
                         pipe.endMicrobatch()));
  if (pipe.slices != 1)
    line(fmt::format("slices {};", pipe.slices));
  writePlacement(pipe);
  for (auto [from, to] : pipe.skipEdges)
    line(fmt::format("edge stage {} -> stage {};", from.value, to.value));
  for (StageId gap : pipe.gaps)
    line(
        fmt::format("no edge stage {} -> stage {};", gap.value, gap.value + 1));
  if (several)
    close();
}

void ScheduleText::writePlacement(const Pipe &pipe) {
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

void ScheduleText::addTensors(const Pipe &pipe,
                              std::vector<std::string> &lines) const {
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
      lines.push_back(fmt::format(
          "{}{} stage s in {} .. {} = {};", isOutput ? "output" : "input",
          where, begin->first, end, llvm::join(begin->second, ", ")));
    }
  }
}

void ScheduleText::writeCosts(CostOwner owner, StringRef section) {
  std::vector<std::string> lines;
  // By what is said of them, and how much.
  std::map<StringRef, std::map<std::string, std::vector<std::string>>> links;
  if (owner == CostOwner::Model)
    for (PipeId pipe : program.pipeIds())
      addTensors(program.pipe(pipe), lines);
  if (owner == CostOwner::Model && !program.stageLayers().empty())
    lines.push_back(
        fmt::format("layout \"{}\";", llvm::join(program.stageLayers(), "|")));
  for (const CostSetting *setting : program.costs().inEffect()) {
    const CostRow &row = rowOf(setting->what);
    if (row.owner != owner || (head.actions.empty() && !row.subject.empty() &&
                               program.kinds()[setting->kind].isDeclared()))
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
    lines.push_back(fmt::format("{} = {};", name,
                                isList
                                    ? formula(setting->values, variable, number)
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

Phases written::inPhases(ArrayRef<uint32_t> letters, size_t firstBack,
                         size_t lastForward) {
  auto part = [&](size_t begin, size_t end) {
    return letters.slice(begin, end - begin).vec();
  };
  return {{"warmup", part(0, firstBack)},
          {"steady", part(firstBack, lastForward)},
          {"cooldown", part(lastForward, letters.size())}};
}

RankText ScheduleText::textOf(const Phases &phases, uint32_t mark) {
  RankText text;
  text.shape.push_back(mark);
  for (const auto &[name, letters] : phases) {
    if (letters.empty())
      continue;
    text.phases.push_back({name, bodies.compress(letters)});
    text.shape.push_back(
        phaseNumbers.try_emplace(name, phaseNumbers.size()).first->second);
    shapeOf(text.phases.back().items, text.shape, text.counts);
  }
  return text;
}

void ScheduleText::shapeOf(const Bodies::List &list,
                           std::vector<uint32_t> &shape,
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

std::optional<std::string> ScheduleText::countOf(uint32_t begin, uint32_t end,
                                                 size_t which) const {
  std::vector<int64_t> values;
  int64_t more = texts[begin].counts[which].more;
  for (uint32_t rank = begin; rank != end; ++rank) {
    values.push_back(texts[rank].counts[which].turns);
    if (texts[rank].counts[which].more != more)
      return std::nullopt;
  }
  auto rest = written::line(values, begin, stride == 1 ? "r" : "(r / 2)");
  if (!rest || more == 0)
    return rest;
  std::string term = more == 1 ? turns : fmt::format("{} * {}", more, turns);
  StringRef tail = *rest;
  if (tail == "0")
    return term;
  bool isLess = tail.consume_front("-");
  return fmt::format("{} {} {}", term, isLess ? "-" : "+", tail.str());
}

// ---- Ranks that one text stands for ----

bool ScheduleText::spell(const Bodies::List &list, const Count *&count,
                         std::vector<uint32_t> &letters, size_t most) const {
  for (Bodies::Item item : list) {
    size_t begin = letters.size(), turns = (count++)->turns;
    if (bodies.isLetter(item.body))
      letters.push_back(bodies.letterOf(item.body));
    else if (!spell(bodies.listOf(item.body), count, letters, most))
      return false;
    size_t length = letters.size() - begin;
    if (length != 0 && turns > (most - begin) / length)
      return false;
    letters.resize(begin + length * turns);
    for (size_t i = begin + length; i < letters.size(); ++i)
      letters[i] = letters[i - length];
  }
  return true;
}

std::optional<Phases> ScheduleText::spell(const RankText &rank,
                                          size_t most) const {
  Phases result;
  const Count *count = rank.counts.data();
  for (const RankPhase &phase : rank.phases) {
    std::vector<uint32_t> letters;
    if (!spell(phase.items, count, letters, most))
      return std::nullopt;
    if (!letters.empty())
      result.push_back({phase.name, std::move(letters)});
  }
  return result;
}

/// How often each of the words comes, one after another, for all to be the
/// letters: as often as can be for those in front. O(words * letters).
static std::optional<std::vector<int64_t>>
turnsOf(ArrayRef<std::vector<uint32_t>> words, ArrayRef<uint32_t> letters) {
  constexpr size_t mostPlaces = 1 << 22;
  size_t width = letters.size() + 1;
  if (words.size() > mostPlaces / width)
    return std::nullopt;
  // Whether the words from one on can be all letters from a place on.
  std::vector<bool> fits((words.size() + 1) * width);
  fits.back() = true;
  auto turns = [&](size_t word, size_t at) {
    size_t length = words[word].size();
    return length <= letters.size() - at &&
           letters.slice(at, length) == ArrayRef(words[word]) &&
           fits[word * width + at + length];
  };
  for (size_t word = words.size(); word-- != 0;)
    for (size_t at = width; at-- != 0;)
      fits[word * width + at] =
          fits[(word + 1) * width + at] || turns(word, at);
  if (!fits.front())
    return std::nullopt;
  std::vector<int64_t> counts(words.size());
  for (size_t word = 0, at = 0; word != words.size(); ++word)
    for (; turns(word, at); at += words[word].size())
      ++counts[word];
  return counts;
}

std::optional<RankText> ScheduleText::fitted(RankText rank,
                                             const Phases &phases) const {
  auto given = phases.begin();
  const Count *count = rank.counts.data();
  for (const RankPhase &phase : rank.phases) {
    std::vector<std::vector<uint32_t>> words;
    std::vector<size_t> places;
    for (Bodies::Item item : phase.items) {
      places.push_back(count - rank.counts.data());
      ++count;
      std::vector<uint32_t> &word = words.emplace_back();
      if (bodies.isLetter(item.body))
        word.push_back(bodies.letterOf(item.body));
      else
        spell(bodies.listOf(item.body), count, word, SIZE_MAX);
    }
    ArrayRef<uint32_t> letters;
    if (given != phases.end() && given->first == phase.name)
      letters = (given++)->second;
    auto turns = turnsOf(words, letters);
    if (!turns)
      return std::nullopt;
    for (auto [place, value] : llvm::zip(places, *turns))
      rank.counts[place].turns = value;
  }
  if (given != phases.end())
    return std::nullopt;
  return rank;
}

RankText ScheduleText::Run::of(uint32_t rank) const {
  RankText text = first;
  for (auto [count, step] : llvm::zip(text.counts, steps))
    count.turns += step * (int64_t(rank) - from);
  return text;
}

std::vector<ScheduleText::Run> ScheduleText::findRuns() const {
  std::vector<Phases> words;
  for (const RankText &rank : texts)
    words.push_back(*spell(rank, SIZE_MAX));
  std::vector<Run> runs;
  for (uint32_t i = 0; i + 1 < texts.size(); ++i)
    for (uint32_t shaped : {i, i + 1}) {
      const RankText &text = texts[shaped];
      if (texts[i].shape[0] != texts[i + 1].shape[0] ||
          llvm::any_of(runs, [&](const Run &run) {
            return run.begin <= i && i + 1 < run.end &&
                   run.first.shape == text.shape;
          }))
        continue;
      uint32_t other = i + i + 1 - shaped;
      auto fit = texts[other].shape == text.shape ? texts[other]
                                                  : fitted(text, words[other]);
      if (!fit)
        continue;
      Run run{i, i + 2, shaped, text, {}};
      for (auto [mine, its] : llvm::zip(text.counts, fit->counts))
        run.steps.push_back((its.turns - mine.turns) *
                            (int64_t(other) - shaped));
      auto holds = [&](uint32_t rank) {
        RankText one = run.of(rank);
        size_t size = 0;
        for (const auto &[name, letters] : words[rank])
          size += letters.size();
        return texts[rank].shape[0] == text.shape[0] &&
               llvm::all_of(one.counts,
                            [](Count count) { return count.turns >= 0; }) &&
               spell(one, size) == words[rank];
      };
      while (run.begin != 0 && holds(run.begin - 1))
        --run.begin;
      while (run.end != texts.size() && holds(run.end))
        ++run.end;
      // Any two are on a line: it takes a third to tell.
      if (run.end - run.begin > 2)
        runs.push_back(std::move(run));
    }
  return runs;
}

bool ScheduleText::areLines(uint32_t begin, uint32_t end) const {
  for (size_t i = 0; i != texts[begin].counts.size(); ++i)
    if (!countOf(begin, end, i))
      return false;
  return true;
}

void ScheduleText::writeGroup(uint32_t begin, uint32_t end,
                              Statement statement) {
  bool isAll = end - begin == texts.size();
  std::string condition = end == texts.size() ? "else"
                          : end - begin == 1
                              ? fmt::format("if r == {}", rankOf(begin))
                              : fmt::format("if r < {}", rankOf(end));
  if (begin != 0 && end != texts.size())
    condition = "else " + condition;
  if (!isAll)
    open(condition);
  size_t next = 0;
  auto count = [&] { return *countOf(begin, end, next++); };
  auto action = [&](uint32_t letter) {
    return statement(letter, rankOf(begin));
  };
  for (const RankPhase &phase : texts[begin].phases) {
    if (!phase.name.empty())
      open("phase " + phase.name);
    writeList(phase.items, count, action);
    if (!phase.name.empty())
      close();
  }
  if (!isAll)
    close();
}

void ScheduleText::writeList(const Bodies::List &list, NextCount count,
                             Action action) {
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
      writeList(bodies.listOf(item.body), count, action);
      close();
      continue;
    }
    inner = oneLine(item.body, count, action);
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

bool ScheduleText::fitsLine(uint32_t body) const {
  if (bodies.isLetter(body))
    return true;
  const Bodies::List &list = bodies.listOf(body);
  return list.size() <= 12 && llvm::all_of(list, [&](Bodies::Item item) {
           return bodies.isLetter(item.body);
         });
}

std::string ScheduleText::oneLine(uint32_t body, NextCount count,
                                  Action action) {
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

void ScheduleText::group(ArrayRef<RankText> ranks, uint32_t from, uint32_t by) {
  first = from;
  stride = by;
  texts.clear();
  groups.clear();
  for (size_t rank = from; rank < ranks.size(); rank += by)
    texts.push_back(ranks[rank]);
  std::vector<Run> runs;
  if (turns.empty())
    runs = findRuns();
  for (uint32_t begin = 0, end; begin != texts.size(); begin = end) {
    end = begin + 1;
    while (end != texts.size() && texts[end].shape == texts[begin].shape &&
           areLines(begin, end + 1))
      ++end;
    const Run *best = nullptr;
    for (const Run &run : runs)
      if (run.begin <= begin && run.end > end &&
          (!best || std::pair(run.end, best->steps.size()) >
                        std::pair(best->end, run.steps.size())))
        best = &run;
    if (best) {
      end = best->end;
      for (uint32_t i = begin; i != end; ++i)
        texts[i] = best->of(i);
    }
    groups.push_back({begin, end});
  }
}

void ScheduleText::writeRanks(ArrayRef<RankText> ranks,
                              const std::string &perPeriod,
                              Statement statement) {
  turns = perPeriod;
  size_t apart = 1;
  for (uint32_t parity : {0, 1}) {
    group(ranks, parity, 2);
    apart += groups.size();
  }
  group(ranks, 0, 1);
  if (!turns.empty() || groups.size() <= apart) {
    for (auto [begin, end] : groups)
      writeGroup(begin, end, statement);
    return;
  }
  for (uint32_t parity : {0, 1}) {
    group(ranks, parity, 2);
    open(parity == 0 ? "if r % 2 == 0" : "else");
    for (auto [begin, end] : groups)
      writeGroup(begin, end, statement);
    close();
  }
}
