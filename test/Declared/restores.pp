// What F does not keep, R restores: of four microbatches 0.05 each, and of one all.
// RUN: ppcc %s:checkpointed --emit=report 2>&1 | FileCheck %s --check-prefix=KEPT --implicit-check-not=warning
// KEPT: {{^}}   0    16    25     9            4    1.15   3  0F3              0
// A schedule that says what F keeps, where all that it takes is meant, gets a warning.
// RUN: ppcc %s:plain --cost memory.F=0.05 --emit=report 2>&1 | FileCheck %s --check-prefix=ALL
// ALL:      restores.pp:28:42: warning: `0R0` restores all 0.05 that `0F0` takes, so that no checkpoint is kept [E1054]
// ALL:      {{^}}   0    16    25     9            4    0.05   0  0F0              0
// RUN: not ppcc %s:plain --cost memory.F=0.05 --cost memory.R=0.95 --check 2>&1 | FileCheck %s --check-prefix=MORE
// MORE:     restores.pp:28:42: error: `0R0` restores 0.95, but `0F0` takes only 0.05 [E1053]
// RUN: not ppcc prove %s:plain --cost memory.F=0.05 --cost memory.R=0.95 2>&1 | FileCheck %s --check-prefix=EVERY
// EVERY:    {{^}}1 .. {{.*}}invalid{{.*}}restores.pp:28:42: `0R0` restores 0.95, but `0F0` takes only 0.05
// RUN: ppcc %s:plain --cost memory.R=0 --check 2>&1 | FileCheck %s --check-prefix=NOTHING
// NOTHING:  restores.pp:28:42: warning: `0R0` restores nothing of the 1 that `0F0` takes [E1055]
// What is in units of the F follows it: R restores all of the 3, and takes as long.
// RUN: ppcc %s:plain --cost memory.F=3 --cost F=5 --emit=ir | FileCheck %s --check-prefix=UNITS
// UNITS:      {"cost": {"F": 5, "R": 5},
// UNITS-NEXT: "memory": {"F": 3, "R": 3}}
// RUN: ppcc %s:plain --cost memory.F=3 --cost memory.R=2 --emit=ir | FileCheck %s --check-prefix=SAID
// SAID: "memory": {{.*}}"R": 2}
action R { after F; before B, I; cost 1; restores F; }
schedule checkpointed(P: int = 4, M: int = 4) {
  ranks P; microbatches M; placement linear;
  model { memory F = 1; memory R = 0.95; }
  on rank r { repeat M { F; } repeat M { R; B; } }
}
schedule plain(P: int = 4, M: int = 4) {
  ranks P; microbatches M; placement linear;
  on rank r { repeat M { F; } repeat M { R; B; } }
}
