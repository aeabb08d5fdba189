// Breadth first with shared parameters (arXiv 2211.05953).

// A chunk runs all microbatches in a row, so its parameters are gathered once for its forwards and once for its backwards,
// while the chunk before it computes, and its gradients are reduced once.
import "std.pp";

schedule breadth_first_fsdp(P: int >= 1 = 4, M: int >= 1 = 8, V: int >= 1 = 2) {
  ranks P;
  microbatches M;
  placement loop(V);

  on rank r {
    phase warmup {
      UNSHARD(0);
      for c in 0 .. V {
        if c + 1 < V { UNSHARD(c + 1); }
        repeat M { F(c); }
        if c + 1 < V { RESHARD_F(c); }
      }
    }
    phase cooldown {
      for i in 0 .. V {
        let c = V - 1 - i;
        if c > 0 { UNSHARD_B(c - 1); }
        for m in 0 .. M { B(c, mb: M - 1 - m); }
        RESHARD(c);
        REDUCE_GRAD(c);
      }
    }
  }
}
