// Breadth first: each chunk runs all microbatches before the next chunk (arXiv 2211.05953).
schedule looped_bfs(P: int >= 1 = 4, M: int >= 1 = 8, V: int >= 1 = 2, forward_only: bool = false) {
  ranks P;
  microbatches M;
  placement loop(V);
  backward when not forward_only;

  on rank r {
    phase warmup   { for c in 0 .. V { repeat M { F(c); } } }
    phase cooldown { for c in 0 .. V { for i in 0 .. M { B(V - 1 - c, mb: M - 1 - i); } } }
  }
}
