schedule scaled() {
  ranks 1;
  microbatches 2;
  placement loop(2);
  model {
    memory F = 4;
    scale microbatch m = m == 0 ? 1 : 3;
    scale F microbatch m = 2;
  }
  on rank 0 { repeat 2 { F(0); } repeat 2 { F(1); } repeat 2 { B(1); } repeat 2 { B(0); } }
}
