// The tree of every statement.
// RUN: ppcc %s --emit=ast | FileCheck %s --match-full-lines --strict-whitespace

block b() {
  let w = min(1, 2);
  phase warmup { repeat w { F; } }
  for i in 0 .. 2 * w { F(0); }
  while issued(B) < M { B(c, mb: M - 1); }
  if w == 1 { F; } else if w == 2 { } else { B; }
  if true { other(1, up, 2.0); }
  overlap { F(); B(mb: 0); }
  defer W { B; }
  defer W lag r { B; }
  drain W;
  drain W(c);
}
//      CHECK:  Block b
// CHECK-NEXT:    Let w = min(1, 2)
// CHECK-NEXT:    Phase warmup
// CHECK-NEXT:      Repeat w
// CHECK-NEXT:        Action F
// CHECK-NEXT:    For i in 0 .. 2 * w
// CHECK-NEXT:      Action F 0
// CHECK-NEXT:    While issued(B) < M
// CHECK-NEXT:      Action B c mb:M - 1
// CHECK-NEXT:    If w == 1
// CHECK-NEXT:      Action F
// CHECK-NEXT:    ElseIf w == 2
// CHECK-NEXT:    Else
// CHECK-NEXT:      Action B
// CHECK-NEXT:    If true
// CHECK-NEXT:      Action other 1 up 2.0
// CHECK-NEXT:    Overlap
// CHECK-NEXT:      Action F
// CHECK-NEXT:      Action B mb:0
// CHECK-NEXT:    Defer W
// CHECK-NEXT:      Action B
// CHECK-NEXT:    Defer W lag r
// CHECK-NEXT:      Action B
// CHECK-NEXT:    Drain W
// CHECK-NEXT:    Drain W c
