// Ranges that end before they begin and counts below 1 run nothing, whatever the numbers.
// RUN: ppcc %s --comm-order=none --emit=actions | FileCheck %s

schedule s() {
  ranks 1; microbatches 3; placement linear;
  // CHECK: rank 0: 0F2 0F0 0F1 0B0 0B1 0B2{{$}}
  on rank r {
    repeat 0 { F; }
    repeat -9223372036854775807 { F; }
    for i in 3 .. 3 { F; }
    for i in 9223372036854775807 .. -9223372036854775807 { F; }
    for i in 9223372036854775806 .. 9223372036854775807 { F(mb: i - 9223372036854775804); }
    while issued(F) > 5 { F; }
    for i in -2 .. 0 { F(mb: i + 2); }
    for i in 0 .. 3 { for j in i .. i + 1 { B(mb: j); } }
  }
}
