// Rank 0 keeps nothing: it moves each activation to rank 1, and gets it back before the backward.
action EVICT { to rank ranks - 1 - r for rank r; lane peer; after F; cost 0.25; memory -1; }
action LOAD  { from rank ranks - 1 - r for rank r; lane peer; after EVICT; before B; cost 0.25; memory 1; }

schedule moved(M: int >= 1 = 64) {
  ranks 2; microbatches M; placement linear;
  on rank r {
    let w = 1 - r;
    repeat w { F; if r == 0 { EVICT(mb: issued(F) - 1); } }
    repeat M - w {
      if r == 0 { LOAD(mb: issued(LOAD)); }
      F;
      if r == 0 { EVICT(mb: issued(F) - 1); }
      B;
    }
    repeat w { if r == 0 { LOAD(mb: issued(LOAD)); } B; }
  }
}
