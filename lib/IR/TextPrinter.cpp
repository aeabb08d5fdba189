// Writes a program as text.
#include "ppcc/IR/Calls.h"
#include "ppcc/IR/Loops.h"
#include "ppcc/IR/Text.h"
#include "ppcc/Support/Printable.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"

#include <fmt/ranges.h>

#include <utility>

using namespace ppcc;
using llvm::raw_ostream;
using llvm::StringRef;

static std::string quoted(StringRef text) {
  std::string escaped;
  for (char c : text)
    escaped += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
  return '"' + printable(escaped) + '"';
}

/// Without quotes where it needs none.
static std::string word(StringRef text) {
  bool isPlain = !text.empty() && llvm::all_of(text, [](char c) {
    return llvm::isAlnum(c) || StringRef("_.+-").contains(c);
  });
  return isPlain ? text.str() : quoted(text);
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

class Printer {
public:
  Printer(const Program &program, raw_ostream &out, const PrintOptions &options)
      : program(program), out(out), options(options) {}

  void print() {
    if (options.sites)
      numberSites();
    printHead();
    for (RankId rank : program.ranks())
      if (shows(rank))
        printRank(rank);
  }

private:
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
    llvm::BitVector used(program.sites().size());
    for (RankId rank : program.ranks()) {
      if (!shows(rank))
        continue;
      for (ActionId i : program.rows(rank)) {
        Action action = program[i];
        if (!shows(action))
          continue;
        for (SiteId site = action.site;
             site != SiteId() && !used.test(site.value);
             site = program.sites()[site.value].caller)
          used.set(site.value);
      }
    }
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
    out << "program " << (program.name().empty() ? "" : quoted(program.name()))
        << (program.name().empty() ? "{\n" : " {\n");
    for (const auto &[name, type, value] : program.params())
      line("param {}: {} = {}", word(name), word(type), word(value));
    line("ranks {}", program.numRanks());
    line("backward {}", program.hasBackward());
    if (program.calls() != CallStyle::None)
      line("calls {}", callStyleNames()[size_t(program.calls())]);
    if (!program.provenUnder().empty())
      line("proven [{}]", llvm::join(program.provenUnder(), " "));
    if (!program.preconnect().empty())
      list("preconnect ", program.preconnect(), [](RankPair pair) {
        return fmt::format("{}-{}", pair.low.value, pair.high.value);
      });
    if (options.sites)
      printSites();
    for (const KindInfo &info : program.kinds().declaredRows())
      printKind(info);
    for (const Pipe &pipe : program.pipes())
      printPipe(pipe);
    if (!program.stageLayers().empty())
      line("layout {}", quoted(llvm::join(program.stageLayers(), "|")));
    printNodes();
    for (const CostSetting *setting : program.costs().inEffect())
      printCost(*setting);
    out << "}\n";
  }

  const std::string &letters(KindId kind) const {
    return program.kinds()[kind].letters;
  }
  std::string pipeName(PipeId pipe) const {
    return quoted(program.pipe(pipe).name);
  }

  void printNodes() {
    const NodeGraphs &nodes = program.nodes();
    for (const NodeGraph &graph : nodes.graphs)
      list(fmt::format("graph {} layers {} {}", letters(graph.kind),
                       graph.layers, graph.down ? "down " : ""),
           graph.nodes, [&](const GraphNode &node) { return nodeText(node); });
    for (const GraphUse &use : nodes.uses)
      list(fmt::format("graphs {} {} ", letters(use.kind), pipeName(use.pipe)),
           use.graphs, [](uint32_t graph) {
             return graph == GraphUse::none ? "-" : llvm::utostr(graph);
           });
    for (const NodePattern &pattern : nodes.patterns)
      printPattern(pattern);
  }

  /// `comm:F.L1.combine=0.5<0,2`
  std::string nodeText(const GraphNode &node) const {
    std::string cost = node.cost == GraphNode::untold
                           ? ""
                           : "=" + cost::format(node.cost);
    return fmt::format("{}:{}.{}{}{}{}", program.nodes().lanes[node.lane],
                       letters(node.part), program.nodes().pathOf(node), cost,
                       node.needs.empty() ? "" : "<",
                       fmt::join(node.needs, ","));
  }

  /// `pattern F B before [...] layer [...] after [... last:W.mlp]`.
  void printPattern(const NodePattern &pattern) {
    std::string item = "pattern ";
    for (KindId kind : pattern.kinds)
      item += letters(kind) + " ";
    Lines lines(out, 2, 2);
    for (auto [word, nodes] : {std::pair("before ", &pattern.before),
                               std::pair("layer ", &pattern.layer),
                               std::pair("after ", &pattern.after)})
      put(lines, std::exchange(item, "") + word, *nodes,
          [&](const PatternNode &node) {
            return fmt::format("{}{}.{}", node.last ? "last:" : "",
                               letters(node.part),
                               program.nodes().names[node.name]);
          });
    lines.endLine();
  }

  void printSites() {
    std::vector<uint32_t> fileNumber(program.files().size());
    uint32_t next = 0;
    for (auto [file, number] : llvm::zip(program.files(), fileNumber))
      if (!file.own)
        line("file {} {}", number = next++, quoted(file.name));
    for (auto [site, number] : llvm::zip(program.sites(), siteNumber)) {
      if (number == 0)
        continue;
      uint32_t caller = siteNumber[site.caller.value];
      line("site {} {}:{}:{}{}", number, fileNumber[site.file], site.line,
           site.column, caller ? fmt::format(" in {}", caller) : "");
    }
  }

  /// `action R per microbatch lane compute after [F] before [B I]`.
  void printKind(const KindInfo &info) {
    out << "  action " << info.letters;
#define KIND_SCOPE(Name, Member)                                               \
  out << ' ' << Name << ' ' << kindScopeNames()[size_t(info.Member)];
#define KIND_LANE(Name, Member)                                                \
  out << ' ' << Name << ' ' << program.kinds().lanes()[info.Member];
#define KIND_RULE(Name, IsBefore)                                              \
  for (const KindRule &rule : info.rules)                                      \
    if (rule.isBefore == IsBefore)                                             \
      printRule(Name, rule);
#define KIND_FLAG(Name, Member)                                                \
  if (info.Member)                                                             \
    out << ' ' << Name;
#define KIND_KIND(Name, Member)                                                \
  if (info.Member)                                                             \
    out << ' ' << Name << ' ' << letters(*info.Member);
#define KIND_COUNT(Name, Member)                                               \
  if (info.Member)                                                             \
    out << ' ' << Name << ' ' << info.Member;
#define KIND_MEETING(Name, Member)                                             \
  if (info.Member != Meeting::None)                                            \
    out << ' ' << Name << ' ' << meetingText(info);
#include "ppcc/IR/KindProperties.def"
    out << '\n';
  }

  void printRule(StringRef name, const KindRule &rule) {
    out << ' ' << name << " [";
    llvm::interleave(
        rule.kinds, out, [&](KindId kind) { out << letters(kind); }, " ");
    out << ']';
  }

  static std::string meetingText(const KindInfo &info) {
    if (info.meeting == Meeting::Stages)
      return fmt::format("[{}]", fmt::join(info.stages, " "));
    return meetingName(info.meeting).str() +
           (info.meeting == Meeting::Outside ? " " + info.outside : "");
  }

  void printPipe(const Pipe &pipe) {
    std::string name = quoted(pipe.name);
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
    ActionId row = program.begin(rank);
    for (const Loop &loop : loopsOf(program, rank)) {
      printRows({row, loop.begin}, 2, phase);
      enterPhase(program[loop.begin].phase, 2, phase);
      out << "  loop " << loop.count << " advance " << loop.advance << " {\n";
      printRows({loop.begin, loop.end}, 4, phase);
      out << "  }\n";
      row = loop.end;
    }
    printRows({row, program.end(rank)}, 2, phase);
    out << "}\n";
  }

  /// Prints phases at an indent, rows deeper; `phase` is the one to be in.
  void printRows(RowRange rows, unsigned indent, PhaseId &phase) {
    Lines lines(out, indent + 2);
    for (RowRange group : Rows::Items(program.allRows(), rows)) {
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
    out.indent(indent) << "phase " << quoted(program.phases()[next.value])
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
      if (options.sites && siteNumber[action.site.value] != 0) {
        cells += '@';
        cells += llvm::utostr(siteNumber[action.site.value]);
      }
    }
    if (shown > 1)
      cells += ')';
    return shown != 0;
  }

  const Program &program;
  raw_ostream &out;
  const PrintOptions &options;
  std::vector<uint32_t>
      siteNumber; ///< By SiteId; 0 for a site that is not printed.
  llvm::SmallString<64> cells;
};

} // namespace

void ppcc::printProgram(const Program &program, raw_ostream &out,
                        const PrintOptions &options) {
  Printer(program, out, options).print();
}
