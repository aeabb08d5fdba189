// Counters are known while a rank is laid out, and not in functions.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

// CHECK:      only-on-rank.pp:[[#@LINE+4]]:18: error: `pending` is known only inside `on rank` [E0313]
// CHECK-NEXT:   [[#@LINE+3]] | fn room(n) = n - pending;
// CHECK-NEXT:     |                  ^~~~~~~
// CHECK-NEXT: note: counters change while the body of a rank is expanded; pass the value to the function as an argument
fn room(n) = n - pending;
schedule s() {
  // CHECK:      only-on-rank.pp:[[#@LINE+1]]:9: error: `issued` is known only inside `on rank` [E0313]
  ranks issued(F);
  // CHECK:      only-on-rank.pp:[[#@LINE+1]]:16: error: `padded` is known only inside `on rank` [E0313]
  microbatches padded;
  placement linear;
  on rank r { repeat padded - pending - issued(F) { F; B; } }
}
