// A cost may be given for an action that a rule inserts nowhere here: there is no message on one rank.
// RUN: ppcc %s -D P=2 --cost SENT=2 --cost memory.SENT=1 --emit=ir | FileCheck %s --check-prefix=TWO
// TWO:      {"cost": {"SENT": 2},
// TWO-NEXT: "memory": {"SENT": 1}}
// RUN: ppcc %s -D P=1 --cost SENT=2 --emit=ir | FileCheck %s --check-prefix=ONE --implicit-check-not=SENT
// ONE: rank 0 {
// RUN: echo '{"cost": {"SENT": [2]}, "memory": {"SENT": 1}}' >%t.json && ppcc %s -D P=1 --costs %t.json --check
// What is no number is still refused, and what nobody declares.
// RUN: not ppcc %s -D P=1 --cost SENT=x 2>&1 | FileCheck %s --check-prefix=NUMBER
// NUMBER: --cost: error: `SENT` must be {{.*}} [E1006]
// RUN: not ppcc %s -D P=1 --cost SEND=2 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: --cost: error: cost `SEND` does not exist{{.*}} [E1007]
action SENT { after SEND_F; cost 1; }
schedule s(P: int = 1, M: int = 2) {
  ranks P; microbatches M; placement linear;
  insert SENT after F;
  on rank r { repeat M { F; } repeat M { B; } }
}
