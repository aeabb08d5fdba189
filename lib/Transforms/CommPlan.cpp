// Copies rows and places messages.
#include "CommPlan.h"

#include "ppcc/Basic/Diagnostics/Transforms.h"
#include "ppcc/Basic/Diagnostics/Verify.h"
#include "ppcc/IR/Location.h"

using namespace ppcc;

/// Rows of a program with communication; 16 bytes each.
static constexpr uint64_t maxRows = uint64_t(1) << 29;

CommWriter::CommWriter(const Program &program, Rows &result, PlanTimes *times)
    : program(program), result(result), times(times) {
  if (times)
    times->rows.resize(result.size());
  for (RankId rank : program.ranks()) {
    nextRow.push_back(program.begin(rank).value);
    cursor.push_back(result.begin(rank).value);
  }
  for (uint8_t slotBit : slotsIn(slot::crossStage)) {
    unsigned i = std::countr_zero(slotBit);
    sendOf[i] = *program.kinds().find(KindClass::Send, slotBit);
    recvOf[i] = *program.kinds().find(KindClass::Recv, slotBit);
  }
}

void CommWriter::copyItem(RankId rank) {
  uint32_t end = program.groupEnd(next(rank), rank).value;
  for (uint32_t &row = nextRow[rank.value]; row != end; ++row)
    set(cursor[rank.value]++, program[ActionId(row)]);
}

void CommWriter::set(uint32_t at, const Action &row) {
  result.set(ActionId(at), row);
  if (times)
    times->rows[at] = rowTimes;
}

void CommWriter::append(RankId rank, Action row, bool joined) {
  uint32_t &at = cursor[rank.value];
  row.joined = joined;
  if (joined)
    row.phase = result[ActionId(at - 1)].phase;
  set(at++, row);
}

void CommWriter::send(const Action &producer, RankId rank, uint8_t slotBit,
                      StageId reader, bool joined) {
  Action row = producer;
  row.kind = sendOf[std::countr_zero(slotBit)];
  row.peer = reader;
  append(rank, row, joined);
}

void CommWriter::receive(const Action &producer, uint8_t slotBit,
                         StageId reader, bool joined) {
  RankId to = program.rankOfStage(producer.pipe, reader);
  Action row = producer;
  row.kind = recvOf[std::countr_zero(slotBit)];
  row.stage = reader;
  row.peer = producer.stage;
  row.phase = PhaseId();
  if (program.size(to) != 0) {
    ActionId before = done(to) ? ActionId(next(to).value - 1) : next(to);
    row.phase = program[before].phase;
  }
  append(to, row, joined);
}

/// The rows of each rank with their messages.
static std::vector<uint64_t> countRows(const Program &program,
                                       const ProgramIndex &index) {
  std::vector<uint64_t> rows(program.ranksBegun());
  for (RankId rank : program.ranks()) {
    rows[rank.value] += program.size(rank);
    for (ActionId row : program.rows(rank)) {
      Action action = program[row];
      forEachMessage(program, index, action, [&](uint8_t, StageId reader) {
        ++rows[rank.value];
        ++rows[program.rankOfStage(action.pipe, reader).value];
      });
    }
  }
  return rows;
}

std::optional<Rows> ppcc::allocateWithMessages(const Program &program,
                                               const ProgramIndex &index,
                                               DiagnosticEngine &diags,
                                               SourceManager &sources) {
  if (auto row = program.firstMessage())
    return diags.report<diag::HasCommunication>(
        locationOf(program, *row, sources), program.rankOf(*row).value,
        cell(program, *row));
  if (!index.fits())
    return diags.report<diag::TooFewActions>({}, program.size(),
                                             index.numPairs());
  std::vector<uint64_t> rows = countRows(program, index);
  uint64_t total = std::accumulate(rows.begin(), rows.end(), uint64_t(0));
  if (total > maxRows)
    return diags.report<diag::TooManyMessages>({}, total, maxRows);
  Rows result;
  result.layout(std::vector<uint32_t>(rows.begin(), rows.end()));
  return result;
}

void ppcc::reportStuck(const CommPlan &plan, const Inboxes &inboxes,
                       RankId rank) {
  auto [row, slotBit, source] = inboxes.blocked(rank);
  Action action = plan.program[row];
  Location place = locationOf(plan.program, row, plan.sources);
  std::string cell = ppcc::cell(plan.program, action);
  if (slotBit)
    plan.diags.report<diag::CommStuck>(
        place, rank.value, cell,
        slotBit == slot::Output ? "output" : "gradient", source.value,
        action.microbatch, plan.program.rankOfStage(action.pipe, source).value);
  else // What came went to the rank that hosts the stage.
    plan.diags.report<diag::WrongRank>(
        place, rank.value, cell, action.stage.value,
        plan.program.rankOfStage(action.pipe, action.stage).value);
}
