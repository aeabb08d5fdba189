// Letters above numbers where labels do not fit in one line; each member of a group has a line.
// RUN: ppcc %s --emit=timeline --width=20 | FileCheck %s --match-full-lines --strict-whitespace
// RUN: env LC_ALL= LC_CTYPE= LANG=de_DE.utf8 ppcc %s --emit=timeline --width=20 | FileCheck %s --match-full-lines --strict-whitespace
// RUN: env LC_ALL=C ppcc %s --emit=timeline --width=20 | FileCheck %s --check-prefix=ASCII --match-full-lines --strict-whitespace
// RUN: env LC_ALL= LC_CTYPE= LANG= ppcc %s --emit=timeline --width=20 | FileCheck %s --check-prefix=ASCII --match-full-lines --strict-whitespace
// RUN: ppcc %s --emit=timeline --width=60 | FileCheck %s --check-prefix=WIDE --match-full-lines --strict-whitespace
schedule pair() {
  ranks 2;
  microbatches 2;
  placement linear;
  on rank r {
    if r == 0 { F; F; B; B; }
    else { F; overlap { F; B; } B; }
  }
}
//      CHECK:pair: makespan 9 on stream
// CHECK-NEXT:rank 0 │FF···B─B─
// CHECK-NEXT:       │01···0 1 
// CHECK-NEXT:rank 1 │·FF1─B─··
// CHECK-NEXT:       │·0B0─1 ··
// CHECK-NEXT:       ┬────┬────
// CHECK-NEXT:       0    5
// CHECK-NEXT:F forward, B backward, · idle; a column is 1
//      ASCII:pair: makespan 9 on stream
// ASCII-NEXT:rank 0 |FF...B-B-
// ASCII-NEXT:       |01...0 1 
// ASCII-NEXT:rank 1 |.FF1-B-..
// ASCII-NEXT:       |.0B0-1 ..
// ASCII-NEXT:       +----+----
// ASCII-NEXT:       0    5
// ASCII-NEXT:F forward, B backward, . idle; a column is 1
//      WIDE:pair: makespan 9 on stream
// WIDE-NEXT:rank 0 │F0─F1─·········B0────B1────
// WIDE-NEXT:       │      ·········            
// WIDE-NEXT:rank 1 │···F0─F1───────B1────······
// WIDE-NEXT:       │···   B0───────      ······
// WIDE-NEXT:       ┬──────────────┬────────────
// WIDE-NEXT:       0              5
// WIDE-NEXT:F forward, B backward, · idle; a column is 0.333
