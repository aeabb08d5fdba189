// C++ is data: tables, a row an action, and one variable that other files see.
// RUN: ppcc %s --emit=cpp --comm-order=sweep -o %t.cpp
// RUN: FileCheck %s --match-full-lines --input-file=%t.cpp
// RUN: %cxx -Wall -Wextra -Wpedantic -Werror -c %t.cpp -o %t.o
schedule tiny(P: int = 3) {
  ranks P;
  microbatches 2;
  placement linear;
  edge stage 0 -> stage 2;
  on rank r {
    phase go {
      F;
      if r == 2 { overlap { F; B; } } else { F; B; }
      B;
    }
  }
}
//      CHECK:// The program of a pipeline schedule, as data. Written by ppcc {{.*}}.
// CHECK-NEXT:#include "ppcc/Runtime/Program.h"
//      CHECK:static_assert(ppcc::rt::abiVersion == {{[0-9]+}}, "{{.*}}");
//      CHECK:    {"B", KindClass::Compute, 6, 1},
//      CHECK:    {"SEND_F", KindClass::Send, 1, 0},
//      CHECK:constexpr uint32_t rankOfStage0[] = {
// CHECK-NEXT:    0, 1, 2,
// CHECK-NEXT:};
// CHECK-NEXT:constexpr SkipEdge skipEdges0[] = {
// CHECK-NEXT:    {0, 2},
// CHECK-NEXT:};
// CHECK-NEXT:constexpr Pipe pipes[] = {
// CHECK-NEXT:    {"main", 0, 2, rankOfStage0, skipEdges0},
// CHECK-NEXT:};
// CHECK-NEXT:constexpr const char *phases[] = {
// CHECK-NEXT:    "",
// CHECK-NEXT:    "go",
// CHECK-NEXT:};
//      CHECK:    {-1, 0, 0, 0},
// CHECK-NEXT:    {0, 12, 7, 0},
//      CHECK:// Rank 2: kind, pipe, stage, microbatch, peer, phase, site.
// CHECK-NEXT:constexpr Row rows2[] = {
//      CHECK:    {5, 0, 2, 0, 0, 1, 1}, // 2RECV_F0<0
//      CHECK:    {0, 0, 2, 0, Row::noPeer, 1, 1}, // 2F0
//      CHECK:    {0, 0, 2, 1, Row::noPeer, 1, 5}, // 2F1
// CHECK-NEXT:    {1, 0, 2, 0, Row::noPeer, Row::joinedBit | 1, 6}, // 2B0
//      CHECK:constexpr Segment segments2[] = {
// CHECK-NEXT:    {0, 12, 1, 0},
// CHECK-NEXT:};
//      CHECK:    {rows2, {}, segments2, 2, 2},
//      CHECK:constexpr RankPair preconnect[] = {
// CHECK-NEXT:    {0, 1}, {0, 2}, {1, 2},
// CHECK-NEXT:};
//      CHECK:extern "C" {
// CHECK-NEXT:extern const ppcc::rt::Program ppcc_tiny;
// CHECK-NEXT:}
// CHECK-NEXT:const ppcc::rt::Program ppcc_tiny = ppcc_data::program;
