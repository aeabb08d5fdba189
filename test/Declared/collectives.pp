// All members of a collective join it, in one order on every rank.
// RUN: not ppcc %s:absent 2>&1 | FileCheck %s --check-prefix=ABSENT
// RUN: not ppcc %s:absent_replica 2>&1 | FileCheck %s --check-prefix=REPLICA
// RUN: not ppcc %s:absent_stage 2>&1 | FileCheck %s --check-prefix=STAGE
// RUN: not ppcc %s:not_a_member 2>&1 | FileCheck %s --check-prefix=MEMBER
// RUN: not ppcc %s:crosswise 2>&1 | FileCheck %s --check-prefix=ORDER
// RUN: not ppcc %s:crosswise_with_messages 2>&1 | FileCheck %s --check-prefix=MESSAGES
// RUN: ppcc %s:two_lanes --check
// RUN: ppcc %s:one_rank_twice --check
import "std.pp";

action SUM   { per rank; collective all; }
action OTHER { per rank; collective all; }
action TIE    { per stage; lane tie; collective replicas; }
action BESIDE { per rank; lane comm; collective all; }

schedule absent() {
  ranks 3; microbatches 1; placement linear;
  on rank r { F; B; if r != 1 { SUM; } }
}
// ABSENT: collectives.pp:[[#@LINE-2]]:33: error: rank 1 does not join `SUM` [E0683]
// ABSENT: note: rank 0 runs it

// Stage 1 of `up` is on rank 0.
schedule absent_replica() {
  ranks 2;
  pipe down { placement linear; microbatches 0 .. 1; }
  pipe up { stages 2; stage s on rank 1 - s; microbatches 1 .. 2; }
  on rank r {
    F(down); F(up); B(down); B(up);
    if r == 0 { TIE(down); TIE(up); }
    if r == 1 { TIE(up); }
  }
}
// REPLICA: error: rank 1 does not join `1TIE` [E0683]

schedule absent_stage() {
  ranks 3; microbatches 1; placement linear;
  on rank r { F; B; if r == 0 { REDUCE_EMBEDDING; } }
}
// STAGE: error: rank 2 does not join `0REDUCE_EMBEDDING` [E0683]

schedule not_a_member() {
  ranks 3; microbatches 1; placement linear;
  on rank r { F; B; REDUCE_EMBEDDING; }
}
// MEMBER: error: `1REDUCE_EMBEDDING` is not of a stage that meets [E0684]

schedule crosswise() {
  ranks 2; microbatches 1; placement linear;
  on rank r { F; B; if r == 0 { SUM; OTHER; } else { OTHER; SUM; } }
}
// ORDER: collectives.pp:[[#@LINE-2]]:33: error: ranks 0 and 1 meet in different orders [E0685]
// ORDER: note: rank 0 has `SUM` first
// ORDER: note: rank 1 has `OTHER` first

// Rank 0 waits in SUM for rank 1, which waits for the output of rank 0.
schedule crosswise_with_messages() {
  ranks 2; microbatches 1; placement linear;
  on rank r { if r == 0 { SUM; } F; B; if r == 1 { SUM; } }
}
// MESSAGES: error: deadlock under `stream`: ranks 0 and 1 wait for each other [E0766]
// MESSAGES: note: on rank 0, `SUM` waits until rank 1 starts `SUM`

// Different lanes do not wait for each other.
schedule two_lanes() {
  ranks 2; microbatches 1; placement linear;
  on rank r { F; B; if r == 0 { SUM; BESIDE; } else { BESIDE; SUM; } }
}

// The rank that hosts the first and the last stage has nobody to meet.
schedule one_rank_twice() {
  ranks 2; microbatches 1; placement v;
  on rank r {
    F(0); F(1); B(1); B(0);
    if r == 0 { REDUCE_EMBEDDING(0); REDUCE_EMBEDDING(1); }
  }
}
