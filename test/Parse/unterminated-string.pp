// A string ends on the line on which it begins.
// RUN: not ppcc %s 2>&1 | FileCheck %s

schedule s() {
  // CHECK:      unterminated-string.pp:[[#@LINE+4]]:18: error: unterminated string [E0202]
  // CHECK-NEXT:   [[#@LINE+3]] |   require 1 < 2, "one is less;
  // CHECK-NEXT:     |                  ^~~~~~~~~~~~~
  // CHECK-NEXT: note: close it with `"` on the same line
  require 1 < 2, "one is less;
  ranks 1;
}
