// `auto` lists the first connections when the program may run on a stream; the command line has the last word.
// RUN: ppcc %s --emit=ir | FileCheck %s --check-prefix=ON
// RUN: ppcc %s --emit=ir --transport=rendezvous,stream-per-edge | FileCheck %s --check-prefix=ON
// RUN: ppcc %s --emit=ir --transport=rendezvous,buffered | FileCheck %s --check-prefix=OFF
// RUN: ppcc %s --emit=ir --transport=rendezvous --preconnect=on | FileCheck %s --check-prefix=ON
// RUN: ppcc %s --emit=ir --preconnect=off | FileCheck %s --check-prefix=OFF
// RUN: ppcc %s --emit=ir --comm-order=none | FileCheck %s --check-prefix=OFF
// RUN: sed 's/placement/comm { preconnect off; } placement/' %s > %t.off.pp
// RUN: ppcc %t.off.pp --emit=ir | FileCheck %s --check-prefix=OFF
// RUN: ppcc %t.off.pp --emit=ir --preconnect=auto | FileCheck %s --check-prefix=ON
// RUN: sed 's/placement/cluster { transport buffered; } comm { preconnect on; } placement/' %s > %t.on.pp
// RUN: ppcc %t.on.pp --emit=ir | FileCheck %s --check-prefix=ON
// ON:      "preconnect": {{.}}[0,1], [1,2]],{{$}}
// OFF:     program
// OFF-NOT: {{^}}  preconnect
// OFF:     rank 2

// RUN: not ppcc %s --preconnect=yes 2>&1 | FileCheck %s --check-prefix=CHOICE
// CHOICE: ppcc: error: --preconnect: invalid value `yes`; expected one of auto, on, off
// RUN: not ppcc %s --preconnect=on --passes=verify 2>&1 | FileCheck %s --check-prefix=BOTH
// BOTH: ppcc: error: --preconnect is for preconnect, which --passes does not name

// A list that comes with a program stays, unless one is asked for.
// RUN: ppcc %s | sed -e "/^\"digest\"/d" -e 's/"preconnect": .*/"preconnect": [[1,2], [0,1]],/' > %t.json
// RUN: ppcc %t.json --emit=ir | FileCheck %s --check-prefix=KEPT
// RUN: ppcc %t.json --emit=ir --transport=buffered | FileCheck %s --check-prefix=KEPT
// RUN: ppcc %t.json --emit=ir --preconnect=on | FileCheck %s --check-prefix=ON
// RUN: ppcc %t.json --emit=ir --preconnect=off | FileCheck %s --check-prefix=OFF
// KEPT: "preconnect": {{.}}[1,2], [0,1]],{{$}}
// RUN: ppcc %s | sed -e "/^\"digest\"/d" -e 's/"preconnect": .*/"preconnect": [[0,1]],/' > %t.lacks.json
// RUN: not ppcc --check %t.lacks.json 2>&1 | FileCheck %s --check-prefix=LACKS
// LACKS: error: ranks 1 and 2 exchange `1SEND_F0`, but `preconnect` does not list them [E0770]

schedule line() {
  ranks 3;
  microbatches 1;
  placement linear;
  on rank r { F; B; }
}
