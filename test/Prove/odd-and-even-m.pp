// Two pipes of half of the microbatches each: what ranks hold differs between odd and even M.
// RUN: not ppcc prove %s | FileCheck %s
// CHECK: {{^}}2 .. valid 3 M + 5{{$}}
schedule s(P: int >= 1 = 2, M: int >= 1 = 8) {
  ranks P;
  let H = (M + 1) / 2;
  pipe down { placement linear; microbatches 0 .. H; }
  pipe up { stages P; stage s on rank P - 1 - s; microbatches H .. M; }
  on rank r { repeat H { F(down); } repeat H { B(down); } repeat M - H { F(up); } repeat M - H { B(up); } }
}
