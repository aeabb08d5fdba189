// Programs for all numbers of microbatches as text.
#include "ppcc/Prove/Families.h"

#include "ppcc/IR/Text.h"

using namespace ppcc;
using proof::Affine;

/// `2 n + j + 3`
static std::string text(Affine value) {
  return sumText({{{value.n}, "n"}, {{value.j}, "j"}, {{value.c}, ""}});
}

namespace {

class FamilyPrinter {
public:
  FamilyPrinter(const proof::ResidueFamily &programs, raw_ostream &out)
      : programs(programs), head(programs.head.head()),
        program(programs.withMessages), out(out) {}

  void print() {
    for (size_t i = 0; i != head.params.size(); ++i)
      out << "  param " << quotedIfNeeded(head.params[i].name) << ": "
          << quotedIfNeeded(head.params[i].type) << " = " << valueOf(i) << '\n';
    for (auto [i, site] : llvm::enumerate(head.sites))
      if (i != 0)
        out << fmt::format("  site {} {}:{}:{}", i, site.file, site.line,
                           site.column)
            << (site.caller == SiteId()
                    ? ""
                    : fmt::format(" in {}", site.caller.value))
            << '\n';
    if (!programs.preconnect.empty()) {
      out << "  preconnect [";
      llvm::interleave(
          programs.preconnect, out,
          [&](RankPair pair) {
            out << pair.low.value << '-' << pair.high.value;
          },
          " ");
      out << "]\n";
    }
    for (auto [pipe, range] : llvm::zip(head.pipes, program.pipes))
      out << "  microbatches " << quotedString(pipe.name) << ' '
          << text(range.first) << ".." << text(range.first + range.count)
          << '\n';
    for (auto [rank, rows] : llvm::enumerate(program.ranks)) {
      out << "  rank " << rank << " {\n";
      print(rows);
      out << "  }\n";
    }
  }

private:
  std::string valueOf(size_t param) const {
    auto value = programs.paramFormula(param);
    return value ? text(*value) : quotedIfNeeded(head.params[param].value);
  }

  void print(ArrayRef<proof::Row> rows) {
    static constexpr size_t width = 100;
    PhaseId phase;
    size_t column = 0;
    auto endLine = [&] {
      if (std::exchange(column, 0) != 0)
        out << '\n';
    };
    for (size_t i = 0, end; i != rows.size(); i = end) {
      const proof::Row &row = rows[i];
      std::string cells;
      for (end = i; end == i || (end != rows.size() && rows[end].joined); ++end)
        cells += (end == i ? "" : "; ") + cell(rows[end]);
      if (end - i > 1)
        cells = '(' + cells + ')';
      bool isLooped = row.loop != proof::noLoop;
      if (isLooped && (i == 0 || rows[i - 1].loop != row.loop)) {
        endLine();
        out << "    loop j in 0..n + 1 {\n";
      }
      if (row.phase != phase) {
        endLine();
        phase = row.phase;
        out.indent(isLooped ? 6 : 4)
            << "phase " << quotedString(head.phases[phase.value]) << '\n';
      }
      if (column + 1 + cells.size() > width)
        endLine();
      unsigned indent = column != 0 ? 1 : isLooped ? 8 : 6;
      out.indent(indent) << cells;
      column += indent + cells.size();
      if (isLooped && (end == rows.size() || rows[end].loop != row.loop)) {
        endLine();
        out << "    }\n";
      }
    }
    endLine();
  }

  std::string cell(const proof::Row &row) const {
    const KindInfo &kind = head.kinds[row.kind];
    std::string cell = kind.mnemonic;
    if (kind.scope != KindScope::Rank)
      cell = fmt::format("{}{}", row.stage.value, cell);
    if (kind.scope == KindScope::Microbatch) {
      std::string number = text(row.microbatch);
      cell += row.microbatch.isConstant() ? number : '[' + number + ']';
    } else if (kind.scope == KindScope::Stage && head.pipes.size() > 1) {
      cell += ":" + llvm::utostr(row.pipe.value);
    }
    if (row.peer.value != Action::noPeer &&
        row.peer.value != row.stage.value + (kind.goesToLaterStage() ? 1 : -1))
      cell += (kind.isSend() ? '>' : '<') + llvm::utostr(row.peer.value);
    return row.site == SiteId() ? cell
                                : cell + '@' + llvm::utostr(row.site.value);
  }

  const proof::ResidueFamily &programs;
  const Head &head;
  const proof::Template &program;
  raw_ostream &out;
};

} // namespace

void ppcc::printFamilies(const proof::ParametricProgram &families,
                         raw_ostream &out) {
  Program shared = sampleOf(families).head;
  Head &head = shared.editHead();
  head.params.clear();
  head.sites.resize(1);
  for (Pipe &pipe : head.pipes)
    pipe.firstMicrobatch = pipe.numMicrobatches = 0;
  shared.setFacts({families.transports, {}});
  PrintOptions options;
  options.ranks = {RankId(Program::maxRanks)}; // Rows are those of families.
  printProgram(shared, out, options);
  for (const proof::ProgramRange &part : families.ranges) {
    bool isOne = part.to == part.from;
    out << "family " << quotedIfNeeded(families.free) << " = "
        << text({part.from, isOne ? 0 : part.modulus, 0});
    if (!isOne)
      out << ", n in 0.."
          << (part.to ? llvm::itostr((*part.to - part.from) / part.modulus + 1)
                      : "");
    out << ' ' << part.verdict;
    if (!part.programs) {
      out << ' ' << quotedString(part.reason) << '\n';
      continue;
    }
    out << " {\n";
    FamilyPrinter(*part.programs, out).print();
    out << "}\n";
  }
}
