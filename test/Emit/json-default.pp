// JSON is the default format; one line holds one rank.
// RUN: ppcc %s --comm-order=none | FileCheck %s --match-full-lines --strict-whitespace
// RUN: ppcc %s --comm-order=none --emit=json -o %t.json
// RUN: ppcc %s --comm-order=none -o %t.default.json
// RUN: diff %t.json %t.default.json
schedule tiny(flag: bool = true, P: int = 2, cost: float = 1.5) {
  ranks P;
  microbatches 1;
  placement linear;
  backward when false;
  on rank r { F; }
}
//      CHECK:{
// CHECK-NEXT:"format": "ppcc.program",
// CHECK-NEXT:"version": 1,
//      CHECK:"schedule": "tiny",
// CHECK-NEXT:"params": {"flag": true, "P": 2, "cost": 1.5},
// CHECK-NEXT:"ranks": 2,
// CHECK-NEXT:"backward": false,
//      CHECK:"pipes": [{"name": "main", "microbatches": [0,1], "rank_of_stage": [0, 1], "skip_edges": []}],
//      CHECK:"sites": {{\[\[}}-1,0,0,0], [0,11,15,0]],
//      CHECK:"actions": [
// CHECK-NEXT:{{\[\[0,0,0,0,-1,0,-1,1\]\],}}
// CHECK-NEXT:{{\[\[0,0,1,0,-1,0,-1,1\]\]}}
// CHECK-NEXT:],
// CHECK-NEXT:"waits": [
// CHECK-NEXT:[],
// CHECK-NEXT:[]
// CHECK-NEXT:]
// CHECK-NEXT:}
