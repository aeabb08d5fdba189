// The part of NCCL that the tests of Nccl.h need, between the threads of one
// process: see Model.cpp.
#pragma once

#include "cuda_runtime_api.h"

enum ncclResult_t {
  ncclSuccess = 0,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclRemoteError = 6,
  ncclInProgress = 7
};
enum ncclDataType_t { ncclInt8 = 0, ncclFloat64 = 8 };
using ncclComm_t = struct FakeComm *;

struct ncclUniqueId {
  char internal[128];
};
struct ncclConfig_t {
  int blocking;
};
#define NCCL_CONFIG_INITIALIZER {1}
#define NCCL_SPLIT_NOCOLOR -1
enum ncclRedOp_t { ncclSum = 0 };

extern "C" {
const char *ncclGetErrorString(ncclResult_t);
ncclResult_t ncclGetUniqueId(ncclUniqueId *);
ncclResult_t ncclCommInitRankConfig(ncclComm_t *, int, ncclUniqueId, int,
                                    ncclConfig_t *);
ncclResult_t ncclCommSplit(ncclComm_t, int, int, ncclComm_t *, ncclConfig_t *);
ncclResult_t ncclCommDestroy(ncclComm_t);
ncclResult_t ncclCommAbort(ncclComm_t);
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t *);
ncclResult_t ncclCommCount(ncclComm_t, int *);
ncclResult_t ncclCommUserRank(ncclComm_t, int *);
ncclResult_t ncclSend(const void *, size_t, ncclDataType_t, int, ncclComm_t,
                      cudaStream_t);
ncclResult_t ncclRecv(void *, size_t, ncclDataType_t, int, ncclComm_t,
                      cudaStream_t);
ncclResult_t ncclAllGather(const void *, void *, size_t, ncclDataType_t,
                           ncclComm_t, cudaStream_t);
ncclResult_t ncclReduceScatter(const void *, void *, size_t, ncclDataType_t,
                               ncclRedOp_t, ncclComm_t, cudaStream_t);
ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd();
}
