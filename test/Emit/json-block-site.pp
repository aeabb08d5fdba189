// A place inside a block leads on to the call.
// RUN: ppcc %s | FileCheck %s
block step() {
  F;
}
schedule called() {
  ranks 1;
  microbatches 1;
  placement linear;
  backward when false;
  on rank r {
    step();
  }
}
// CHECK: "sites": {{\[\[}}-1,0,0,0], {{.*}}[0,4,3,[[CALL:[1-9]]]]
// CHECK: {{\[\[}}0,0,0,0,-1,0,-1,{{[1-9]}}]]
