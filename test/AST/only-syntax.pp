// --emit=ast shows what was parsed, whether or not it means something.
// RUN: ppcc %s --emit=ast -o %t && FileCheck %s < %t
// RUN: not ppcc %s --check 2>&1 | FileCheck %s --check-prefix=CHECKED

// CHECK: Action no_such_block
// CHECKED: error: `no_such_block` is neither an action nor a block [E0303]
block b() { no_such_block; }
