// Groups in which the backward comes first: the forward, on a stream of its own, reads what the first stream has received.
schedule backward_first(P: int = 2, M: int = 4) {
  ranks P;
  microbatches M;
  placement linear;
  on rank r {
    repeat P - r { F; }
    repeat M - P + r { overlap { B; F; } }
    repeat P - r { B; }
  }
}
