// `cost` and `memory` of an action are in units of what the F of its stage takes, whoever says that.
// RUN: ppcc %s:pipes --emit=times | FileCheck %s --check-prefix=PIPES --match-full-lines
// PIPES:      0,0GET,,0,3
// PIPES:      0,0GET,,{{.*}}
// RUN: ppcc %s:pipes --emit=ir | FileCheck %s --check-prefix=IR
// IR: "cost": {{.*}}{"F": {"a": 3}, "GET": {"a": 3, "b": 1}}
// RUN: ppcc one_f_one_b -D P=1 -D M=1 --with recompute --cost F=5 --emit=times | FileCheck %s --check-prefix=OPTION
// OPTION:      0,0F0,,0,5
// OPTION-NEXT: 0,0R0,,5,10
// RUN: echo '{"cost": {"F": 5}}' >%t.json && ppcc one_f_one_b -D P=1 -D M=1 --with recompute --costs %t.json --emit=times | FileCheck %s --check-prefix=OPTION
// RUN: ppcc gpipe -D P=1 -D M=2 --with offload --cost memory.F=5 --emit=ir | FileCheck %s --check-prefix=MEMORY
// MEMORY: "memory": {"F": 5, "OFFLOAD": -5, "RELOAD": 5}
// With amounts of others, F takes nothing, and so does what is in units of it.
// RUN: ppcc %s:nothing --check
action GET { per stage; lane y; before F; cost 1; }
action OFF { lane d2h; after F; before ON; memory -1; }
action ON { lane h2d; after OFF; before B; memory 1; }
schedule pipes() {
  ranks 1;
  pipe a { microbatches 0 .. 1; stages 1; stage s on rank 0; }
  pipe b { microbatches 1 .. 2; stages 1; stage s on rank 0; }
  insert GET before F;
  model { cost F pipe a = 3; }
  on rank 0 { F(a); B(a); F(b); B(b); }
}
schedule nothing(M: int = 1) {
  ranks 1; microbatches M; placement linear;
  model { memory W = 2; }
  on rank r { F; OFF; ON; B; }
}
