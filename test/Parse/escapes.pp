// What stands in a string.
// RUN: ppcc %s --emit=ast | FileCheck %s

schedule s() {
  // CHECK: Require true "a \"quote\", a \\ and a\ttab\nend"
  require true, "a \"quote\", a \\ and a	tab\nend";
  // CHECK-NEXT: Require true "// no comment; \303\274"
  require true, "// no comment; ü";
}
