// What no order can be below, where ranks have memory for few microbatches: each rank has its own limit.
// RUN: ppcc %s:one --emit=report | FileCheck %s --check-prefix=ONE
// RUN: ppcc %s:parts --emit=report | FileCheck %s --check-prefix=PARTS
// RUN: ppcc %s:chunks --emit=report | FileCheck %s --check-prefix=CHUNKS
// RUN: ppcc %s:skips --emit=report | FileCheck %s --check-prefix=SKIPS

// Rank 1 runs its F, and has its gradient 3 later, from ranks that run theirs: a round is 6.
schedule one() {
  ranks 3; microbatches 4; placement linear;
  model { memory F = 1; }
  cluster { limit rank r = r == 0 ? 9 : 1; }
  on rank r { repeat 4 { F; B; } }
}
// ONE:      resources 27
// ONE-NEXT: rank 1 starts at 1, holds 1 microbatch at a time, needs 18 for 3 rounds, and the last one takes 8 more

// An I gives half back.
schedule parts() {
  ranks 3; microbatches 4; placement linear;
  model { memory F = 1; memory I = -0.5; }
  cluster { limit rank r = r == 0 ? 1 : 9; }
  on rank r { repeat 4 { F; I; W; } }
}
// PARTS:      resources 28
// PARTS-NEXT: rank 0 starts at 0, holds 1 microbatch at a time, needs 21 for 3 rounds, and the last one takes 7 more

schedule chunks() {
  ranks 3; microbatches 4; placement loop(3);
  model { memory F = 1; }
  cluster { limit rank r = r == 2 ? 3 : 99; }
  on rank r { repeat 4 { F(0); F(1); F(2); B(2); B(1); B(0); } }
}
// CHUNKS:      resources 54
// CHUNKS-NEXT: rank 2 receives its first gradient at 9 and works for 27 until its last forward, 18 before the end

// Of several edges into a stage the longest way counts.
schedule skips() {
  ranks 4; microbatches 3; placement linear;
  edge stage 0 -> stage 3; edge stage 1 -> stage 3; edge stage 0 -> stage 2;
  cluster { link a, b { latency = a == 2 and b == 3 ? 20 : 0; } }
  on rank r { repeat 3 { F; } repeat 3 { B; } }
}
// SKIPS:      resources 38
// SKIPS-NEXT: rank 3 starts at 23 and works for 9 until its last gradient, 6 before the end

// RUN: ppcc %s:waits --emit=report | FileCheck %s --check-prefix=WAITS
// Rank 0 has room for one forward before its first gradient, at 9; the other comes behind it.
schedule waits() {
  ranks 3; microbatches 2; placement linear;
  model { cost F stage s = s == 2 ? 5 : 1; memory F stage s = s == 0 ? 3 : 1; memory I = -1; }
  cluster { limit rank r = r == 1 ? 1 : 5; }
  on rank r { repeat 2 { F; I; W; } }
}
// WAITS:      resources 21
// WAITS-NEXT: rank 0 receives its first gradient at 9 and works for 2 until its last forward, 10 before the end

// RUN: ppcc %s:threes --emit=report | FileCheck %s --check-prefix=THREES
// What is held of all three stages counts.
schedule threes() {
  ranks 2; microbatches 3; placement loop(3);
  model { memory F stage s = s % 3 == 1 ? 1 : 2; memory I = -1; }
  cluster { limit rank r = r == 0 ? 5 : 9; }
  on rank r { repeat 3 { F(0); F(1); F(2); I(2); W(2); I(1); W(1); I(0); W(0); } }
}
// THREES:      resources 30
// THREES-NEXT: rank 0 receives its first gradient at 7 and works for 23

// RUN: ppcc %s:through --emit=report | FileCheck %s --check-prefix=THROUGH
// Each forward stays until its backward: with room for two, the time that all are there is shared by two.
schedule through() {
  ranks 2; microbatches 8; placement loop(2);
  model { memory F = 1; }
  cluster { limit = 2; }
  on rank r { repeat 8 { F(0); F(1); B(1); B(0); } }
}
// THROUGH:      resources 72
// THROUGH-NEXT: rank 0 starts at 0 and needs 72 for all microbatches to pass through its memory

// RUN: ppcc %s:slow_skip --emit=report --transport=buffered | FileCheck %s --check-prefix=SLOW-SKIP
// Rank 1 lets its F wait for what comes late past it: its room is not taken meanwhile.
schedule slow_skip() {
  ranks 3; microbatches 4; placement linear;
  edge stage 0 -> stage 2;
  cluster { limit rank r = r == 1 ? 1 : 9; link a, b { latency = a + b == 2 ? 100 : 0; } }
  on rank r {
    if r == 0 { repeat 4 { F; } repeat 4 { B; } }
    else { repeat 4 { F; B; } }
  }
}
// SLOW-SKIP: makespan     224
// SLOW-SKIP: resources    218
// SLOW-SKIP-NEXT: rank 1 receives its first gradient at 104 and works for 9 until its last forward, 105 before the end
