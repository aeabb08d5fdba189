// Lists: written out, made by a rule, given from outside.
// RUN: ppcc %s --comm-order=none --emit=actions | FileCheck %s --match-full-lines
// RUN: ppcc %s -D ahead=0,0,0,0 -D M=1 --comm-order=none --emit=actions | FileCheck %s --check-prefix=GIVEN --match-full-lines
// RUN: ppcc %s --emit=json | FileCheck %s --check-prefix=JSON
// RUN: ppcc %s --emit=ast | FileCheck %s --check-prefix=AST
// RUN: not ppcc %s -D ahead=1,x 2>&1 | FileCheck %s --check-prefix=BAD
// RUN: not ppcc %s -D ahead=1,2 2>&1 | FileCheck %s --check-prefix=SHORT
// RUN: not ppcc %s -D ahead= 2>&1 | FileCheck %s --check-prefix=EMPTY
// JSON: "params": {"P": 3, "M": 3, "ahead": "2,1,0"}
// AST: Parameter ahead: int[] = [P - 1 - r for r in 0 .. P]
// BAD: -D ahead: error: `1,x` is not a valid value for parameter `ahead: int[]` [E0403]
// SHORT: error: index 2 is out of range for a list of 2 [E0484]
// EMPTY: error: `max` of an empty list [E0485]

// CHECK:      rank 0: 0F0 0F1 0F2 0B0 0B1 0B2
// CHECK-NEXT: rank 1: 1F0 1F1 1B0 1F2 1B1 1B2
// CHECK-NEXT: rank 2: 2F0 2B0 2F1 2B1 2F2 2B2
// GIVEN:      rank 0: 0F0 0B0
// GIVEN-NEXT: rank 1: 1F0 1B0
// GIVEN-NEXT: rank 2: 2F0 2B0
fn squares(n) = [i * i for i in 0 .. n];
fn nth(list: int[], i) = list[i];

schedule s(P: int = 3, M: int = 3, ahead: int[] = [P - 1 - r for r in 0 .. P]) {
  require sum(squares(4)) == 14 and len(squares(4)) == 4 and nth(squares(4), 3) == 9, "squares";
  require max(ahead) >= min(ahead) and sum([]) == 0 and len([sum([i + j for j in 0 .. 2]) for i in 0 .. 2]) == 2, "more";
  ranks P; microbatches M; placement linear;
  on rank r {
    let w = min(ahead[r], M);
    repeat w { F; }
    repeat M - w { F; B; }
    repeat w { B; }
  }
}
