// Writes when each action of a program runs, as CSV.
#include "Cells.h"
#include "Emitters.h"
#include "ppcc/Analysis/Analyses.h"

using namespace ppcc;

void ppcc::emitTimes(const Program &program, raw_ostream &out,
                     EmitContext &context) {
  const TimedRun *timed =
      Analyses(program).timedRun(context.options.transport, context.diags);
  if (!timed)
    return;
  Writer writer(out);
  writer.put("rank,action,group,start,end\n");
  for (RankId rank : program.ranks()) {
    int64_t group = -1;
    for (RowRange item : program.items(rank)) {
      bool isGroup = item.size() > 1;
      group += isGroup;
      for (ActionId row : item) {
        writer.put(rank, ',');
        writer.cell(program, row);
        writer.put(',');
        if (isGroup)
          writer.put(group);
        writer.put(',', cost::format(timed->simulation.starts[row.value]), ',',
                   cost::format(timed->simulation.ends[row.value]), '\n');
      }
    }
  }
}
