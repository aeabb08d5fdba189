// Operators and comments of other languages, with those that are meant.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

schedule s() {
  // CHECK:      foreign-operators.pp:[[#@LINE+2]]:11: error: unexpected character `!` [E0201]
  // CHECK:      note: did you mean `not`?
  require !true;
  // CHECK:      foreign-operators.pp:[[#@LINE+2]]:16: error: unexpected character `&` [E0201]
  // CHECK:      note: did you mean `and`?
  require true && true;
  // CHECK:      foreign-operators.pp:[[#@LINE+2]]:16: error: unexpected character `|` [E0201]
  // CHECK:      note: did you mean `or`?
  require true || true;
  // CHECK:      foreign-operators.pp:[[#@LINE+2]]:13: error: unexpected character `−` [E0201]
  // CHECK:      note: did you mean `-`?
  require 2 − 1 == 1;
  // CHECK:      foreign-operators.pp:[[#@LINE+2]]:3: error: unexpected character `#` [E0201]
  // CHECK:      note: did you mean `//`?
  # a comment of Python's - and what stands in it { "
}
