// Pictures have a line for each lane beside the compute actions, below those of nodes.
// RUN: ppcc %s --emit=timeline --width=60 | FileCheck %s --match-full-lines --strict-whitespace
// RUN: ppcc %s --emit=svg --width=600 -o %t.svg
// RUN: %python %ppcc_src_root/test/utils/check-svg.py %t.svg boxes=14 | FileCheck %s --check-prefix=SVG
// RUN: ppcc %s --emit=trace --transport=stream-per-edge -o %t.json
// RUN: FileCheck %s --check-prefix=TRACE < %t.json
// RUN: %python %ppcc_src_root/test/utils/check-trace.py %t.json
// RUN: ppcc %s --emit=svg --width=200 | FileCheck %s --check-prefix=NARROW --implicit-check-not='>LO0<'
// What runs beside is something to draw by itself.
// RUN: ppcc %s --emit=timeline --time-range=4..5 | FileCheck %s --check-prefix=BESIDE
//      CHECK:pair: makespan 9 by its data alone
// CHECK-NEXT:rank 0 comp │Fa0──·····Fa1──··········Ba0───────Ba1───────
// CHECK-NEXT:       comm │·····Fb0──·····Fb1──·························
// CHECK-NEXT:  d2h       │··········SA0───────SA1───────···············
// CHECK-NEXT:  h2d       │····················LO0──·····LO1──··········
// CHECK-NEXT:            ┬─────────┬─────────┬─────────┬─────────┬─────
// CHECK-NEXT:            0         2         4         6         8
// CHECK-NEXT:F forward, B backward, SA SAVE on d2h, LO LOAD on h2d, · idle; a column is 0.2
//      SVG: box 189.63,58 114.39x14 [[SAVE:k[0-9]+]]
// SVG-NEXT: box 304.02,58 114.39x14 [[SAVE]]
// SVG-NEXT: box 304.02,74 57.2x14 [[LOAD:k[0-9]+]]
//      SVG: text d2h
// SVG-NEXT: text h2d
//      SVG: text SA0
//      SVG: text LO LOAD on h2d
// The lane says what the letters would.
// NARROW: >0</text>
// TRACE: "tid":501,"name":"thread_name","args":{"name":"comm"}
// TRACE: "tid":[[D2H:[0-9]+]],"name":"thread_name","args":{"name":"d2h"}
// TRACE: "tid":[[H2D:[0-9]+]],"name":"thread_name","args":{"name":"h2d"}
// TRACE: "tid":[[D2H]],"ts":2000,"dur":2000,"name":"0SAVE0"
// TRACE: "tid":[[H2D]],"ts":4000,"dur":1000,"name":"0LOAD0"
// BESIDE: d2h {{.*}}SA1
// BESIDE: h2d {{.*}}LO0
action SAVE { lane d2h; after F; cost 2; }
action LOAD { lane h2d; after SAVE; before B; cost 1; }
schedule pair() {
  ranks 1; microbatches 2; placement linear;
  model {
    layer l { F: a @ comp -> b @ comm; B: a @ comp; cost F.a = 1; cost F.b = 1; cost B.a = 2; }
    layers l;
  }
  on rank r { F; SAVE; F; SAVE; LOAD; LOAD; B; B; }
}
