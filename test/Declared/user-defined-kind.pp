// A kind that nobody has thought of goes through everything that ppcc does, from this file alone.
// RUN: ppcc %s --emit=actions | FileCheck %s --check-prefix=CELLS
// RUN: ppcc %s --emit=ir -o %t.ir
// RUN: FileCheck %s --check-prefix=IR < %t.ir
// RUN: ppcc %t.ir --passes=verify-transport --emit=ir | diff %t.ir -
// RUN: ppcc %t.ir --passes=verify,verify-transport --emit=ir > /dev/null
// RUN: ppcc %s -o %t.json
// RUN: FileCheck %s --check-prefix=JSON < %t.json
// RUN: ppcc %t.json --emit=ir | diff %t.ir -
// RUN: ppcc diff %s %t.json | FileCheck %s --check-prefix=SAME
// RUN: ppcc %s --emit=cpp | FileCheck %s --check-prefix=CPP
// RUN: ppcc %s --emit=times | FileCheck %s --check-prefix=TIMES
// RUN: ppcc %s --emit=timeline | FileCheck %s --check-prefix=LINE
// RUN: ppcc %s --emit=trace | FileCheck %s --check-prefix=TRACE
// RUN: ppcc %s --emit=report | FileCheck %s --check-prefix=REPORT
// RUN: ppcc %s --emit=svg | FileCheck %s --check-prefix=DRAWN
// RUN: ppcc %s --emit=html | FileCheck %s --check-prefix=PAGE


// CELLS:      rank 0: 0F0 0SEND_F0 0FINGERPRINT0 0F1 0SEND_F1 0FINGERPRINT1 0COMPARE VOTE 0RECV_B0 0RECV_B1 0B0 0B1
// CELLS-NEXT: rank 1: 1RECV_F0 1RECV_F1 1F0 1FINGERPRINT0 1F1 1FINGERPRINT1 1COMPARE VOTE 1B0 1SEND_B0 1B1 1SEND_B1

// IR: "cost": {"FINGERPRINT": 3,
// IR: {"mnemonic": "FINGERPRINT", "class": "declared", "per": "microbatch", "lane": "disk", "after": {{.}}["F"]], "before": {{.}}["B"]], "required": true}
// IR: {"mnemonic": "COMPARE", "class": "declared", "per": "stage", "lane": "compute", "after": {{.}}["FINGERPRINT"]], "before": []}
// IR: {"mnemonic": "VOTE", "class": "declared", "per": "rank", "lane": "compute", "after": {{.}}["COMPARE"]], "before": [], "required": true, "collective": "all"}
// IR: 0FINGERPRINT1@{{[0-9]+}} 0COMPARE@{{[0-9]+}} VOTE@

// JSON: {"mnemonic": "FINGERPRINT", "class": "declared", "per": "microbatch", "lane": "disk", "after": {{\[\[}}"F"]], "before": {{\[\[}}"B"]], "required": true}
// JSON: {"mnemonic": "VOTE", "class": "declared", "per": "rank", "lane": "compute", "after": {{\[\[}}"COMPARE"]], "before": [], "required": true, "collective": "all"}
// JSON: [9,0,0,-1,-1,0,-1,3],[10,0,0,-1,-1,0,-1,4]

// SAME: equal: 16 actions and 4 messages on 2 ranks

// CPP: {"VOTE", KindClass::Declared, 0, 0, 0, Collective::All},
// CPP: // 0COMPARE
// CPP: // VOTE

// The disk runs beside; the comparison waits for it, and rank 0 votes when rank 1 comes to it.
// TIMES: 0,0FINGERPRINT0,,1,4
// TIMES: 0,0F1,,1,2
// TIMES: 0,0FINGERPRINT1,,4,7
// TIMES: 0,0COMPARE,,7,9
// TIMES: 0,VOTE,,9,11
// TIMES: 1,VOTE,,10,11

// LINE: rank 0 {{.*}}CO{{.*}}VO
// LINE: disk {{.*}}FI0{{.*}}FI1
// LINE: FI FINGERPRINT on disk, CO COMPARE on compute, VO VOTE on compute

// TRACE: "name":"thread_name","args":{"name":"disk"}
// TRACE: "ts":1000,"dur":3000,"name":"0FINGERPRINT0","cat":"FINGERPRINT"

// DRAWN: >disk</text>
// DRAWN: >CO<
// DRAWN: >VO<
// DRAWN: >FI FINGERPRINT on disk</text>
// PAGE: {"mnemonic": "FINGERPRINT", "label": "FI", "hatch": {{[0-9]}}, "words": "on disk", "class": "beside"

// The disk's work is no work of the rank.
// REPORT: 0 9 17 8
// REPORT: 1 9 14 5

// Fingerprints of activations go to the disk beside the computation; the rank's are compared at the end.
action FINGERPRINT { lane disk; after F; before B; cost 3; memory 0.5; required; }
action COMPARE { per stage; after FINGERPRINT; cost 2; }
action VOTE { per rank; after COMPARE; collective all; cost 1; required; }

schedule invented(M: int = 2) {
  ranks 2; microbatches M; placement linear;
  on rank r {
    repeat M { F; FINGERPRINT; }
    COMPARE;
    VOTE;
    repeat M { B; }
  }
}
