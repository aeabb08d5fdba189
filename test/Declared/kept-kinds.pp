// A program keeps the actions that it runs, and those that they name; no others.
// RUN: ppcc %s --emit=ir | FileCheck %s --implicit-check-not=mnemonic
// CHECK:      "mnemonic": "X"
// CHECK-NEXT: "mnemonic": "Y"
// CHECK-NEXT: {"mnemonic": "A", "class": "declared", "per": "microbatch", "lane": "compute", "after": {{.}}["F", "X"]], "before": []}
// CHECK-NEXT: {"mnemonic": "C", "class": "declared", "per": "microbatch", "lane": "compute", "after": {{.}}["F", "Y"]], "before": []}
action X { }
action Y { }
action UNUSED { after X; }
action A { after F, X; }
action C { after F, Y; }
schedule s() { ranks 1; microbatches 1; placement linear; backward when false; on rank r { F; A; C; } }
