// How tightly operators bind: only parentheses that change something are kept.
// RUN: ppcc %s --emit=ast | FileCheck %s

schedule s() {
  // CHECK: Let a = 1 + 2 * 3 - 4
  let a = 1 + (2 * 3) - 4;
  // CHECK: Let b = (1 + 2) * (3 - (4 - 5))
  let b = (1 + 2) * (3 - (4 - 5));
  // CHECK: Let c = 8 / 4 / 2 % 3
  let c = ((8 / 4) / 2) % 3;
  // CHECK: Let d = 8 / (4 / 2)
  let d = 8 / (4 / 2);
  // CHECK: Let e = -a * -(b + 1)
  let e = (-a) * -(b + 1);
  // CHECK: Let f = not a == b and c < d or not (true or false)
  let f = (not (a == b) and (c < d)) or not (true or false);
  // CHECK: Let g = a < b ? 1 : c < d ? 2 : 3
  let g = a < b ? 1 : (c < d ? 2 : 3);
  // CHECK: Let h = (f ? f : f) ? 1 : 2
  let h = (f ? f : f) ? 1 : 2;
  // CHECK: Let i = a <= b == (c >= d)
  let i = (a <= b) == (c >= d);
  // CHECK: Let j = (a and b) == c or d
  let j = (a and b) == c or d;
  // CHECK: Let k = min(a + 1, max(b, -c), 2)
  let k = min((a + 1), max(b, -c), 2);
}
