// Writes when each action of a program runs, as CSV.
#include "Cells.h"
#include "Emitters.h"
#include "ppcc/Analysis/Timing.h"

using namespace ppcc;

bool ppcc::emitTimes(const Program &program, llvm::raw_ostream &out,
                     EmitContext &context) {
  auto timing = timeProgram(program, context.options.transport, context.diags);
  if (!timing)
    return false;
  Writer writer(out);
  writer.put("rank,action,group,start,end\n");
  for (uint32_t rank = 0; rank != program.ranksBegun(); ++rank) {
    int64_t group = -1;
    forEachItem(program, RankId(rank), [&](ActionId begin, ActionId end) {
      bool isGroup = end.value - begin.value > 1;
      group += isGroup;
      for (uint32_t row = begin.value; row != end.value; ++row) {
        writer.number(rank);
        writer.put(',');
        writer.cell(program, program[ActionId(row)]);
        writer.put(',');
        if (isGroup)
          writer.number(group);
        for (Time time :
             {timing->simulation.starts[row], timing->simulation.ends[row]}) {
          writer.put(',');
          writer.put(cost::format(time));
        }
        writer.put('\n');
      }
    });
  }
  return true;
}
