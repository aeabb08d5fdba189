// Groups have running numbers on their rank; actions by themselves have -1.
// RUN: ppcc %s | FileCheck %s
schedule groups() {
  ranks 1;
  microbatches 3;
  placement linear;
  on rank r { F; overlap { F; B; } overlap { F; B; } B; }
}
// CHECK: "actions": [
// CHECK-NEXT: {{\[\[}}0,0,0,0,-1,0,-1,{{[0-9]+}}],[0,0,0,1,-1,0,0,{{[0-9]+}}],[1,0,0,0,-1,0,0,{{[0-9]+}}],[0,0,0,2,-1,0,1,{{[0-9]+}}],[1,0,0,1,-1,0,1,{{[0-9]+}}],[1,0,0,2,-1,0,-1,{{[0-9]+}}]]
