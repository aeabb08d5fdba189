// A model of CUDA and NCCL that is stricter than both, for machines without a
// GPU: see Model.cpp.
#pragma once

#include "nccl.h"

#include <string>
#include <vector>

extern "C" {
cudaError_t cudaMallocAsync(void **, size_t, cudaStream_t);
cudaError_t cudaFreeAsync(void *, cudaStream_t);
}

namespace model {

/// This thread is the host of a rank, one of `ranks`, until endRank(). All
/// ranks must have begun before one waits.
void beginRank(int rank, int ranks);
void endRank();
/// What this thread issues from now on comes from here, for reports.
void setPlace(std::string place);

/// What the running kernel reads or writes.
void touch(const void *data, size_t size, bool writes);

/// What was found wrong since the last call. Behind a report everything fails.
std::vector<std::string> takeReports();
/// In the next run this wait of a rank, counted from 0, does nothing.
void dropWait(int rank, int number);

} // namespace model
