// Writes when each action of a program runs, as CSV.
#include "Cells.h"
#include "Emitters.h"
#include "ppcc/Analysis/Analyses.h"

using namespace ppcc;

bool ppcc::emitTimes(const Program &program, llvm::raw_ostream &out,
                     EmitContext &context) {
  const TimedRun *timed =
      Analyses(program).timedRun(context.options.transport, context.diags);
  if (!timed)
    return false;
  Writer writer(out);
  writer.put("rank,action,group,start,end\n");
  for (RankId rank : program.ranks()) {
    int64_t group = -1;
    forEachItem(program, rank, [&](ActionId begin, ActionId end) {
      bool isGroup = end.value - begin.value > 1;
      group += isGroup;
      for (ActionId row : RowRange{begin, end}) {
        writer.put(rank.value);
        writer.put(',');
        writer.cell(program, program[row]);
        writer.put(',');
        if (isGroup)
          writer.put(group);
        for (Time time : {timed->simulation.starts[row.value],
                          timed->simulation.ends[row.value]}) {
          writer.put(',');
          writer.put(cost::format(time));
        }
        writer.put('\n');
      }
    });
  }
  return true;
}
