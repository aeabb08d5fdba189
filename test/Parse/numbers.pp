// Literals that no value can hold.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

schedule s(
    big: int = 9223372036854775807,
    // CHECK:      numbers.pp:[[#@LINE+4]]:20: error: `9223372036854775808` does not fit in 64 bits [E0206]
    // CHECK-NEXT:   [[#@LINE+3]] |     too_big: int = 9223372036854775808,
    // CHECK-NEXT:     |                    ^~~~~~~~~~~~~~~~~~~
    // CHECK-NEXT: note: integers are between -2^63 and 2^63 - 1, floats below 1.8e308 and of at most 1000 characters
    too_big: int = 9223372036854775808,
    large: float = 1.5e308,
    // CHECK:      numbers.pp:[[#@LINE+1]]:24: error: `1e999` does not fit in 64 bits [E0206]
    too_large: float = 1e999) {
}
