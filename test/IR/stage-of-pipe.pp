// RUN: ppcc %s --emit=ir -o %t.ir
// RUN: FileCheck %s --input-file %t.ir
// RUN: ppcc %t.ir --passes=unroll --emit=ir | FileCheck %s
// RUN: sed 's/:[01]//' %t.ir > %t.short.ir
// RUN: not ppcc %t.short.ir --check 2>&1 | FileCheck %s --check-prefix=SHORT
// RUN: sed 's/PUT:1/PUT:2/' %t.ir > %t.none.ir
// RUN: not ppcc %t.none.ir --check 2>&1 | FileCheck %s --check-prefix=NONE
action PUT { per stage; lane none; after B; }
schedule two() {
  ranks 1;
  pipe a { microbatches 0 .. 1; stages 1; stage s on rank 0; }
  pipe b { microbatches 1 .. 2; stages 1; stage s on rank 0; }
  on rank 0 { F(a); F(b); B(b); PUT(b); B(a); PUT(a); }
}
// CHECK: 0B1{{[^ ]*}} 0PUT:1{{[^ ]*}} 0B0{{[^ ]*}} 0PUT:0
// SHORT: error: expected `:` and the number of a pipe: this rank has the stage in several
// NONE: error: there is no pipe 2
