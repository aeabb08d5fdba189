// The transports to be safe under: the command line's, else the schedule's, else `stream`.
// RUN: ppcc gpipe --emit=ir | FileCheck %s --check-prefix=DEFAULT
// DEFAULT: "transports": ["stream"],{{$}}
// RUN: ppcc %s --emit=ir | FileCheck %s --check-prefix=SCHEDULE
// SCHEDULE: "transports": ["rendezvous", "buffered:2"],{{$}}
// RUN: ppcc %s --emit=ir --transport=stream,buffered:7 --transport=stream-per-edge | FileCheck %s --check-prefix=OPTION
// OPTION: "transports": ["stream", "buffered:7", "stream-per-edge"],{{$}}
// RUN: ppcc %s --transport=stream,buffered:7 | FileCheck %s --check-prefix=JSON
// JSON: "transports": ["stream", "buffered:7"],
// RUN: ppcc %s --comm-order=none | FileCheck %s --check-prefix=NONE
// NONE: "transports": [],
// RUN: not ppcc %s --comm-order=none --transport=stream 2>&1 | FileCheck %s --check-prefix=ASKED
// ASKED: error: no receive brings `0B0` the gradient of stage 1 from rank 1 [E0764]
// RUN: not ppcc gpipe --transport=stream,streem 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: ppcc: error: --transport: invalid value `streem`; expected one of buffered, buffered:k, rendezvous, stream, stream-per-peer, stream-per-edge, posted; did you mean `stream`?
// RUN: not ppcc gpipe --transport=buffered: 2>&1 | FileCheck %s --check-prefix=CAPACITY
// CAPACITY: ppcc: error: --transport: invalid value `buffered:`; expected one of {{.*}}; did you mean `buffered`?
// RUN: ppcc %s --check --time-passes 2>&1 | FileCheck %s --check-prefix=PASSES
// PASSES:      verify-comm
// PASSES:      inject-comm
// PASSES:      verify-comm
// PASSES-NEXT: verify-preconnect
// PASSES-NEXT: verify-matching
// PASSES-NEXT: verify-transport

schedule pair() {
  ranks 2;
  microbatches 1;
  placement linear;
  cluster { transport rendezvous, buffered:2; }
  on rank r { F; B; }
}
