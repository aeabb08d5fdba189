// A V of two chunks a rank with half of 1F1B's memory (V-Half, arXiv 2405.15362).
import "v_min.pp";

schedule v_half(P: int >= 1 = 4, M: int >= 1 = 8) {
  ranks P;
  microbatches M;
  placement v;

  // Forwards take two slots a rank on the way down, and one on the way up; backwards too. `e` keeps the slots of a rank apart.
  on rank r {
    let e = P % 2 == 0 ? 4 : 1;
    by_slots(6 * P + e + 6 * M, M, 2 * r, 3 * P - 2 - r, 3 * P - 1 + e + 2 * r, 6 * P - 3 + e - r);
  }
}
