// Blocks and actions are both statements: the second of a name is an error where it is declared.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:
// RUN: not ppcc %S/Inputs/block_R.pp --with=recompute 2>&1 | FileCheck %s --check-prefix=WITH
// RUN: ppcc %S/Inputs/block_R.pp --emit=actions | FileCheck %s --check-prefix=ALONE
// WITH: block_R.pp:1:7: error: `R` is defined twice [E0308]
// WITH: <library>/std.pp:{{.*}}: note: first defined here
// ALONE: rank 0: 0F0 0B0

action LOG { after F; }
// CHECK:      block-and-action.pp:[[#@LINE+2]]:7: error: `LOG` is defined twice [E0308]
// CHECK:      block-and-action.pp:[[#@LINE-2]]:8: note: first defined here
block LOG() { F; }
schedule s() {
  ranks 1; microbatches 1; placement linear;
  // CHECK:      block-and-action.pp:[[#@LINE+2]]:9: error: `LOG` is defined twice [E0308]
  // CHECK:      block-and-action.pp:[[#@LINE-7]]:8: note: first defined here
  block LOG() { F; }
  on rank r { F; B; }
}
