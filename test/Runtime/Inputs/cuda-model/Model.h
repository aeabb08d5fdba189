// A model of CUDA and NCCL that is stricter than both, for machines without a
// GPU: see Model.cpp.
#pragma once

#include "nccl.h"

#include <deque>
#include <functional>
#include <string>
#include <vector>

extern "C" {
cudaError_t cudaMallocAsync(void **, size_t, cudaStream_t);
cudaError_t cudaFreeAsync(void *, cudaStream_t);
cudaError_t cudaMallocHost(void **, size_t);
cudaError_t cudaFreeHost(void *);
}

namespace model {

/// This thread is the host of a rank, one of `ranks`, until detachRank(). All
/// ranks must have begun before one waits.
void attachRank(int rank, int ranks);
void detachRank();
/// What this thread issues from now on comes from here, for reports.
void setPlace(std::string place);

/// What a stream runs; false: it has not ended, and is called again.
void kernel(cudaStream_t stream, std::function<bool()> body);
/// What the running kernel reads or writes, or the host.
void recordAccess(const void *data, size_t size, bool writes);

/// What was found wrong since the last call. Behind a report everything fails.
std::vector<std::string> takeReports();
/// In the next runs this wait of a rank, counted from 0, does nothing.
void dropWait(int rank, int number);
/// How many it had in the last run.
int numWaits(int rank);

/// For tests of failures: nothing is reported, hosts may wait as long as they
/// like, and the ends of what aborted communicators carried are left open.
void tolerateFaults();
/// From now on the state of the communicator is a remote error.
void breakComm(ncclComm_t comm);
/// From now on what this thread asks of an event fails.
void breakCuda();
/// From now on a message of this thread waits in its call, until its
/// communicator is aborted.
void holdMessages();

/// An operation of a rank that is traced: what it is directly behind, and what
/// it touches. For those who judge the model.
struct TracedOperation {
  struct Access {
    const char *begin, *end;
    bool writes;
    bool isMemory = false; ///< It begins or ends; nothing is written.
  };
  std::string what;
  std::vector<const TracedOperation *> predecessors; ///< Each was noted before.
  std::vector<Access> touched;
  const void *comm = nullptr;
};
/// The operations of this rank are noted from now on; those of before go.
void traceRank(int rank);
const std::deque<TracedOperation> &traced();

} // namespace model
