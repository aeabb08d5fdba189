// Declarations, and actions of stages and ranks of two pipes, survive each way of writing them.
// RUN: ppcc %s --emit=ir -o %t.ir
// RUN: FileCheck %s < %t.ir
// RUN: ppcc %t.ir --passes=verify-transport --emit=ir | diff %t.ir -
// RUN: ppcc %s -o %t.json
// RUN: ppcc %t.json --emit=ir | diff %t.ir -
// RUN: ppcc %s --rolled --emit=ir -o %t.rolled
// RUN: ppcc %t.rolled --passes=unroll,verify-transport --emit=ir | diff %t.ir -
// RUN: ppcc %s --emit=ast | FileCheck %s --check-prefix=AST
action LATER { lane far_away; before SOONER; memory -0.25; }
action SOONER { after LATER; after F; before B, I; restores F; memory 0.5; }
action TIED { per stage; after B, W; required; collective stages(0, -1); }
action OUTSIDE { per stage; lane comm; after B, W; collective others; cost 0.125; }
action DONE { per rank; after TIED, OUTSIDE; required; collective all; }

rule everything(n: int = 1) {
  insert LATER after F;
  insert SOONER before B by n for microbatch m, F k when m >= 0 and k >= 0;
  insert TIED after B;
  insert OUTSIDE after B;
  insert DONE after TIED, OUTSIDE;
}

schedule both(M: int = 4) {
  ranks 2;
  pipe down { placement linear; microbatches 0 .. M; }
  pipe up { stages 2; stage s on rank 1 - s; microbatches M .. 2 * M; }
  with everything;
  on rank r {
    for m in 0 .. M { F(down); F(up); }
    for m in 0 .. M { B(down); B(up); }
  }
}
// CHECK: {"mnemonic": "LATER", "class": "declared", "per": "microbatch", "lane": "far_away", "after": [], "before": {{.}}["SOONER"]]}
// CHECK: {"mnemonic": "SOONER", "class": "declared", "per": "microbatch", "lane": "compute", "after": {{.}}["LATER"], ["F"]], "before": {{.}}["B", "I"]], "restores": "F"}
// CHECK: {"mnemonic": "TIED", "class": "declared", "per": "stage", "lane": "compute", "after": {{.}}["B", "W"]], "before": [], "required": true, "collective": [0, -1]}
// CHECK: {"mnemonic": "OUTSIDE", "class": "declared", "per": "stage", "lane": "comm", "after": {{.}}["B", "W"]], "before": [], "collective": "outside others"}
// CHECK: {"mnemonic": "DONE", "class": "declared", "per": "rank", "lane": "compute", "after": {{.}}["TIED", "OUTSIDE"]], "before": [], "required": true, "collective": "all"}

// AST: ActionKind TIED
// AST-NEXT: Property per stage
// AST-NEXT: Property after B W
// AST-NEXT: Property required
// AST-NEXT: Property collective stages(0, -1)
// AST: Rule everything
// AST-NEXT: Parameter n: int = 1
// AST-NEXT: Insert LATER after F
// AST-NEXT: Insert SOONER before B by n for microbatch m for F k when m >= 0 and k >= 0
// AST: With everything
