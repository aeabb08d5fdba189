// What no check speaks about names its place.
// RUN: not ppcc prove %s | FileCheck %s
// CHECK: .. undecided {{.*}}prefetch.pp:[[#@LINE+3]]:19: prefetched receives are bounded
schedule ahead(P: int = 2, M: int = 4) {
  ranks P; microbatches M; placement linear;
  comm { prefetch 2; }
  on rank r { repeat M { F; } repeat M { B; } }
}
// RUN: not ppcc prove gpipe -D P=2 --prefetch=1 | FileCheck %s --check-prefix=OPTION
// OPTION: .. undecided {{.*}}--prefetch: prefetched receives are bounded
