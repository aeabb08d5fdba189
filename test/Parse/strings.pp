// Escapes in strings, and one that there is not.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:
// RUN: not ppcc %s --emit=ast 2>&1 | FileCheck %s

// CHECK:      strings.pp:[[#@LINE+5]]:18: error: unknown escape `\q` in a string [E0207]
// CHECK-NEXT:   [[#@LINE+4]] |   require 1 < 2, "\q and \é";
// CHECK-NEXT:     |                  ^~~~~~~~~~
// CHECK-NEXT: note: the escapes are \\, \", \n and \t
schedule s() {
  require 1 < 2, "\q and \é";
// CHECK:      error: unknown escape `\é` in a string [E0207]
}
