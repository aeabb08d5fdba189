// Rules insert nothing into forward-only programs that follows or precedes only what such programs lack.
// RUN: ppcc one_f_one_b -D forward_only=true --with offload --check
// RUN: ppcc one_f_one_b -D forward_only=true --with recompute --with release --with step --check
// RUN: ppcc %s --comm-order=none --emit=actions | FileCheck %s --match-full-lines
// RUN: sed 's/backward when false;//; s/repeat M { F; }/repeat M { F; } repeat M { B; }/; s/^\(  insert .*\) after F/\1 after B/; s/BEHIND after B/BEHIND after SENT/' %s >%t.pp
// RUN: ppcc %t.pp --comm-order=none --emit=actions | FileCheck %s --check-prefix=BOTH --match-full-lines
action SENT { lane none; after SEND_B; }
action LOG { lane none; after F, B; }
action BEHIND { lane none; after SENT; }
schedule s(M: int = 2) {
  ranks 2; microbatches M; placement linear; backward when false;
  insert SENT after F;
  insert BEHIND after F;
  insert LOG after F;
  // CHECK:     rank 0: 0F0 0LOG0 0F1 0LOG1
  // CHECK:     rank 1: 1F0 1LOG0 1F1 1LOG1
  // BOTH:      rank 1: 1F0 {{.*}}1SENT0{{.*}}
  on rank r { repeat M { F; } }
}
