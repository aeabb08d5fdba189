// What else happens in a training step, and where: actions, and rules that place them in any schedule. Import this file, or
// name a rule on the command line, as in `--with='recompute(2, 1)'`. Costs and amounts are in units of a forward, and of
// what it keeps; `model` and `--cost` say others.

// The backward's activations are computed again, and the forward keeps none.
action R { lane compute; after F; before B, I; cost 1; memory 1; restores F; }

// An output, once it has been sent; an input, once nothing reads it any more.
action RELEASE_OUT { lane none; after SEND_F; }
action RELEASE_IN  { lane none; after B, W; }

// Activations move to the host and back, two at a time each way.
action OFFLOAD { lane d2h; after F; before RELOAD; cost 0.5; memory -1; in_flight 2; }
action RELOAD  { lane h2d; after OFFLOAD; before B, I; cost 0.5; memory 1; in_flight 2; }

// Parameters that ranks share are gathered before their use, and freed after it.
action UNSHARD { per stage; lane gather; before F; collective data_parallel; }
action RESHARD { per stage; lane none; after B, W; }

// Between the forwards of a stage and its backwards, where those of all microbatches stand together, they are given up too.
action RESHARD_F { per stage; lane none; after F; before UNSHARD_B; }
action UNSHARD_B { per stage; lane gather; after RESHARD_F; before B, I; collective data_parallel; }

// Gradients are summed with those of other copies of the pipeline; those of the embedding, which the first and the last
// stage share, between the two; those of a stage that several pipes have, between its hosts. Each has a lane of its own: in
// the queue of the messages a reduction would hold up those that its other members wait for.
action REDUCE_GRAD      { per stage; lane reduce; after B, W; required; collective data_parallel; cost 0.5; }
action REDUCE_EMBEDDING { per stage; lane reduce_embedding; after B, W; collective stages(0, -1); cost 0.5; }
action REDUCE_REPLICAS  { per stage; lane reduce_replicas; after B, W; required; collective replicas; cost 0.5; }

// The optimizer; and the check after it, by all ranks, of what it assumed.
action STEP     { per rank; lane compute; after B, W, REDUCE_GRAD, REDUCE_EMBEDDING, REDUCE_REPLICAS; required; cost 0.5; }
action VALIDATE { per rank; lane compute; after STEP; required; collective all; }

// Of the forwards of a rank, in windows of window + 1, the first n keep what they computed.
rule recompute(window: int = 0, n: int = 0) {
  insert R before B, I for F k when k % (window + 1) >= n;
}

rule release() {
  insert RELEASE_OUT after F;
  insert RELEASE_IN after B, W;
}

// Each reload begins `margin` actions before its backward.
rule offload(margin: int = 1) {
  insert OFFLOAD after F;
  insert RELOAD before B, I by margin;
}

// Rank r reduces r * shift actions after the last backward of a stage, so that ranks which end one after another begin
// together.
rule reduce_grads(shift: int = 0) {
  insert REDUCE_GRAD after B, W by shift * r for rank r;
}

// Behind all backwards of a rank: stages of opposite pipes end in opposite orders at the two ends.
rule reduce_embedding() { insert REDUCE_EMBEDDING after B, W per rank; }
rule reduce_replicas()  { insert REDUCE_REPLICAS after B, W; }

rule step(validate: bool = false) {
  insert STEP after B, W, REDUCE_GRAD, REDUCE_EMBEDDING, REDUCE_REPLICAS;
  insert VALIDATE after STEP when validate;
}

rule fsdp() {
  insert UNSHARD before F;
  insert RESHARD after B, W;
}
