// With times of nodes a picture has a line for each lane.
// RUN: ppcc %s:lanes --emit=timeline --width=80 -o - | FileCheck %s --match-full-lines --strict-whitespace
// RUN: ppcc %s:lanes --emit=svg -o - | FileCheck %s --check-prefix=SVG
// RUN: ppcc %s:lanes --emit=svg -o %t.svg && %python %ppcc_src_root/test/utils/check-svg.py %t.svg | FileCheck %s --check-prefix=TEXTS
// TEXTS: text rank 0
// Each node is a box; a page has each order of nodes once, but here each microbatch has its own.
// RUN: not ppcc %s:many -D layers=50001 -D M=1 --emit=svg -o - 2>&1 | FileCheck %s --check-prefix=LARGE
// RUN: not ppcc %s:many -D layers=40000 -D M=101 --emit=html -o - 2>&1 | FileCheck %s --check-prefix=PAGE
// RUN: ppcc %s:lanes --cost=F=1 --emit=report-json -o - | FileCheck %s --check-prefix=REPORT
schedule lanes() {
  ranks 1; microbatches 2; placement linear;
  model {
    layer expert {
      F: a @ comp -> b @ comm;
      B: b @ comm -> a @ comp;
    }
    layers expert;
    overlap F, B { B.b; F.a; B.a; F.b; }
    cost F.a = 2; cost F.b = 1; cost B.a = 4; cost B.b = 2;
  }
  on rank r { F; overlap { F; B; } B; }
}
//      CHECK:lanes: makespan 15 by its data alone
// CHECK-NEXT:rank 0 comp │Fa0─────····Fa1─────Ba0─────────────········Ba1─────────────
// CHECK-NEXT:       comm │········Fb0─Bb0─────Fb1─············Bb1─────················
// CHECK-NEXT:            ┬───────────────────┬───────────────────┬────────────────────
// CHECK-NEXT:            0                   5                   10
// CHECK-NEXT:F forward, B backward, · idle; a column is 0.25
// SVG:      >comp</text>
// SVG-NEXT: >comm</text>
// SVG:      <g stroke
// SVG-NEXT: <rect x="75.24" y="24" width="32" height="14" fill="url(#k0)"/>
// SVG-NEXT: <rect x="107.24" y="38" width="16" height="14" fill="url(#k0)"/>
// REPORT: "makespan": 15
// LARGE: many: error: 50001 boxes, more than the limit of 50000 for an svg [E1051]
// PAGE: many: error: 4040000 nodes, more than the limit of 4000000 for a page [E1051]
schedule many(layers: int, M: int) {
  ranks 1; microbatches M; placement linear;
  backward when false;
  model {
    layer plain { F: a @ comp; cost F.a = 0.001; }
    layers plain * layers;
    scale microbatch m = m + 1;
  }
  on rank r { repeat M { F; } }
}
// Names that are too long for a box have two letters there, and the legend tells them.
// RUN: ppcc %s:words --emit=timeline --width=60 | FileCheck %s --check-prefix=WORDS
schedule words() {
  ranks 1; microbatches 1; placement linear; backward when false;
  model { layer l { F: norm @ comp -> attn @ comp -> route @ comm -> mlp @ comp; } layers l; cost F.norm = 1; cost F.attn = 2; cost F.route = 3; cost F.mlp = 4; }
  on rank r { F; }
}
// WORDS:      rank 0 comp │Fno0Fat0────············Fml0
// WORDS-NEXT:        comm │············Fro0
// WORDS:      F forward, no norm, at attn, ro route, ml mlp, · idle
