// A program keeps the actions that it runs, and those that they name; no others.
// RUN: ppcc %s --emit=ir | FileCheck %s --implicit-check-not='  action'
// CHECK:      action X
// CHECK-NEXT: action Y
// CHECK-NEXT: action A per microbatch lane compute after [F X]
// CHECK-NEXT: action C per microbatch lane compute after [F Y]
action X { }
action Y { }
action UNUSED { after X; }
action A { after F, X; }
action C { after F, Y; }
schedule s() { ranks 1; microbatches 1; placement linear; backward when false; on rank r { F; A; C; } }
