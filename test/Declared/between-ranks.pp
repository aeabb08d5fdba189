// An action between two ranks stands in both lists, moves memory from one to the other, and is proven with the messages.
// RUN: ppcc %s --comm-order=none --emit=actions | FileCheck %s --check-prefix=ACTIONS
// RUN: ppcc %s --emit=report | FileCheck %s --check-prefix=REPORT
// RUN: ppcc %s --transport=buffered,rendezvous,stream,stream-per-peer,stream-per-edge --check
// RUN: ppcc %s --emit=ir -o %t.ir && FileCheck %s --check-prefix=IR < %t.ir
// RUN: ppcc %t.ir --passes=verify-transport --emit=ir | diff %t.ir -
// RUN: ppcc %s -o %t.json && FileCheck %s --check-prefix=JSON < %t.json
// RUN: ppcc %t.json --emit=ir | diff %t.ir -
// RUN: ppcc %s --rolled --emit=ir | ppcc --passes=unroll,verify-transport - --emit=ir | diff %t.ir -
// RUN: ppcc %s --emit=timeline | FileCheck %s --check-prefix=TIMELINE
// RUN: ppcc %s --emit=svg -o - | FileCheck %s --check-prefix=SVG
action EVICT { to rank ranks - 1 - r for rank r; lane peer; after F; cost 0.5; memory -1; }
action LOAD  { from rank ranks - 1 - r for rank r; lane peer; after EVICT; before B; cost 0.5; memory 1; }

schedule between(M: int = 3) {
  ranks 3; microbatches M; placement linear;
  on rank r {
    repeat M { F; if r == 0 { EVICT; } }
    repeat M { if r == 0 { LOAD; } B; }
  }
}
// ACTIONS:      rank 0: 0F0 0EVICT0>2 0F1 0EVICT1>2 0F2 0EVICT2>2 0LOAD0<2 0B0 0LOAD1<2 0B1 0LOAD2<2 0B2
// ACTIONS-NEXT: rank 1: 1F0 1F1 1F2 1B0 1B1 1B2
// ACTIONS-NEXT: rank 2: 0EVICT0>2 0EVICT1>2 2F0 0EVICT2>2 0LOAD0<2 2F1 2F2 2B0 2B1 2B2 0LOAD1<2 0LOAD2<2
// Rank 0 never holds more than what computes and what is on its way; rank 2 holds the rest beside its own.
// REPORT: rank busy span idle activations memory at action at the end
// REPORT: 0 9 16 7 3 2 1 0F1 0
// REPORT: 1 9 12 3 3 3 3 1F2 0
// REPORT: 2 9 9 0 3 5 3 2F1 0
// IR: "preconnect": {{.}}[0,1], [0,2], [1,2]],
// IR: {"mnemonic": "EVICT", "class": "declared", "per": "microbatch", "lane": "peer", "after": {{.}}["F"]], "before": [], "collective": "to"}
// IR: {"mnemonic": "LOAD", "class": "declared", "per": "microbatch", "lane": "peer", "after": {{.}}["EVICT"]], "before": {{.}}["B"]], "collective": "from"}
// JSON: "collective": "to"}, {"mnemonic": "LOAD",
// TIMELINE: EV EVICT on peer
// SVG: EVICT on peer

// What the other end says must fit.
// RUN: sed '/^rank 2/,$s/0EVICT0>2@2 0EVICT1>2/0EVICT1>2@2 0EVICT0>2/' %t.ir | not ppcc --passes=verify-collectives - --emit=ir 2>&1 | FileCheck %s --check-prefix=ORDER
// ORDER: between-ranks.pp:18:31: error: ranks 0 and 2 meet in different orders [E0685]
// RUN: sed '/^rank 2/,$s/0EVICT0>2@2 0EVICT1>2/0EVICT0>2/' %t.ir | not ppcc --passes=verify-collectives - --emit=ir 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: error: rank 2 does not join `0EVICT1>2` [E0683]
// RUN: sed '/^rank 2/,$s/0EVICT0>2@2 0EVICT1>2/0EVICT0>2/; /^rank 1/,/^rank 2/s/1RECV_F0/0EVICT1>2@2 &/' %t.ir | not ppcc --passes=verify-placement - --emit=ir 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: error: rank 1 runs `0EVICT1>2`, but stage 0 is on rank 0 [E0711]
// RUN: sed 's/0EVICT0>2/0EVICT0/' %t.ir | not ppcc --passes=verify-placement - --emit=ir 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: `0EVICT0` has no peer stage [E0607]
// RUN: sed 's/"collective": "to"/"collective": "up"/' %t.json > %t.up.json && not ppcc %t.up.json --check 2>&1 | FileCheck %s --check-prefix=UP
// UP: error: `collective` must be "all", "replicas", "to", "from", "outside NAME" or a list of stages [E0671]
// RUN: sed 's/\[8,0,0,0,2,/[8,0,0,0,-1,/' %t.json > %t.peer.json && not ppcc %t.peer.json --check 2>&1 | FileCheck %s --check-prefix=PEER
// PEER: error: `peer` must be a stage for a send or receive [E0671]
