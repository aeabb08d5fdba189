// A run of characters that the language does not have is one error.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

schedule s() {
  // CHECK:      unknown-character.pp:[[#@LINE+4]]:9: error: unexpected character `$` [E0201]
  // CHECK-NEXT:   [[#@LINE+3]] |   ranks $$ 2;
  // CHECK-NEXT:     |         ^
  // CHECK-NEXT: note: strings are in double quotes, comments begin with `//`
  ranks $$ 2;
  // CHECK:      unknown-character.pp:[[#@LINE+1]]:13: error: unexpected character `é` [E0201]
  placement é linear;
  microbatches 2;
  on rank r { repeat 2 { F; B; } }
}
