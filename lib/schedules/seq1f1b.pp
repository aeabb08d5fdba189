// 1F1B on slices of sequences: forwards take the slices of a sequence in order, backwards in reverse (Seq1F1B,
// arXiv 2406.03488).
schedule seq1f1b(P: int >= 1 = 4, M: int >= 1 = 4, n: int >= 1 = 2, forward_only: bool = false) {
  ranks P;
  microbatches M * n;
  slices n;
  placement linear;
  backward when not forward_only;

  on rank r {
    let total = M * n;
    // The last slice of a sequence goes back first: the last rank begins once it has all n of them.
    let w = forward_only ? total : min(P - 1 - r + n - 1, total);
    phase warmup   { repeat w         { F; } }
    phase steady   { repeat total - w { F; B; } }
    phase cooldown { repeat w { B; } }
  }
}
