// A V of two chunks a rank with a third of 1F1B's memory (V-Min, arXiv 2405.15362).

// Each action that is due in its slot: one of a kind of each chunk in six, from the given slot; W's in those that are left.
block by_slots(slots, M, f0, f1, i1, i0) {
  for t in 0 .. slots {
    if due(t - f0, M)      { F(0); }
    else if due(t - f1, M) { F(1); }
    else if due(t - i1, M) { I(1); }
    else if due(t - i0, M) { I(0); }
    else if pending > 0    { W; }
  }
  drain W;
}
fn due(slots, M) = slots >= 0 and slots % 6 == 0 and slots / 6 < M;

schedule v_min(P: int >= 1 = 4, M: int >= 1 = 8) {
  ranks P;
  microbatches M;
  placement v;

  // Down and up, forwards and backwards: each a slot a rank. `e` keeps the slots of a rank apart.
  on rank r {
    let e = P % 3 == 0 ? 2 : 0;
    by_slots(4 * P + e + 6 * M, M, r, 2 * P - 1 - r, 2 * P + e + r, 4 * P + e - 1 - r);
  }
}
