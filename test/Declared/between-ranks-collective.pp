// What moves between two ranks and what all do together share a lane, in one order on all ranks.
// RUN: ppcc %s --check && ppcc %s --cost F=0 --check && ppcc %s --comm-order=sweep --transport=rendezvous --check
action EVICT { to rank ranks - 1 - r for rank r; lane peer; after F; cost 1; }
action SYNC  { per rank; lane peer; collective all; }
schedule s(P: int = 4, M: int = 3) {
  ranks P; microbatches M; placement linear;
  insert EVICT after F for rank r when r < 2;
  on rank r {
    if r > 1 { SYNC; }
    repeat M { F; }
    if r < 2 { SYNC; }
    repeat M { B; }
  }
}
