// Layers, parts and patterns as a tree.
// RUN: ppcc %s --emit=ast | FileCheck %s --match-full-lines --strict-whitespace
model m(late: bool = true) {
  layer expert {
    F: a @ comp -> b @ comm;
    if late { B: a @ comp -> W.a @ comp; } else if 1 < 2 { B: a @ comp; } else { }
    gives x[4, ?] bf16;
  }
  part p { layers expert * 4, enter by cost between enter, leave; stages 2; }
  overlap F, B {
    F.enter;
    each expert { F.a; }
    last W.a;
  }
  cost F.a = 1.5; cost F = 2;
}
//      CHECK:File
// CHECK-NEXT:  Model m
// CHECK-NEXT:    Parameter late: bool = true
// CHECK-NEXT:    Named layer expert
// CHECK-NEXT:      Chain F a @ comp -> b @ comm
// CHECK-NEXT:      If late
// CHECK-NEXT:        Chain B a @ comp -> W.a @ comp
// CHECK-NEXT:      ElseIf 1 < 2
// CHECK-NEXT:        Chain B a @ comp
// CHECK-NEXT:      Else
// CHECK-NEXT:      Tensors gives x[4, ?] bf16
// CHECK-NEXT:    Named part p
// CHECK-NEXT:      Setting layers expert * 4, enter by cost between enter leave
// CHECK-NEXT:      Stages 2
// CHECK-NEXT:    Pattern F B
// CHECK-NEXT:      Place F.enter
// CHECK-NEXT:      Named each expert
// CHECK-NEXT:        Place F.a
// CHECK-NEXT:      Place last W.a
// CHECK-NEXT:    Setting cost F.a = 1.5
// CHECK-NEXT:    Setting cost F = 2
