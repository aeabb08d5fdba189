// Writes a program as text: its head in JSON, and the rows of each rank.
#include "Emitters.h"
#include "ppcc/IR/Loops.h"

using namespace ppcc;

namespace {

/// Puts items on lines of some hundred columns.
class Lines {
public:
  /// Each line is indented by so many columns.
  Lines(Writer &writer, unsigned indent) : writer(writer), indent(indent) {}

  void put(StringRef item) {
    if (column != 0 && column + 1 + item.size() > width)
      endLine();
    if (column == 0)
      writer.put(std::string(column = indent, ' '));
    else
      writer.put(' '), ++column;
    writer.put(item);
    column += item.size();
  }
  void endLine() {
    if (column != 0)
      writer.put('\n');
    column = 0;
  }

private:
  static constexpr size_t width = 100;
  Writer &writer;
  unsigned indent;
  size_t column = 0;
};

struct Printer {
  const Program &program;
  Writer &writer;
  const PrintOptions &options;

  void print() {
    putTextHead(writer, headShown());
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

  /// The program without rows, and with those sites alone that the shown
  /// actions use, by their new numbers. Those in the program's own text are
  /// left out.
  Program headShown() {
    Program shown(program.head());
    shown.setFacts(program.facts());
    Head &head = shown.editHead();
    head.files.clear();
    head.sites.resize(1);
    siteNumber.assign(program.sites().size(), SiteId());
    if (options.hidesSites)
      return shown;
    std::vector<uint32_t> fileNumber;
    for (const SiteFile &file : program.files()) {
      fileNumber.push_back(uint32_t(head.files.size()));
      if (!file.own)
        head.files.push_back(file);
    }
    BitVector used = usedSites();
    for (unsigned site : used.set_bits())
      siteNumber[site] = head.addSite(program.sites()[site]);
    for (Site &site : llvm::drop_begin(head.sites)) {
      site.file = fileNumber[site.file];
      site.caller = siteNumber[site.caller.value];
    }
    return shown;
  }

  BitVector usedSites() const {
    BitVector used(program.sites().size());
    for (RankId rank : program.ranks())
      for (ActionId row : program.rows(rank))
        if (Action action = program[row]; shows(rank) && shows(action))
          for (SiteId site = action.site;
               site != SiteId() && !used.test(site.value);
               site = program.sites()[site.value].caller)
            used.set(site.value);
    for (unsigned site : used.set_bits())
      if (program.files()[program.sites()[site].file].own)
        used.reset(site);
    return used;
  }

  void printRank(RankId rank) {
    writer.put("rank ", rank, " {\n");
    PhaseId phase;
    forEachSegment(program, rank, [&](RowRange rows, const Loop *loop) {
      if (!loop)
        return printRows(rows, 2, phase);
      enterPhase(program[loop->begin].phase, 2, phase);
      writer.put("  loop ", loop->count, " advance ", loop->advance, " {\n");
      printRows(rows, 4, phase);
      writer.put("  }\n");
    });
    writer.put("}\n");
  }

  /// Prints phases at an indent, rows deeper; `phase` is the one to be in.
  void printRows(RowRange rows, unsigned indent, PhaseId &phase) {
    Lines lines(writer, indent + 2);
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
    writer.put(std::string(indent, ' '), "phase ");
    writer.json(program.phases()[next.value]);
    writer.put('\n');
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
      if (SiteId site = siteNumber[action.site.value]; site != SiteId()) {
        cells += '@';
        cells += llvm::utostr(site.value);
      }
    }
    if (shown > 1)
      cells += ')';
    return shown != 0;
  }

  std::vector<SiteId> siteNumber{}; ///< By SiteId; 0 for one not printed.
  SmallString<64> cells{};
};

} // namespace

void ppcc::printProgram(const Program &program, raw_ostream &out,
                        const PrintOptions &options) {
  Writer writer(out);
  Printer{program, writer, options}.print();
}

void ppcc::emitIr(const Program &program, raw_ostream &out,
                  EmitContext &context) {
  printProgram(program, out, context.options.print);
}
