// What is per rank is of the first stage of its rank, whichever stage it was put behind.
// RUN: ppcc %s --comm-order=none | FileCheck %s
// CHECK:      "actions": [
// CHECK-NEXT: [8,0,0,-1,-1,0,-1,5]
// CHECK-NEXT: [8,0,1,-1,-1,0,-1,5]
action LOG { per rank; after F; }
schedule s() {
  ranks 2; microbatches 1; placement loop(2);
  insert LOG after F;
  on rank r { F(0); F(1); B(1); B(0); }
}
