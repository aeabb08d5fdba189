// A float is printed as the shortest literal that is the same float.
// RUN: ppcc %s --emit=ast | FileCheck %s

schedule s() {
  // CHECK: Let a = 2.0 + 0.1234567890123
  let a = 2.0 + 0.1234567890123;
  // CHECK: Let b = 1e+300 * 1e-07
  let b = 1e300 * 1E-7;
  // CHECK: Let c = 0.3
  let c = 0.30000000000000000001;
}
