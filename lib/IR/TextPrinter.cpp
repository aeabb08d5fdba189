// Writes a program as text.
#include "ppcc/IR/Calls.h"
#include "ppcc/IR/Loops.h"
#include "ppcc/IR/Text.h"
#include "ppcc/Support/Printable.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"

#include <fmt/format.h>

#include <utility>

using namespace ppcc;
using llvm::raw_ostream;
using llvm::StringRef;

static void printString(StringRef text, raw_ostream &out) {
  std::string escaped;
  for (char c : text)
    escaped += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
  out << '"' << printable(escaped) << '"';
}

static bool isWord(StringRef text) {
  return !text.empty() && llvm::all_of(text, [](char c) {
    return llvm::isAlnum(c) || StringRef("_.+-").contains(c);
  });
}

static void printWord(StringRef text, raw_ostream &out) {
  if (isWord(text))
    out << text;
  else
    printString(text, out);
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

  void printHead() {
    out << "program ";
    if (!program.name().empty()) {
      printString(program.name(), out);
      out << ' ';
    }
    out << "{\n";
    for (const ProgramParam &param : program.params()) {
      out << "  param ";
      printWord(param.name, out);
      out << ": ";
      printWord(param.type, out);
      out << " = ";
      printWord(param.value, out);
      out << '\n';
    }
    out << "  ranks " << program.numRanks() << '\n';
    out << "  backward " << (program.hasBackward() ? "true" : "false") << '\n';
    if (program.calls() != CallStyle::None)
      out << "  calls " << callStyleNames()[size_t(program.calls())] << '\n';
    printProven();
    printPreconnect();
    if (options.sites)
      printSites();
    for (const KindInfo &info : program.kinds().declaredRows())
      printKind(info);
    for (const Pipe &pipe : program.pipes())
      printPipe(pipe);
    if (!program.stageLayers().empty()) {
      out << "  layout ";
      printString(llvm::join(program.stageLayers(), "|"), out);
      out << '\n';
    }
    printNodes();
    printCosts();
    out << "}\n";
  }

  void printNodes() {
    const NodeGraphs &nodes = program.nodes();
    for (const NodeGraph &graph : nodes.graphs)
      printGraph(graph);
    for (const GraphUse &use : nodes.uses)
      printUse(use);
    for (const NodePattern &pattern : nodes.patterns)
      printPattern(pattern);
  }

  std::string partAndName(KindId part, uint32_t name) const {
    return program.kinds()[part].letters + "." + program.nodes().names[name];
  }

  /// `HEAD[ITEM ITEM]`, broken between items.
  static void putList(Lines &lines, const std::string &head,
                      llvm::ArrayRef<std::string> items) {
    std::string text = head + "[";
    for (const std::string &item : items) {
      text += item;
      if (&item == &items.back())
        break;
      lines.put(text);
      text.clear();
    }
    lines.put(text + "]");
  }

  /// `graph F layers 2 down [comp:F.L1.mlp comm:F.L1.combine<0 ...]`.
  void printGraph(const NodeGraph &graph) {
    std::vector<std::string> items;
    for (const GraphNode &node : graph.nodes) {
      std::string item = program.nodes().lanes[node.lane] + ":" +
                         program.kinds()[node.part].letters + "." +
                         program.nodes().pathOf(node);
      for (uint32_t needed : node.needs)
        item +=
            (needed == node.needs.front() ? "<" : ",") + llvm::utostr(needed);
      items.push_back(std::move(item));
    }
    Lines lines(out, 2, 2);
    putList(lines,
            "graph " + program.kinds()[graph.kind].letters + " layers " +
                llvm::utostr(graph.layers) + (graph.down ? " down " : " "),
            items);
    lines.endLine();
  }

  /// `graphs F "main" [0 0 1 -]`, or one number for all stages.
  void printUse(const GraphUse &use) {
    std::string item;
    llvm::raw_string_ostream head(item);
    head << "graphs " << program.kinds()[use.kind].letters << ' ';
    printString(program.pipe(use.pipe).name, head);
    head << ' ';
    std::vector<std::string> items;
    for (uint32_t graph : use.graphs)
      items.push_back(graph == GraphUse::none ? "-" : llvm::utostr(graph));
    Lines lines(out, 2, 2);
    putList(lines, item, items);
    lines.endLine();
  }

  /// `pattern F B before [...] layer [...] after [... last:W.mlp]`.
  void printPattern(const NodePattern &pattern) {
    std::string item = "pattern ";
    for (KindId kind : pattern.kinds)
      item += program.kinds()[kind].letters + " ";
    Lines lines(out, 2, 2);
    for (auto [word, nodes] : {std::pair("before ", &pattern.before),
                               std::pair("layer ", &pattern.layer),
                               std::pair("after ", &pattern.after)}) {
      std::vector<std::string> items;
      for (const PatternNode &node : *nodes)
        items.push_back((node.last ? "last:" : "") +
                        partAndName(node.part, node.name));
      putList(lines, item + word, items);
      item.clear();
    }
    lines.endLine();
  }

  void printProven() {
    if (program.provenUnder().empty())
      return;
    out << "  proven [";
    llvm::interleave(program.provenUnder(), out, " ");
    out << "]\n";
  }

  void printPreconnect() {
    if (program.preconnect().empty())
      return;
    std::vector<std::string> pairs;
    for (RankPair pair : program.preconnect())
      pairs.push_back(fmt::format("{}-{}", pair.low.value, pair.high.value));
    Lines lines(out, 2, 2);
    putList(lines, "preconnect ", pairs);
    lines.endLine();
  }

  void printSites() {
    std::vector<uint32_t> fileNumber(program.files().size());
    uint32_t next = 0;
    for (auto [file, number] : llvm::zip(program.files(), fileNumber)) {
      if (file.own)
        continue;
      number = next++;
      out << "  file " << number << ' ';
      printString(file.name, out);
      out << '\n';
    }
    for (auto [site, number] : llvm::zip(program.sites(), siteNumber)) {
      if (number == 0)
        continue;
      out << "  site " << number << ' ' << fileNumber[site.file] << ':'
          << site.line << ':' << site.column;
      if (uint32_t caller = siteNumber[site.caller.value])
        out << " in " << caller;
      out << '\n';
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
    out << ' ' << Name << ' ' << program.kinds()[*info.Member].letters;
#define KIND_COUNT(Name, Member)                                               \
  if (info.Member)                                                             \
    out << ' ' << Name << ' ' << info.Member;
#define KIND_MEETING(Name, Member)                                             \
  if (info.Member != Meeting::None)                                            \
    printMeeting(Name, info);
#include "ppcc/IR/KindProperties.def"
    out << '\n';
  }

  void printRule(StringRef name, const KindRule &rule) {
    out << ' ' << name << " [";
    llvm::interleave(
        rule.kinds, out,
        [&](KindId kind) { out << program.kinds()[kind].letters; }, " ");
    out << ']';
  }

  void printMeeting(StringRef name, const KindInfo &info) {
    out << ' ' << name << ' ';
    if (info.meeting != Meeting::Stages) {
      out << meetingName(info.meeting);
      if (info.meeting == Meeting::Outside)
        out << ' ' << info.outside;
      return;
    }
    out << '[';
    llvm::interleave(info.stages, out, " ");
    out << ']';
  }

  void printPipe(const Pipe &pipe) {
    std::string item;
    llvm::raw_string_ostream head(item);
    head << "pipe ";
    printString(pipe.name, head);
    head << " microbatches " << pipe.firstMicrobatch << ".."
         << pipe.endMicrobatch();
    if (pipe.slices != 1)
      head << " slices " << pipe.slices;
    head << " ranks ";
    std::vector<std::string> ranks;
    for (RankId rank : pipe.rankOfStage)
      ranks.push_back(llvm::utostr(rank.value));
    Lines lines(out, 2, 2);
    putList(lines, item, ranks);
    lines.endLine();
    for (auto [from, to] : pipe.skipEdges)
      printEdge("skip", pipe, from, to) << '\n';
    for (StageId gap : pipe.gaps)
      printEdge("gap", pipe, gap, StageId(gap.value + 1)) << '\n';
    for (const EdgeTensors &edge : pipe.tensors) {
      printEdge("carry", pipe, edge.from, edge.to);
      for (const Tensor &tensor : edge.tensors)
        out << ' ' << tensorText(tensor);
      out << '\n';
    }
  }

  llvm::raw_ostream &printEdge(StringRef key, const Pipe &pipe, StageId from,
                               StageId to) {
    out << "  " << key << ' ';
    printString(pipe.name, out);
    return out << ' ' << from.value << " -> " << to.value;
  }

  void printCosts() {
    for (const CostSetting *setting : program.costs().inEffect())
      printCost(*setting);
  }

  /// `cost F "down" [1 2]`.
  void printCost(const CostSetting &setting) {
    const CostRow &row = rowOf(setting.what);
    std::string item = row.item.str() + ' ';
    llvm::raw_string_ostream head(item);
    if (std::string subject = subjectOf(setting, program.kinds());
        !subject.empty())
      head << subject << ' ';
    if (setting.pipe) {
      printString(program.pipes()[setting.pipe->value].name, head);
      head << ' ';
    }
    std::vector<std::string> values;
    for (int64_t value : setting.values)
      values.push_back(row.number.format(value));
    Lines lines(out, 2, 2);
    if (values.size() == 1)
      lines.put(item + values.front());
    else
      putList(lines, item, values);
    lines.endLine();
  }

  void printRank(RankId rank) {
    out << "rank " << rank.value << " {\n";
    PhaseId phase;
    ActionId row = program.begin(rank);
    for (const Loop &loop : loopsOf(program, rank)) {
      printRows(rank, row, loop.begin, 2, phase);
      enterPhase(program[loop.begin].phase, 2, phase);
      out << "  loop " << loop.count << " advance " << loop.advance << " {\n";
      printRows(rank, loop.begin, loop.end, 4, phase);
      out << "  }\n";
      row = loop.end;
    }
    printRows(rank, row, program.end(rank), 2, phase);
    out << "}\n";
  }

  /// Prints phases at an indent, rows deeper; `phase` is the one to be in.
  void printRows(RankId rank, ActionId begin, ActionId end, unsigned indent,
                 PhaseId &phase) {
    Lines lines(out, indent + 2);
    for (uint32_t row = begin.value; row != end.value;) {
      uint32_t groupEnd = program.groupEnd(ActionId(row), rank).value;
      PhaseId groupPhase = program[ActionId(row)].phase;
      if (appendGroup(row, groupEnd)) {
        if (groupPhase != phase)
          lines.endLine();
        enterPhase(groupPhase, indent, phase);
        lines.put(cells);
      }
      row = groupEnd;
    }
    lines.endLine();
  }

  void enterPhase(PhaseId next, unsigned indent, PhaseId &phase) {
    if (next == phase)
      return;
    out.indent(indent) << "phase ";
    printString(program.phases()[next.value], out);
    out << '\n';
    phase = next;
  }

  /// Leaves the shown actions of a group in `cells`; false when there are none.
  bool appendGroup(uint32_t row, uint32_t end) {
    unsigned shown = 0;
    cells.clear();
    for (; row != end; ++row) {
      Action action = program[ActionId(row)];
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
