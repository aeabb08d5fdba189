schedule seconds() {
  ranks 1;
  microbatches 2;
  placement linear;
  model { units s; cost F = 15; cost B = 30; }
  on rank 0 { repeat 2 { F; B; } }
}
