// Streams and events of the CUDA runtime.
#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace ppcc::rt {

inline void checkCuda(cudaError_t code, const char *what) {
  if (code != cudaSuccess)
    throw std::runtime_error(std::string(what) + ": " +
                             cudaGetErrorString(code));
}

/// What one rank has made of both, of the device that was current then.
class CudaPool {
public:
  CudaPool() = default;
  CudaPool(const CudaPool &) = delete;
  CudaPool &operator=(const CudaPool &) = delete;

  /// `highPriority`: what it gets runs ahead of what others get.
  cudaStream_t newStream(bool highPriority) {
    int lowest, highest;
    checkCuda(cudaDeviceGetStreamPriorityRange(&lowest, &highest),
              "cudaDeviceGetStreamPriorityRange");
    cudaStream_t stream;
    checkCuda(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking,
                                           highPriority ? highest : lowest),
              "cudaStreamCreateWithPriority");
    return streams.emplace_back(stream);
  }

  /// An event, to be given back when nobody waits for it or asks any more.
  cudaEvent_t acquireEvent() {
    if (spare.empty()) {
      cudaEvent_t event;
      checkCuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
                "cudaEventCreateWithFlags");
      spare.push_back(events.emplace_back(event));
    }
    cudaEvent_t event = spare.back();
    spare.pop_back();
    return event;
  }
  void releaseEvent(cudaEvent_t event) { spare.push_back(event); }

  /// What `later` gets from now on waits for what `earlier` has.
  void waitStream(cudaStream_t later, cudaStream_t earlier) {
    if (!orderingEvent)
      orderingEvent = acquireEvent();
    checkCuda(cudaEventRecord(orderingEvent, earlier), "cudaEventRecord");
    checkCuda(cudaStreamWaitEvent(later, orderingEvent, 0),
              "cudaStreamWaitEvent");
  }

  void synchronize() const {
    for (cudaStream_t stream : streams)
      cudaStreamSynchronize(stream);
  }
  /// The streams must be empty.
  void destroy() {
    for (cudaStream_t stream : streams)
      cudaStreamDestroy(stream);
    for (cudaEvent_t event : events)
      cudaEventDestroy(event);
  }

private:
  std::vector<cudaStream_t> streams;
  std::vector<cudaEvent_t> events, spare;
  cudaEvent_t orderingEvent = nullptr;
};

/// Whether what was recorded has happened.
inline bool isDone(cudaEvent_t event) {
  cudaError_t code = cudaEventQuery(event);
  if (code == cudaErrorNotReady)
    return false;
  checkCuda(code, "cudaEventQuery");
  return true;
}

} // namespace ppcc::rt
