// Two ranks that could begin a transfer to each other at one time have both in one order.
// RUN: ppcc %s --check
// RUN: ppcc %s --comm-order=none --emit=actions | FileCheck %s --match-full-lines
// RUN: ppcc %s -D M=3 -D P=4 --check && ppcc %s -D M=5 -D P=6 --cost EVICT=0 --check
action EVICT { to rank ranks - 1 - r for rank r; lane peer; after F; cost 1; }
action LOAD  { from rank ranks - 1 - r for rank r; lane peer; after EVICT; before B; cost 0.5; }
schedule s(P: int = 2, M: int = 1) {
  ranks P; microbatches M; placement linear;
  insert EVICT after F;
  insert LOAD before B;
  // At time 2, rank 0 can load and rank 1 can evict.
  // CHECK:      rank 0: {{.*}}0EVICT0>1 0LOAD0<1 {{.*}}1EVICT0>0 1LOAD0<0{{.*}}
  // CHECK-NEXT: rank 1: {{.*}}0EVICT0>1 {{.*}}0LOAD0<1 1EVICT0>0 1LOAD0<0{{.*}}
  on rank r { repeat M { F; } repeat M { B; } }
}
