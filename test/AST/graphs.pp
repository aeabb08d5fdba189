// Layers, stage graphs and patterns as a tree.
// RUN: ppcc %s --emit=ast | FileCheck %s --match-full-lines --strict-whitespace
schedule s(late: bool = true) {
  layer expert {
    F: a @ comp -> b @ comm;
    if late { B: a @ comp -> W.a @ comp; } else if 1 < 2 { B: a @ comp; } else { }
  }
  stage graph n {
    repeat n + 1 { layer expert; }
    for i in 0 .. 2 { layer expert; }
    F: enter @ comp -> per layer;
    B: per layer down -> enter @ comp;
  }
  overlap (F, B) {
    F.enter;
    per layer { F.a; }
    last W.a;
  }
  model { cost F.a = 1.5; cost F = 2; }
}
//      CHECK:File
// CHECK-NEXT:  Schedule s
// CHECK-NEXT:    Parameter late: bool = true
// CHECK-NEXT:    Layer expert
// CHECK-NEXT:      Chain F a @ comp -> b @ comm
// CHECK-NEXT:      If late
// CHECK-NEXT:        Chain B a @ comp -> W.a @ comp
// CHECK-NEXT:      ElseIf 1 < 2
// CHECK-NEXT:        Chain B a @ comp
// CHECK-NEXT:      Else
// CHECK-NEXT:    StageGraph n
// CHECK-NEXT:      Repeat n + 1
// CHECK-NEXT:        UseLayer expert
// CHECK-NEXT:      For i in 0 .. 2
// CHECK-NEXT:        UseLayer expert
// CHECK-NEXT:      Chain F enter @ comp -> per layer
// CHECK-NEXT:      Chain B per layer down -> enter @ comp
// CHECK-NEXT:    Pattern F B
// CHECK-NEXT:      Place F.enter
// CHECK-NEXT:      PerLayer
// CHECK-NEXT:        Place F.a
// CHECK-NEXT:      Place last W.a
// CHECK-NEXT:    Model
// CHECK-NEXT:      Setting cost F.a = 1.5
// CHECK-NEXT:      Setting cost F = 2
