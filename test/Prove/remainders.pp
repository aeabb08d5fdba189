// RUN: not ppcc prove %s | FileCheck %s
// Three remainders in succession are a range.
// CHECK: {{^}}M % 7 = 3, 4, 6 {{ *}}valid
// CHECK: {{^}}M % 7 = 0 .. 2, 5 {{ *}}invalid
schedule s(M: int = 8) {
  ranks 2; microbatches M; placement linear;
  on rank r { repeat M { F; } repeat M { B; } if M % 7 < 3 or M % 7 == 5 { F; } }
}
