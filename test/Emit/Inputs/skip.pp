// The output of stage 0 is read by stage 2 too.
schedule skip(M: int = 1) {
  ranks 3;
  microbatches M;
  placement linear;
  edge stage 0 -> stage 2;

  on rank r { repeat M { F; B; } }
}
