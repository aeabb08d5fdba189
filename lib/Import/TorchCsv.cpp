// Reads PyTorch's CSV: a line for each rank, a cell for each action.
//
// The grammar is that of torch.distributed.pipelining's `_Action.from_str` and
// of Python's csv; where those let a mistake pass, it is reported here.
#include "Cells.h"

#include "ppcc/IR/Location.h"

using namespace ppcc;

namespace {

constexpr ForeignWord foreignWords[] = {
    {"UNSHARD", false},
    {"RESHARD", false},
    {"REDUCE_GRAD", true},
    {"WAIT_REDUCE_GRAD", true},
    {"WAIT_SEND_F", true, /*hasMicrobatch=*/true},
    {"WAIT_SEND_B", true, /*hasMicrobatch=*/true}};

/// What the file must hold beside compute actions.
enum class Messages { Either, Required, Forbidden };

struct CsvReader {
  ImportContext &context;
  CellReader cells{
      context, {/*peers=*/false, "OVERLAP_F_B", foreignWords, /*calls=*/true}};

  std::optional<Program> read(Messages messages) {
    size_t errorsBefore = context.diags.errorCount();
    readLines();
    auto message = cells.program.firstMessage();
    if (emptyCells != 0 && message)
      context.diags.report<diag::ImportEmptyCell>(cells.range(firstEmpty),
                                                  rankOfEmpty);
    if (message && messages == Messages::Forbidden)
      context.diags.report<diag::ImportHasMessages>(
          locationOf(cells.program, *message, context.sources),
          cell(cells.program, cells.program[*message]));
    checkCalls();
    if (context.diags.errorCount() != errorsBefore ||
        !inferPlacement(cells.program, /*severalPipes=*/false, context))
      return std::nullopt;
    if (messages == Messages::Required && !message && !checkLocal())
      return std::nullopt;
    warn();
    return std::move(cells.program);
  }

  void readLines() {
    cells.forEachLine([&](uint32_t number, StringRef line) {
      line.consume_back("\r");
      if (!cells.beginRank(line.take_front(1)))
        return false;
      if (line.trim().empty())
        context.diags.report<diag::ImportEmptyRow>(
            SourceRange(cells.range(line).begin), number,
            cells.program.numRanks() - 1);
      else
        readLine(line);
      return true;
    });
  }

  void readLine(StringRef line) {
    while (!context.diags.saturated()) {
      size_t comma = line.find(',');
      readCell(line.take_front(comma));
      if (comma == StringRef::npos)
        return;
      line = line.substr(comma + 1);
    }
  }

  void readCell(StringRef field) {
    if (field.size() > 1 && field.front() == '"' && field.back() == '"')
      field = field.drop_front().drop_back();
    StringRef trimmed = field.trim();
    if (!trimmed.empty()) {
      cells.read(trimmed);
      return;
    }
    if (emptyCells++ == 0) {
      firstEmpty = field.take_front(1);
      rankOfEmpty = cells.program.numRanks() - 1;
    }
  }

  /// Reports calls with names: here messages that are posted together have
  /// none.
  void checkCalls() {
    for (const CellReader::Call &call : cells.calls)
      if (call.name != "batch")
        context.diags.report<diag::ImportCallName>(
            locationOf(cells.program, ActionId(call.row), context.sources),
            quote(call.name), "`batch`");
  }

  /// Whether all stages are on one rank; else reports the first edge without
  /// messages.
  bool checkLocal() {
    const auto &ranks = cells.program.pipes().front().rankOfStage;
    auto edge =
        std::adjacent_find(ranks.begin(), ranks.end(), std::not_equal_to<>());
    if (edge == ranks.end())
      return true;
    uint32_t stage = edge - ranks.begin();
    return context.diags.report<diag::ImportNoMessages>(
        locationOfStage(cells.program, PipeId(), StageId(stage),
                        context.sources),
        stage, stage + 1, edge[0].value, edge[1].value);
  }

  void warn() {
    if (emptyCells != 0)
      context.diags.report<diag::ImportEmptyCellsSkipped>(
          cells.range(firstEmpty), rankOfEmpty, emptyCells);
    if (cells.dropped != 0)
      context.diags.report<diag::ImportLeftOut>(
          cells.range(cells.firstDropped), cells.firstDropped,
          cells.dropped == 1 ? "no other"
                             : fmt::format("{}", cells.dropped - 1));
  }

  StringRef firstEmpty{};
  size_t emptyCells = 0;
  uint32_t rankOfEmpty = 0;
};

} // namespace

bool ppcc::beginsCsv(StringRef text) {
  StringRef word = text.ltrim(" \t,\"");
  return !word.empty() && (llvm::isDigit(word[0]) || word[0] == '(');
}

std::optional<Program> ppcc::importCsv(ImportContext &context) {
  return CsvReader{context}.read(Messages::Either);
}

std::optional<Program> ppcc::importTorchCsv(ImportContext &context) {
  return CsvReader{context}.read(Messages::Required);
}

std::optional<Program> ppcc::importTorchCsvCompute(ImportContext &context) {
  return CsvReader{context}.read(Messages::Forbidden);
}
