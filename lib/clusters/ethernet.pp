// Machines with one GPU each, on Ethernet of `gbits` Gb/s.
cluster ethernet(gbits: float = 25.0, gpu: float = 80e9) {
  units ms, bytes;
  limit = gpu;
  latency = 0.05;
  bandwidth = gbits * 1e6 / 8;
  transport stream;
}
