// GPUs of 24 GB on PCI Express 4.0 x16 (32 GB/s each way, PCI-SIG), `gpus` a machine, 100 Gb/s Ethernet between machines.
cluster pcie(gpus: int = 4, gpu: float = 24e9) {
  units ms, bytes;
  limit = gpu;
  link a, b {
    latency = a / gpus == b / gpus ? 0.01 : 0.03;
    bandwidth = a / gpus == b / gpus ? 32e6 : 12.5e6;
  }
  transport stream;
}
