// A rank goes on once no more of a kind are on their way than its cap: memory is bounded, and the copies take their time.
// RUN: ppcc %s:capped --emit=timeline --width=60 | FileCheck %s --check-prefix=CAPPED
// RUN: ppcc %s:capped --emit=report | FileCheck %s --check-prefix=CAPPED-MEMORY
// RUN: ppcc %s:free --emit=report | FileCheck %s --check-prefix=FREE-MEMORY
// RUN: ppcc %s:capped --emit=ir -o %t.ir
// RUN: FileCheck %s --check-prefix=IR < %t.ir
// RUN: ppcc %t.ir --passes=verify-transport --emit=ir | diff %t.ir -
// RUN: ppcc %s:capped -o %t.json
// RUN: ppcc %t.json --emit=ir | diff %t.ir -
action CAPPED { lane d2h; after F; cost 3; memory -1; in_flight 1; }
action FREE   { lane d2h; after F; cost 3; memory -1; }

// The third forward begins when the first copy has ended, the backwards when the third has.
// CAPPED: rank 0 │F─F─····F─····F─····B
// CAPPED:   d2h  │··CA────CA────CA────CA────
// CAPPED-MEMORY: rank busy span idle activations memory at
// CAPPED-MEMORY-NEXT: 0 12 18 6 4 2 1
// CAPPED-MEMORY: 6 100.00 % actions on other lanes
// CAPPED-MEMORY: critical path: 18 of actions, 0 of messages
// FREE-MEMORY: 0 12 12 0 4 4 3
// IR: {"mnemonic": "CAPPED", "class": "declared", "per": "microbatch", "lane": "d2h", "after": {{.}}["F"]], "before": [], "in_flight": 1}
schedule capped(M: int = 4) {
  ranks 1; microbatches M; placement linear;
  on rank r { repeat M { F; CAPPED; } repeat M { B; } }
}
schedule free(M: int = 4) {
  ranks 1; microbatches M; placement linear;
  on rank r { repeat M { F; FREE; } repeat M { B; } }
}
