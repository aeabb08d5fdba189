// The text of a schedule: what stands around the orders, and orders as loops.
#include "ppcc/Decompile/ScheduleText.h"

#include "Formula.h"
#include "ppcc/Basic/Diagnostics.h" // Formats StringRef, in all files alike.

using namespace ppcc;
using namespace ppcc::schedtext;

using Ranks = std::pair<RankId, RankId>;

ScheduleText::ScheduleText(const Program &program, const ScheduleHeader &head)
    : program(program), head(head) {
  for (const Pipe &pipe : program.pipes()) {
    std::string name;
    for (char c : StringRef(pipe.name).rtrim(']'))
      name += llvm::isAlnum(c) ? c : '_';
    while (llvm::is_contained(pipes, name))
      name += '_';
    pipes.push_back(std::move(name));
  }
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

void ScheduleText::block(const std::string &header,
                         function_ref<void()> write) {
  constexpr size_t longest = 90;
  open(header);
  size_t begin = text.size();
  write();
  StringRef inner = StringRef(text).drop_front(begin);
  SmallVector<StringRef> lines;
  inner.split(lines, '\n', -1, /*KeepEmpty=*/false);
  bool isPlain = lines.size() == 1 ||
                 (!lines.empty() && inner.find('{') == StringRef::npos);
  std::string whole = header + " {";
  for (StringRef one : lines)
    whole += " " + one.trim().str();
  whole += " }";
  if (isPlain && whole.size() <= longest) {
    text.resize(begin);
    text.resize(StringRef(text).drop_back().rfind('\n') + 1);
    --depth;
    return line(whole);
  }
  close();
}

void ScheduleText::writePhase(const std::string &name,
                              function_ref<void()> write) {
  if (name.empty())
    write();
  else
    block("phase " + name, write);
}

std::pair<std::string, size_t> ScheduleText::trial(function_ref<void()> write) {
  constexpr size_t costOfLine = 24;
  size_t begin = text.size(), cost = 0;
  write();
  std::string written = text.substr(begin);
  text.resize(begin);
  for (StringRef one : llvm::split(written, '\n'))
    cost += one.empty() ? 0 : one.trim().size() + costOfLine;
  return {std::move(written), cost};
}

void ScheduleText::shortest(ArrayRef<std::function<void()>> ways) {
  constexpr size_t maxImproved = 1 << 17; // Nobody reads what is longer.
  std::pair<std::string, size_t> best{"", SIZE_MAX};
  for (const auto &way : ways)
    if (best.first.size() <= maxImproved)
      if (auto one = trial(way); one.second < best.second)
        best = std::move(one);
  put(best.first);
}

// ---- The head ----

void ScheduleText::writeHead(const std::string &params) {
  for (const std::string &action : head.actions)
    line(action);
  // Who gives a schedule its size, as others have it, need not know that this
  // one has a single size.
  auto isFree = [&](StringRef name) {
    return !program.kinds().find(name) && !llvm::is_contained(pipes, name);
  };
  auto parameter = [](StringRef name, uint32_t only) {
    return fmt::format("{0}: int in {1} .. {2} = {1}", name, only, only + 1);
  };
  namesMicrobatches = params.empty() && isFree("M") &&
                      program.pipes().size() == 1 &&
                      program.pipes()[0].firstMicrobatch == 0 &&
                      program.pipes()[0].numMicrobatches != 0;
  SmallVector<std::string, 2> all;
  if (isFree("P"))
    all.push_back(parameter("P", program.numRanks()));
  if (namesMicrobatches)
    all.push_back(parameter("M", program.pipes()[0].numMicrobatches));
  else if (!params.empty())
    all.push_back(params);
  open(fmt::format("schedule {}({})", head.name, llvm::join(all, ", ")));
  for (const std::string &condition : head.conditions)
    line(condition);
  line(isFree("P") ? "ranks P;" : fmt::format("ranks {};", program.numRanks()));
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
  auto write = [&] { writeBody(id); };
  if (program.pipes().size() > 1)
    block("pipe " + nameOf(id), write);
  else
    write();
}

void ScheduleText::writeBody(PipeId id) {
  const Pipe &pipe = program.pipe(id);
  line(namesMicrobatches ? "microbatches M;"
       : !head.microbatches.empty()
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
  line(fmt::format("stage s on rank {};", piecewiseExpr(map, "s")));
}

void ScheduleText::addTensors(PipeId id,
                              std::vector<std::string> &lines) const {
  const Pipe &pipe = program.pipe(id);
  std::string where =
      program.pipes().size() > 1 ? " pipe " + nameOf(id) : std::string();
  using TextsByStage = std::map<uint32_t, std::vector<std::string>>;
  TextsByStage outputs, inputs;
  auto addTexts = [](const EdgeTensors &edge, auto &texts) {
    for (const Tensor &tensor : edge.tensors)
      if (!llvm::is_contained(texts, tensorText(tensor)))
        texts.push_back(tensorText(tensor));
  };
  for (const EdgeTensors &edge : pipe.tensors)
    addTexts(edge, outputs[edge.from.value]);
  // Who takes all that its sources give need not say it.
  for (const EdgeTensors &edge : pipe.tensors) {
    std::vector<std::string> texts;
    addTexts(edge, texts);
    if (texts != outputs[edge.from.value])
      inputs[edge.to.value];
  }
  for (const EdgeTensors &edge : pipe.tensors)
    if (auto reader = inputs.find(edge.to.value); reader != inputs.end())
      addTexts(edge, reader->second);
  for (auto [word, ofStage] :
       {std::pair("output", &outputs), std::pair("input", &inputs)})
    for (auto it = ofStage->begin(); it != ofStage->end();) {
      auto begin = it;
      uint32_t end = it->first;
      for (; it != ofStage->end() && it->first == end &&
             it->second == begin->second;
           ++it)
        ++end;
      lines.push_back(fmt::format("{}{} stage s in {} .. {} = {};", word, where,
                                  begin->first, end,
                                  llvm::join(begin->second, ", ")));
    }
}

/// The pairs of ranks between which messages go that none of the settings is
/// about.
static std::set<Ranks> uncoveredPairs(const Program &program,
                                      ArrayRef<const CostSetting *> settings) {
  std::set<Ranks> pairs;
  forEachEdge(program.pipes(), [&](PipeId pipe, StageId from, StageId to) {
    pairs.insert(
        {program.rankOfStage(pipe, from), program.rankOfStage(pipe, to)});
  });
  std::erase_if(pairs, [](Ranks pair) { return pair.first == pair.second; });
  for (const CostSetting *setting : settings)
    pairs.erase(*setting->link);
  return pairs;
}

/// What is said of all links; nothing where that differs, or a message without
/// it takes no number.
static std::optional<int64_t>
defaultOf(Cost what, ArrayRef<const CostSetting *> inEffect) {
  std::optional<int64_t> usual;
  if (what == Cost::Latency)
    usual = 0;
  for (const CostSetting *setting : inEffect)
    if (setting->what == what && !setting->link) {
      if (setting->pipe || !llvm::all_equal(setting->values))
        return std::nullopt;
      usual = setting->values.front();
    }
  return usual;
}

std::string schedtext::inexpressibleCost(const Program &program) {
  auto inEffect = program.costs().inEffect(program.pipes().size());
  for (Cost what : {Cost::Latency, Cost::Bandwidth}) {
    std::vector<const CostSetting *> links;
    llvm::copy_if(inEffect, std::back_inserter(links), [&](auto *setting) {
      return setting->what == what && setting->link;
    });
    if (!links.empty() && !uncoveredPairs(program, links).empty() &&
        !defaultOf(what, inEffect))
      return fmt::format("the `{}` of some pairs of ranks, where there is not "
                         "one for all others",
                         rowOf(what).item);
  }
  return "";
}

/// Values by a number, as conditions on it.
static std::string
piecewiseByNumber(const std::map<int64_t, std::string> &values,
                  StringRef number) {
  std::vector<Piece> pieces;
  for (const auto &[at, value] : values) {
    if (pieces.empty() || pieces.back().text != value)
      pieces.push_back({0, value});
    pieces.back().end = at + 1;
  }
  return joinPieces(pieces, number);
}

/// `scale time microbatch m = m < 2 ? 1 : 2;`
std::string ScheduleText::factorsText(const CostSetting &setting) const {
  const CostRow &row = rowOf(setting.what);
  std::map<int64_t, std::string> factors;
  auto factor = setting.values.begin();
  for (const Pipe &pipe : program.pipes())
    for (uint32_t m = pipe.firstMicrobatch; m != pipe.endMicrobatch(); ++m)
      factors[m] = row.number.format(*factor++);
  std::string subject = setting.what == Cost::Scale
                            ? ""
                            : subjectOf(setting, program.kinds()) + " ";
  return fmt::format("{} {}microbatch m = {};", row.item, subject,
                     piecewiseByNumber(factors, "m"));
}

/// `latency = a == 0 and b == 1 ? 0.5 : 0;`, or by the number of the pair where
/// there are many.
void ScheduleText::writeLinks(StringRef item,
                              ArrayRef<const CostSetting *> settings) {
  constexpr size_t maxNamedPairs = 16;
  const CostRow &row = rowOf(settings.front()->what);
  std::map<Ranks, std::string> values;
  for (const CostSetting *setting : settings)
    values[*setting->link] = row.number.format(setting->values.front());
  if (auto usual =
          defaultOf(row.what, program.costs().inEffect(program.pipes().size())))
    for (Ranks pair : uncoveredPairs(program, settings))
      values[pair] = row.number.format(*usual);
  std::map<StringRef, std::vector<std::string>> byValue;
  for (const auto &[pair, value] : values)
    byValue[value].push_back(fmt::format("a == {} and b == {}",
                                         pair.first.value, pair.second.value));
  auto usual = llvm::max_element(byValue, [](auto &a, auto &b) {
    return a.second.size() < b.second.size();
  });
  if (values.size() - usual->second.size() <= maxNamedPairs) {
    std::string value;
    for (const auto &[number, pairs] : byValue)
      if (number != usual->first)
        value += fmt::format("{} ? {} : ", llvm::join(pairs, " or "), number);
    return line(fmt::format("{} = {}{};", item, value, usual->first));
  }
  std::map<int64_t, std::string> byPair;
  for (const auto &[pair, value] : values)
    byPair[int64_t(pair.first.value) * program.numRanks() + pair.second.value] =
        value;
  std::string number = fmt::format("(a * {} + b)", program.numRanks());
  line(fmt::format("{} = {};", item, piecewiseByNumber(byPair, number)));
}

void ScheduleText::writeCosts(CostOwner owner, StringRef section) {
  std::vector<std::string> lines;
  // By what is said of them: the settings of some.
  std::map<StringRef, std::vector<const CostSetting *>> links;
  if (owner == CostOwner::Model)
    for (PipeId pipe : program.pipeIds())
      addTensors(pipe, lines);
  if (owner == CostOwner::Model && !program.stageLayers().empty())
    lines.push_back(
        fmt::format("layout \"{}\";", llvm::join(program.stageLayers(), "|")));
  for (const CostSetting *setting :
       program.costs().inEffect(program.pipes().size())) {
    const CostRow &row = rowOf(setting->what);
    if (row.owner != owner || (head.actions.empty() && !row.subject.empty() &&
                               program.kinds()[setting->kind].isDeclared()))
      continue;
    if (setting->link) {
      links[row.item].push_back(setting);
      continue;
    }
    if (row.granularity == CostGranularity::Microbatches) {
      if (!setting->values.empty())
        lines.push_back(factorsText(*setting));
      continue;
    }
    std::string name = row.item.str();
    if (!row.subject.empty())
      name += " " + subjectOf(*setting, program.kinds());
    bool isList = setting->values.size() > 1;
    if (setting->pipe && program.pipes().size() > 1)
      name += " pipe " + nameOf(*setting->pipe);
    StringRef variable = row.granularity == CostGranularity::Ranks ? "r" : "s";
    if (isList)
      name +=
          row.granularity == CostGranularity::Ranks ? " rank r" : " stage s";
    auto number = [&](int64_t value) { return row.number.format(value); };
    lines.push_back(
        fmt::format("{} = {};", name,
                    isList ? piecewiseExpr(setting->values, variable, number)
                           : number(setting->values.front())));
  }
  if (owner == CostOwner::Cluster && !head.transports.empty())
    lines.push_back("transport " + head.transports + ";");
  if (lines.empty() && links.empty())
    return;
  open(section.str());
  if (auto units = program.units().words(); !units.empty())
    line(fmt::format("units {};", fmt::join(units, ", ")));
  for (const std::string &one : lines)
    line(one);
  if (!links.empty()) {
    open("link a, b");
    for (const auto &[item, settings] : links)
      writeLinks(item, settings);
    close();
  }
  close();
}
