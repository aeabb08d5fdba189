// RUN: not ppcc prove %s | FileCheck %s
// One M is wrong, and far away; nothing else is.
// CHECK-NOT: invalid
// CHECK: {{^}}777 invalid {{.*}}one-large-m.pp:[[#@LINE+4]]:{{[0-9]+}}: no microbatch is left for `B`
// CHECK-NOT: invalid
schedule far(M: int = 8) {
  ranks 2; microbatches M; placement linear;
  on rank r { repeat M { F; } repeat M { B; } if M == 777 and r == 1 { B; } }
}
