schedule idle() {
  ranks 2;
  microbatches 2;
  placement linear;
  on rank r { if r > 0 { repeat 2 { F; B; } } }
}
