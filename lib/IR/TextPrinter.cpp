// Writes a program as text.
#include "ppcc/IR/Calls.h"
#include "ppcc/IR/Loops.h"
#include "ppcc/IR/Text.h"
#include "ppcc/Support/Printable.h"

using namespace ppcc;

std::string ppcc::quotedString(StringRef text) {
  std::string escaped;
  for (char c : text)
    escaped += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
  return '"' + printable(escaped) + '"';
}

std::string ppcc::quotedIfNeeded(StringRef text) {
  bool isPlain = !text.empty() && llvm::all_of(text, [](char c) {
    return llvm::isAlnum(c) || StringRef("_.+-").contains(c);
  });
  return isPlain ? text.str() : quotedString(text);
}

namespace {

/// Puts items on lines of some hundred columns.
class Lines {
public:
  /// The first line is indented by `indent` columns, the others by `hanging`
  /// more.
  Lines(raw_ostream &out, unsigned indent, unsigned hanging = 0)
      : out(out), indent(indent), hanging(hanging) {}

  void put(StringRef item) {
    if (column != 0 && column + 1 + item.size() > width)
      endLine();
    if (column == 0) {
      out.indent(indent);
      column = indent;
      indent += std::exchange(hanging, 0);
    } else {
      out << ' ';
      ++column;
    }
    out << item;
    column += item.size();
  }
  void endLine() {
    if (column != 0)
      out << '\n';
    column = 0;
  }

private:
  static constexpr size_t width = 100;
  raw_ostream &out;
  unsigned indent, hanging;
  size_t column = 0;
};

struct Printer {
  const Program &program;
  raw_ostream &out;
  const PrintOptions &options;

  void print() {
    if (options.sites)
      numberSites();
    printHead();
    for (RankId rank : program.ranks())
      if (shows(rank))
        printRank(rank);
  }

  bool shows(RankId rank) const {
    return options.ranks.empty() || llvm::is_contained(options.ranks, rank);
  }
  bool shows(const Action &action) const {
    return !options.microbatches ||
           (action.microbatch >= options.microbatches->first &&
            action.microbatch < options.microbatches->second);
  }

  /// Numbers the sites that the shown actions use, those in the program's own
  /// text excepted.
  void numberSites() {
    BitVector used(program.sites().size());
    for (RankId rank : program.ranks())
      for (ActionId row : program.rows(rank))
        if (Action action = program[row]; shows(rank) && shows(action))
          for (SiteId site = action.site;
               site != SiteId() && !used.test(site.value);
               site = program.sites()[site.value].caller)
            used.set(site.value);
    siteNumber.assign(program.sites().size(), 0);
    uint32_t next = 0;
    for (unsigned site : used.set_bits())
      if (!program.files()[program.sites()[site].file].own)
        siteNumber[site] = ++next;
  }

  template <class... Args>
  void line(fmt::format_string<Args...> item, Args &&...args) {
    out << "  " << fmt::format(item, std::forward<Args>(args)...) << '\n';
  }
  /// `ITEM[VALUE VALUE]`, broken between values.
  template <class Range, class Text>
  static void put(Lines &lines, std::string item, const Range &range,
                  Text textOf) {
    StringRef open = "[";
    for (const auto &value : range) {
      if (open.empty())
        lines.put(std::exchange(item, ""));
      item += std::exchange(open, "").str() + textOf(value);
    }
    lines.put(item + open.str() + "]");
  }
  template <class Range, class Text>
  void list(std::string item, const Range &range, Text textOf) {
    Lines lines(out, 2, 2);
    put(lines, std::move(item), range, textOf);
    lines.endLine();
  }

  void printHead() {
    out << "program "
        << (program.name().empty() ? "" : quotedString(program.name()))
        << (program.name().empty() ? "{\n" : " {\n");
#define HEAD(Item, Text, Json, Need, Of) print##Item(Text);
#define HEAD_SECTION(Item, Json, Need, Of) print##Item();
#include "ppcc/IR/Head.def"
    out << "}\n";
  }

  void printParams(StringRef key) {
    for (const auto &[name, type, value] : program.params())
      line("{} {}: {} = {}", key, quotedIfNeeded(name), quotedIfNeeded(type),
           quotedIfNeeded(value));
  }
  void printRanks(StringRef key) { line("{} {}", key, program.numRanks()); }
  void printBackward(StringRef key) {
    line("{} {}", key, program.hasBackward());
  }
  void printCalls(StringRef key) {
    if (program.calls() != CallStyle::None)
      line("{} {}", key, callStyleNames()[size_t(program.calls())]);
  }
  void printProven(StringRef key) {
    if (!program.provenUnder().empty())
      line("{} [{}]", key, llvm::join(program.provenUnder(), " "));
  }
  void printPreconnect(StringRef key) {
    if (!program.preconnect().empty())
      list((key + " ").str(), program.preconnect(), [](RankPair pair) {
        return fmt::format("{}-{}", pair.low.value, pair.high.value);
      });
  }
  void printKinds() {
    for (const KindInfo &info : program.kinds().declaredRows())
      printKind(info);
  }
  void printPipes() {
    for (const Pipe &pipe : program.pipes())
      printPipe(pipe);
  }
  void printLayout(StringRef key) {
    if (!program.stageLayers().empty())
      line("{} {}", key, quotedString(llvm::join(program.stageLayers(), "|")));
  }
  void printUnits(StringRef key) {
    if (auto words = program.units().words(); !words.empty())
      line("{} [{}]", key, llvm::join(words, " "));
  }
  void printCosts() {
    for (const CostSetting *setting :
         program.costs().inEffect(program.pipes().size()))
      printCost(*setting);
  }

