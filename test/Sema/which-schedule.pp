// A file with several schedules needs a name.
// RUN: not ppcc %s 2>&1 | FileCheck %s
// CHECK:      ppcc: error: `{{.*}}which-schedule.pp` declares 2 schedules: first, second [E0322]
// CHECK-NEXT: note: choose one: `FILE:NAME`
// RUN: not ppcc %s:secnd 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN:      ppcc: error: no schedule `secnd` in `{{.*}}which-schedule.pp`; did you mean `second`? [E0323]
// UNKNOWN-NEXT: note: `FILE:NAME` is a schedule of a file
// RUN: ppcc %s:second --emit=actions | FileCheck %s --check-prefix=SECOND
// SECOND: rank 0: 0F0 0B0

schedule first() { ranks 1; microbatches 2; placement linear; on rank r { F; F; B; B; } }
schedule second() { ranks 1; microbatches 1; placement linear; on rank r { F; B; } }
