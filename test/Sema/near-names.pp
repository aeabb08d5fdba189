// A lane, or a group of ranks, may have any name; one that is nearly a word of the language is probably that word.
// RUN: ppcc check %s 2>&1 | FileCheck %s --implicit-check-not=warning
// CHECK: near-names.pp:[[#@LINE+1]]:32: warning: this is a lane of its own, called `compue`; did you mean `compute`? [E0355]
action SCALE { per stage; lane compue; after B; cost 1; }
// CHECK: near-names.pp:[[#@LINE+1]]:64: warning: this is a group of ranks of its own, called `replica`; did you mean `replicas`? [E0355]
action REDUCE { per stage; lane comm2; after SCALE; collective replica; }
action GATHER { per stage; lane d2h; after F; collective expert_parallel; }
schedule s() {
  ranks 2;
  microbatches 1;
  placement linear;
  on rank r { F; GATHER; B; SCALE; REDUCE; }
}
