// Messages take the time of what they carry: 12 bytes up, and 8 down, since whole numbers have no gradient. Bytes that
// somebody tells, and a scale of microbatches, have their say.
// RUN: ppcc %s --emit=report | FileCheck %s
// RUN: ppcc %s --cost=bytes=2 --emit=report | FileCheck %s --check-prefix=TIMES
// RUN: ppcc %s -D factor=2 --emit=report | FileCheck %s --check-prefix=SCALED
// 1 + 3, 1 + 2, 2 and 2.
// CHECK: makespan 11
// TIMES: makespan 7
// SCALED: makespan 16
schedule times(factor: int = 1) {
  ranks 2; microbatches 1; placement linear;
  model {
    scale bytes microbatch m = factor;
    output stage s = x[2, 2] f16, ids[2] i16;
  }
  cluster { bandwidth = 4; }
  on rank r { F; B; }
}
