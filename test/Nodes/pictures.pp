// With times of nodes a picture has a line for each lane.
// RUN: ppcc %s --emit=timeline --width=80 -o - | FileCheck %s --match-full-lines --strict-whitespace
// RUN: ppcc %s --emit=svg -o - | FileCheck %s --check-prefix=SVG
// RUN: ppcc %s --cost=F=1 --emit=report-json -o - | FileCheck %s --check-prefix=REPORT
schedule lanes() {
  ranks 1; microbatches 2; placement linear;
  layer expert {
    F: a @ comp -> b @ comm;
    B: b @ comm -> a @ comp;
  }
  stage graph s { layer expert; F: per layer; B: per layer down; }
  overlap (F, B) { per layer { B.b; F.a; B.a; F.b; } }
  model { cost F.a = 2; cost F.b = 1; cost B.a = 4; cost B.b = 2; }
  on rank r { F; overlap { F; B; } B; }
}
//      CHECK:lanes: 15 by its data alone
// CHECK-NEXT:rank 0 comp │F0────···F1────B0──────────······B1──────────
// CHECK-NEXT:       comm │······F0─B0────F1─·········B1────············
// CHECK-NEXT:            ┬──────────────┬──────────────┬───────────────
// CHECK-NEXT:            0              5              10
// CHECK-NEXT:F forward, B backward, · idle; a column is 0.333
// SVG:      text-anchor="end">comp</text>
// SVG-NEXT: text-anchor="end">comm</text>
// SVG-NEXT: <g stroke
// SVG-NEXT: <rect x="73.8" y="26" width="32" height="14" fill="url(#k0c0)"/>
// SVG-NEXT: <rect x="105.8" y="40" width="16" height="14" fill="url(#k0c0)"/>
// REPORT: "makespan": 15
