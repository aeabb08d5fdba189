// Breadth first, with parameters that ranks share: each chunk gathers them once, and gradients are reduced behind it (arXiv 2211.05953).
import "looped_bfs.pp";
import "std.pp";

schedule looped_bfs_fsdp(P: int >= 1 = 4, M: int >= 1 = 8, V: int >= 1 = 2) {
  import looped_bfs(P, M, V);
  with fsdp;
  with reduce_grads;
}
