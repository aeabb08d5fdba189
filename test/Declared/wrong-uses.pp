// Each way to use a declared action wrongly.
// RUN: not ppcc %s:reload_without_offload 2>&1 | FileCheck %s --check-prefix=RELOAD
// RUN: not ppcc %s:use_after_release 2>&1 | FileCheck %s --check-prefix=RELEASED
// RUN: not ppcc %s:too_early 2>&1 | FileCheck %s --check-prefix=EARLY
// RUN: not ppcc %s:twice 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not ppcc %s:missing 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not ppcc %s:missing_microbatch 2>&1 | FileCheck %s --check-prefix=MICROBATCH
// RUN: not ppcc %s:missing_rank 2>&1 | FileCheck %s --check-prefix=RANK
// RUN: not ppcc %s:in_group 2>&1 | FileCheck %s --check-prefix=GROUP
// RUN: not ppcc %s:unsent 2>&1 | FileCheck %s --check-prefix=UNSENT
import "std.pp";

action CHECKED { after F; before B; required; }

schedule reload_without_offload() {
  ranks 1; microbatches 2; placement linear;
  on rank r { F; F; OFFLOAD; RELOAD; RELOAD; B; B; }
}
// RELOAD: wrong-uses.pp:[[#@LINE-2]]:38: error: `0RELOAD1` must run after `OFFLOAD`, but the program has none of its stage and microbatch [E0681]
// RELOAD-NOT: error:

schedule use_after_release() {
  ranks 1; microbatches 1; placement linear;
  on rank r { F; I; RELEASE_IN; W; }
}
// RELEASED: wrong-uses.pp:[[#@LINE-2]]:21: error: `0RELEASE_IN0` runs before `0W0`, on which it depends [E0721]

schedule too_early() {
  ranks 1; microbatches 1; placement linear;
  on rank r { F; B; R; }
}
// EARLY: wrong-uses.pp:[[#@LINE-2]]:18: error: `0B0` runs before `0R0`, on which it depends [E0721]

schedule twice() {
  ranks 1; microbatches 1; placement linear;
  on rank r { F; B; REDUCE_GRAD; REDUCE_GRAD; }
}
// TWICE: wrong-uses.pp:[[#@LINE-2]]:34: error: `0REDUCE_GRAD` runs twice [E0702]

schedule missing() {
  ranks 2; microbatches 1; placement linear;
  on rank r { F; B; if r == 0 { REDUCE_GRAD; } }
}
// MISSING: wrong-uses.pp:[[#@LINE-2]]:33: error: stage 1 has no `REDUCE_GRAD`, but the program has `0REDUCE_GRAD` [E0682]

schedule missing_microbatch() {
  ranks 2; microbatches 2; placement linear;
  on rank r { repeat 2 { F; if r == 0 { CHECKED; } } repeat 2 { B; } }
}
// MICROBATCH: wrong-uses.pp:[[#@LINE-2]]:41: error: microbatch 0 of stage 1 has no `CHECKED`, but the program has `0CHECKED0` [E0682]

schedule missing_rank() {
  ranks 2; microbatches 1; placement linear;
  on rank r { F; B; if r == 1 { STEP; } }
}
// RANK: wrong-uses.pp:[[#@LINE-2]]:33: error: rank 0 has no `STEP`, but the program has `STEP` [E0682]

schedule in_group() {
  ranks 1; microbatches 2; placement linear;
  on rank r { F; overlap { F; OFFLOAD; } RELOAD; B; B; }
}
// GROUP: wrong-uses.pp:[[#@LINE-2]]:31: error: `0OFFLOAD0` and `0F1` cannot be in one group [E0842]

schedule unsent() {
  ranks 2; microbatches 1; placement linear;
  on rank r { F; RELEASE_OUT; B; }
}
// UNSENT: wrong-uses.pp:[[#@LINE-2]]:18: error: `1RELEASE_OUT0` must run after `SEND_F`, but the program has none of its stage and microbatch [E0681]