  const std::string &mnemonic(KindId kind) const {
    return program.kinds()[kind].mnemonic;
  }
  std::string pipeName(PipeId pipe) const {
    return quotedString(program.pipe(pipe).name);
  }

  void printNodes() {
    const NodeGraphs &nodes = program.nodes();
    for (const NodeGraph &graph : nodes.graphs)
      list(fmt::format("graph {} layers {} {}", mnemonic(graph.kind),
                       graph.layers, graph.down ? "down " : ""),
           graph.nodes, [&](const GraphNode &node) { return nodeText(node); });
    for (const GraphUse &use : nodes.uses)
      list(fmt::format("graphs {} {} ", mnemonic(use.kind), pipeName(use.pipe)),
           use.graphs, [](uint32_t graph) {
             return graph == GraphUse::none ? "-" : llvm::utostr(graph);
           });
    for (const NodePattern &pattern : nodes.patterns)
      printPattern(pattern);
  }

  /// `comm:F.L1.combine=0.5<0,2`
  std::string nodeText(const GraphNode &node) const {
    std::string cost =
        node.cost == GraphNode::unset ? "" : "=" + cost::format(node.cost);
    return fmt::format("{}:{}.{}{}{}{}", program.nodes().lanes[node.lane],
                       mnemonic(node.part), program.nodes().pathOf(node), cost,
                       node.needs.empty() ? "" : "<",
                       fmt::join(node.needs, ","));
  }

  /// `pattern F B before [...] layer [...] after [... last:W.mlp]`.
  void printPattern(const NodePattern &pattern) {
    std::string item = "pattern ";
    for (KindId kind : pattern.kinds)
      item += mnemonic(kind) + " ";
    Lines lines(out, 2, 2);
    for (auto [word, nodes] : {std::pair("before ", &pattern.before),
                               std::pair("layer ", &pattern.layer),
                               std::pair("after ", &pattern.after)})
      put(lines, std::exchange(item, "") + word, *nodes,
          [&](const PatternNode &node) {
            return fmt::format("{}{}.{}", node.last ? "last:" : "",
                               mnemonic(node.part),
                               program.nodes().names[node.name]);
          });
    lines.endLine();
  }

  void printFiles(StringRef key) {
    fileNumber.resize(program.files().size());
    uint32_t next = 0;
    for (auto [file, number] : llvm::zip(program.files(), fileNumber))
      if (options.sites && !file.own)
        line("{} {} {}", key, number = next++, quotedString(file.name));
  }
  void printSites(StringRef key) {
    for (auto [site, number] : llvm::zip(program.sites(), siteNumber)) {
      if (number == 0)
        continue;
      uint32_t caller = siteNumber[site.caller.value];
      line("{} {} {}:{}:{}{}", key, number, fileNumber[site.file], site.line,
           site.column, caller ? fmt::format(" in {}", caller) : "");
    }
  }

  /// `action R per microbatch lane compute after [F] before [B I]`.
  void printKind(const KindInfo &info) {
    out << "  action " << info.mnemonic;
#define KIND(Name, Member) printProperty(Name, info, Member);
#include "ppcc/IR/KindProperties.def"
    out << '\n';
  }

  template <class... Parts> void say(const Parts &...parts) {
    ((out << ' ' << parts), ...);
  }
  void printProperty(StringRef name, const KindInfo &info,
                     KindScope KindInfo::*scope) {
    say(name, kindScopeNames()[size_t(info.*scope)]);
  }
  void printProperty(StringRef name, const KindInfo &info,
                     uint8_t KindInfo::*lane) {
    say(name, program.kinds().lanes()[info.*lane]);
  }
  void printProperty(StringRef name, const KindInfo &info, bool isBefore) {
    for (const KindRule &rule : info.rules)
      if (rule.isBefore == isBefore)
        say(name, "[" +
                      llvm::join(llvm::map_range(rule.kinds,
                                                 [&](KindId kind) {
                                                   return mnemonic(kind);
                                                 }),
                                 " ") +
                      "]");
  }
  void printProperty(StringRef name, const KindInfo &info,
                     bool KindInfo::*flag) {
    if (info.*flag)
      say(name);
  }
  void printProperty(StringRef name, const KindInfo &info,
                     std::optional<KindId> KindInfo::*kind) {
    if (info.*kind)
      say(name, mnemonic(*(info.*kind)));
  }
  void printProperty(StringRef name, const KindInfo &info,
                     uint32_t KindInfo::*count) {
    if (info.*count)
      say(name, info.*count);
  }
  void printProperty(StringRef name, const KindInfo &info,
                     Collective KindInfo::*collective) {
    if (info.*collective == Collective::Stages)
      say(name, fmt::format("[{}]", fmt::join(info.stages, " ")));
    else if (info.*collective == Collective::Outside)
      say(name, collectiveName(info.collective), info.outside);
    else if (info.*collective != Collective::None)
      say(name, collectiveName(info.collective));
  }

