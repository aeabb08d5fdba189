// Numbers that no program can have.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

schedule s(P: int = 0) {
  // CHECK:      out-of-range.pp:[[#@LINE+4]]:9: error: the number of ranks is 0, but must be in 1..1048576 [E0405]
  // CHECK-NEXT:   [[#@LINE+3]] |   ranks P;
  // CHECK-NEXT:     |         ^
  // CHECK-NEXT: note: check the values of the parameters
  ranks P;
  microbatches 1;
  placement linear;
  on rank r { F; B; }
}
// RUN: not ppcc %s -D P=1048577 2>&1 | FileCheck %s --check-prefix=RANKS
// RANKS: out-of-range.pp:9:9: error: the number of ranks is 1048577, but must be in 1..1048576 [E0405]
// RUN: not ppcc %s -D P=9223372036854775807 2>&1 | FileCheck %s --check-prefix=HUGE
// HUGE: error: the number of ranks is 9223372036854775807, but must be in 1..1048576 [E0405]
// RUN: not ppcc %s -D P=-9223372036854775808 2>&1 | FileCheck %s --check-prefix=LOW
// LOW: error: the number of ranks is -9223372036854775808, but must be in 1..1048576 [E0405]
// RUN: not ppcc %s -D P=65535 2>&1 | FileCheck %s --check-prefix=STAGES
// STAGES: out-of-range.pp:11:3: error: the number of stages is 65535, but must be in 1..65534 [E0405]
