schedule downwards() {
  ranks 1;
  microbatches 9;
  placement linear;
  on rank r {
    for m in 0 .. 9 { F(mb: m); }
    for m in 0 .. 9 { B(mb: 8 - m); }
  }
}