  void printPipe(const Pipe &pipe) {
    std::string name = quotedString(pipe.name);
    list(fmt::format("pipe {} microbatches {}..{}{} ranks ", name,
                     pipe.firstMicrobatch, pipe.endMicrobatch(),
                     pipe.slices == 1 ? ""
                                      : fmt::format(" slices {}", pipe.slices)),
         pipe.rankOfStage,
         [](RankId rank) { return llvm::utostr(rank.value); });
    for (auto [from, to] : pipe.skipEdges)
      line("skip {} {} -> {}", name, from.value, to.value);
    for (StageId gap : pipe.gaps)
      line("gap {} {} -> {}", name, gap.value, gap.value + 1);
    for (const auto &[from, to, tensors] : pipe.tensors) {
      std::string carried;
      for (const Tensor &tensor : tensors)
        carried += " " + tensorText(tensor);
      line("carry {} {} -> {}{}", name, from.value, to.value, carried);
    }
  }

  /// `cost F "down" [1 2]`.
  void printCost(const CostSetting &setting) {
    const CostRow &row = rowOf(setting.what);
    std::string item = row.item.str() + ' ';
    if (std::string subject = subjectOf(setting, program.kinds());
        !subject.empty())
      item += subject + ' ';
    if (setting.pipe)
      item += pipeName(*setting.pipe) + ' ';
    if (setting.link)
      item += fmt::format("link {}-{} ", setting.link->first.value,
                          setting.link->second.value);
    if (setting.values.size() == 1)
      return line("{}{}", item, row.number.format(setting.values.front()));
    list(item, setting.values,
         [&](int64_t value) { return row.number.format(value); });
  }

  void printRank(RankId rank) {
    out << "rank " << rank.value << " {\n";
    PhaseId phase;
    forEachSegment(program, rank, [&](RowRange rows, const Loop *loop) {
      if (!loop)
        return printRows(rows, 2, phase);
      enterPhase(program[loop->begin].phase, 2, phase);
      out << "  loop " << loop->count << " advance " << loop->advance << " {\n";
      printRows(rows, 4, phase);
      out << "  }\n";
    });
    out << "}\n";
  }

  /// Prints phases at an indent, rows deeper; `phase` is the one to be in.
  void printRows(RowRange rows, unsigned indent, PhaseId &phase) {
    Lines lines(out, indent + 2);
    for (RowRange group : program.items(rows)) {
      if (!appendGroup(group))
        continue;
      PhaseId groupPhase = program[group.from].phase;
      if (groupPhase != phase)
        lines.endLine();
      enterPhase(groupPhase, indent, phase);
      lines.put(cells);
    }
    lines.endLine();
  }

  void enterPhase(PhaseId next, unsigned indent, PhaseId &phase) {
    if (next == phase)
      return;
    out.indent(indent) << "phase " << quotedString(program.phases()[next.value])
                       << '\n';
    phase = next;
  }

  /// Leaves the shown actions of a group in `cells`; false when there are none.
  bool appendGroup(RowRange group) {
    unsigned shown = 0;
    cells.clear();
    for (ActionId row : group) {
      Action action = program[row];
      if (!shows(action))
        continue;
      if (++shown == 2)
        cells.insert(cells.begin(), '(');
      if (shown > 1)
        cells += "; ";
      appendCell(program, action, cells);
      if (program.pipes().size() > 1 &&
          program.kindOf(action).scope == KindScope::Stage)
        cells += ":" + llvm::utostr(action.pipe.value);
      if (options.sites && siteNumber[action.site.value] != 0) {
        cells += '@';
        cells += llvm::utostr(siteNumber[action.site.value]);
      }
    }
    if (shown > 1)
      cells += ')';
    return shown != 0;
  }

  std::vector<uint32_t> siteNumber{}; ///< By SiteId; 0 for one not printed.
  std::vector<uint32_t> fileNumber{}; ///< By file.
  SmallString<64> cells{};
};

} // namespace

void ppcc::printProgram(const Program &program, raw_ostream &out,
                        const PrintOptions &options) {
  Printer{program, out, options}.print();
}
