#include "ppcc/Analysis/Cost/MicrobatchScales.h"

using namespace ppcc;

bool ppcc::hasScales(const CostModel &costs) {
  return costs.has({Cost::Scale, Cost::ScaleTime, Cost::ScaleMemory,
                    Cost::ScaleBytes, Cost::ScaleAction});
}

bool ppcc::microbatchesDiffer(const Program &program) {
  return llvm::any_of(
      program.costs().settings, [&](const CostSetting &setting) {
        ArrayRef<int64_t> factors = setting.values;
        return rowOf(setting.what).granularity ==
                   CostGranularity::Microbatches &&
               llvm::any_of(program.pipes(), [&](const Pipe &pipe) {
                 auto ofPipe = factors.take_front(pipe.numMicrobatches);
                 factors = factors.drop_front(pipe.numMicrobatches);
                 return !llvm::all_equal(ofPipe);
               });
      });
}

MicrobatchScales::MicrobatchScales(const Program &program) {
  if (!hasScales(program.costs()))
    return;
  size_t next = 0;
  for (const Pipe &pipe : program.pipes()) {
    firstOfPipe.push_back(next - pipe.firstMicrobatch);
    next += pipe.numMicrobatches;
  }
  for (const CostSetting &scale : program.costs().settings) {
    Column column = scale.values.data();
    bool isAll = scale.what == Cost::Scale;
    if (isAll || scale.what == Cost::ScaleTime)
      times.assign(program.kinds().size(), column);
    if (scale.what == Cost::ScaleAction) {
      times.resize(program.kinds().size());
      times[scale.kind.value] = column;
    }
    if (isAll || scale.what == Cost::ScaleMemory)
      memoryColumn = column;
    if (isAll || scale.what == Cost::ScaleBytes) {
      bytesColumn = column;
      maxBytesScale = *llvm::max_element(scale.values);
    }
  }
}

Amount MicrobatchScales::scaledMemory(const Action &action,
                                      Amount amount) const {
  int64_t by = factor(memoryColumn, action);
  return amount < 0 ? -scaling::apply(-amount, by, amount::max)
                    : scaling::apply(amount, by, amount::max);
}
