// What FSDP does is placed by running the program, so one that cannot run is refused even when nobody verified it.
// RUN: not ppcc %s --passes=verify-placement --emit=torch-csv --torch-fsdp 2>&1 | FileCheck %s
schedule stuck() {
  ranks 1;
  microbatches 1;
  placement loop(2);
  on rank r { F(1); F(0); B(1); B(0); }
}
// CHECK: stuck: error: the program does not finish by data alone [E1009]
