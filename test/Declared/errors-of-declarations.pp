// RUN: not ppcc %s 2>&1 | FileCheck %s
action A1 { }
// CHECK: errors-of-declarations.pp:[[#@LINE-1]]:8: error: `A1` is not a valid name for an action [E0332]
action F { }
// CHECK: :[[#@LINE-1]]:8: error: `F` is an action and cannot be redefined [E0309]
action TWICE { }
action TWICE { }
// CHECK: :[[#@LINE-1]]:8: error: `TWICE` is defined twice [E0308]
action PROPERTIES {
  lan compute;
// CHECK: :[[#@LINE-1]]:3: error: an action has no property `lan`; did you mean `lane`? [E0330]
  lane 3;
// CHECK: :[[#@LINE-1]]:3: error: `lane` takes the name of a lane [E0331]
  per chunk;
// CHECK: :[[#@LINE-1]]:3: error: `per` takes `microbatch`, `stage` or `rank` [E0331]
  per stage;
// CHECK: :[[#@LINE-1]]:3: error: a second `per` [E0317]
  after;
// CHECK: :[[#@LINE-1]]:3: error: `after` takes the names of actions [E0331]
  before TWIC;
// CHECK: :[[#@LINE-1]]:10: error: unknown action `TWIC`; did you mean `TWICE`? [E0334]
  cost;
// CHECK: :[[#@LINE-1]]:3: error: `cost` takes a number [E0331]
  memory true;
// CHECK: :[[#@LINE-1]]:10: error: a number of an action must be float, but this is bool [E0310]
  required 1;
// CHECK: :[[#@LINE-1]]:3: error: `required` takes no value [E0331]
  in_flight 0;
// CHECK: :[[#@LINE-1]]:3: error: `in_flight` takes a number from 1 [E0331]
  collective stages(1.5);
// CHECK: :[[#@LINE-1]]:3: error: `collective` takes `all`, `replicas`, stages as in `stages(0, -1)`, or the name of a group of ranks outside of the program [E0331]
}
action NO_TIME { lane none; cost 1; }
// CHECK: :[[#@LINE-1]]:34: error: an action on lane `none` cannot have a cost [E0340]
action MEETS { per microbatch; collective all; }
// CHECK: :[[#@LINE-1]]:32: error: actions of a microbatch cannot have `collective all` [E0339]
action MEETS_TOO { per rank; collective replicas; }
// CHECK: :[[#@LINE-1]]:30: error: actions of a rank cannot have `collective replicas` [E0339]
action OF_RANK { per rank; }
action OF_STAGE { per stage; }

rule bad(a: int, b: int = true) {
// CHECK: :[[#@LINE-1]]:27: error: the default value must be int, but this is bool [E0310]
  insert F after F;
// CHECK: :[[#@LINE-1]]:10: error: expected a declared action, not `F` [E0337]
  insert TWICE behind F;
// CHECK: :[[#@LINE-1]]:16: error: expected `before` or `after`, not `behind` [E0337]
  insert TWICE after SEND_F;
// CHECK: :[[#@LINE-1]]:22: error: `SEND_F` is a message, and messages are placed later [E0338]
  insert TWICE after OF_STAGE;
// CHECK: :[[#@LINE-1]]:22: error: expected an action of a microbatch, not `OF_STAGE` [E0337]
  insert TWICE after F of 2;
// CHECK: :[[#@LINE-1]]:24: error: expected `by`, `for`, `when` or `;`, not `of` [E0337]
  insert TWICE after F for chunk c;
// CHECK: :[[#@LINE-1]]:28: error: expected `microbatch`, `stage`, `rank` or an action, not `chunk` [E0337]
  insert TWICE after F when 1;
// CHECK: :[[#@LINE-1]]:29: error: the condition of `insert` must be bool, but this is int [E0310]
}
rule bad() { }
// CHECK: :[[#@LINE-1]]:6: error: `bad` is defined twice [E0308]

schedule s() {
  ranks 1; microbatches 1; placement linear;
  with unknown;
// CHECK: :[[#@LINE-1]]:8: error: unknown rule `unknown` [E0336]
  with bad;
// CHECK: :[[#@LINE-1]]:8: error: `bad` takes 2 arguments, but 0 are given [E0312]
  with bad(1, 2, 3);
// CHECK: :[[#@LINE-1]]:8: error: `bad` takes 2 arguments, but 3 are given [E0312]
  with bad(1, c: 2);
// CHECK: :[[#@LINE-1]]:15: error: unknown label `c`{{.*}} [E0307]
  with bad(1, a: 2);
// CHECK: :[[#@LINE-1]]:18: error: a second value for `a` [E0317]
  with bad(true);
// CHECK: :[[#@LINE-1]]:12: error: this argument must be int, but this is bool [E0310]
  on rank r {
    F; B;
    OF_RANK(0);
// CHECK: :[[#@LINE-1]]:13: error: `OF_RANK` runs once per rank and takes no chunk [E0335]
    OF_STAGE(0, mb: 0);
// CHECK: :[[#@LINE-1]]:21: error: `OF_STAGE` runs once per stage and takes no microbatch [E0335]
  }
}
