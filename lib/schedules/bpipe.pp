// 1F1B that balances its memory between pairs of ranks (BPipe, Kim et al., ICML 2023).

// In 1F1B rank r keeps P - r activations, so the first ranks keep many and the last few. Here rank r moves those above the balance
// to rank P - 1 - r after their forward, and gets each back before its backward: no rank keeps more than (P + 3) / 2.
action EVICT { to rank ranks - 1 - r for rank r; lane peer; after F; cost 0.25; memory -1; }
action LOAD  { from rank ranks - 1 - r for rank r; lane peer; after EVICT; before B; cost 0.25; memory 1; }

schedule bpipe(P: int >= 1 = 4, M: int >= 1 = 8) {
  ranks P; microbatches M; placement linear;
  let kept = (P - 1) / 2; // these first forwards stay; with them, one comes in while another one goes out

  block forward(evicts: bool) {
    F;
    if evicts and issued(F) > kept { EVICT(mb: issued(F) - 1); }
  }
  block load() {
    if issued(LOAD) < issued(EVICT) { LOAD(mb: kept + issued(LOAD)); }
  }

  on rank r {
    let evicts = P - r > (P + 3) / 2;
    let w = min(P - 1 - r, M);
    phase warmup   { repeat w     { forward(evicts); } }
    phase steady   { repeat M - w { load(); forward(evicts); B; } }
    phase cooldown { repeat w     { load(); B; } }
  }
}
