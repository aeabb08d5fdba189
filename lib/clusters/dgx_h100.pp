// Nodes of 8 H100: 80 GB each, NVLink at 450 GB/s each way within a node, a 400 Gb/s adapter a GPU between nodes (NVIDIA DGX H100 data sheet).
cluster dgx_h100(gpus: int = 8, gpu: float = 80e9, nvlink: float = 450e6, adapter: float = 50e6) {
  units ms, bytes;
  limit = gpu;
  link a, b {
    latency = a / gpus == b / gpus ? 0.003 : 0.01;
    bandwidth = a / gpus == b / gpus ? nvlink : adapter;
  }
  transport stream;
}
