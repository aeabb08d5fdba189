schedule two_lengths(M: int = 2) {
  ranks 2;
  pipe a { stages 2; stage s on rank s; microbatches 0 .. M; }
  pipe b { stages 4; stage s on rank s % 2; microbatches M .. 2 * M; }
  on rank r { repeat M { F(a); F(1); F(2); } repeat M { B(2); B(1); B(a); } }
}
