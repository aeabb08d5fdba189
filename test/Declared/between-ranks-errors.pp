// RUN: not ppcc %s 2>&1 | FileCheck %s
action NO_RANK { to 3; }
// CHECK: between-ranks-errors.pp:[[#@LINE-1]]:18: error: `to` takes `rank` and an expression, as in `rank ranks - 1 - r for rank r` [E0331]
action NO_EXPR { to rank; }
// CHECK: :[[#@LINE-1]]:18: error: `to` takes `rank` and an expression
action STAGE { from stage 1; }
// CHECK: :[[#@LINE-1]]:16: error: `from` takes `rank` and an expression
action TYPED { to rank r > 0 for rank r; }
// CHECK: :[[#@LINE-1]]:24: error: a rank must be int, but this is bool [E0310]
action UNKNOWN { to rank r + q for rank r; }
// CHECK: :[[#@LINE-1]]:30: error: unknown name `q` [E0301]
action BOTH { to rank 0; from rank 1; }
// CHECK: :[[#@LINE-1]]:26: error: a second `from` [E0317]
// CHECK: :[[#@LINE-2]]:15: note: the first is here
action MEETS { to rank 0; collective all; }
// CHECK: :[[#@LINE-1]]:27: error: a second `collective` [E0317]
action OF_RANK { per rank; to rank 0; }
// CHECK: :[[#@LINE-1]]:28: error: actions of a rank cannot have `collective to` [E0339]
action OLD { to rank ranks - 1 - r; }
// CHECK: :[[#@LINE-1]]:22: error: missing name for the rank [E0329]
// CHECK: :[[#@LINE-2]]:14: note: did you mean `to rank ranks - 1 - r for rank r`?
action LOG { after F for rank r; }
// CHECK: :[[#@LINE-1]]:31: error: unexpected `for rank`, expected `;`
schedule any() { ranks 2; microbatches 1; placement linear; on rank r { F; B; } }
