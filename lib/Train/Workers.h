// The processes that train: what each does.
#pragma once

#include "Messages.h"
#include "Options.h"

#include "ppcc/Runtime/Program.h"

namespace ppcc {

/// What is wrong with a device of TrainOptions on this machine, or nothing.
/// Asks in a process of its own: CUDA does not survive a fork.
std::string missingDevice(const std::string &device);

/// A pipelined run in one process, a thread a rank of each replica.
void trainThreads(const rt::Program &program, const TrainOptions &options,
                  Reporter &reporter);

/// Where processes meet: those of one replica, and those of all.
struct RendezvousPaths {
  std::string replica, all;
};

/// One rank of a pipelined run, in a process of its own; it is counted over all
/// replicas.
void trainRank(const rt::Program &program, uint32_t rank,
               const RendezvousPaths &files, const TrainOptions &options,
               Reporter &reporter);

/// The same network without a pipeline: the microbatches of all replicas one
/// after another, each with one graph from its loss to the embedding.
void trainUnpipelined(const rt::Program &program, const TrainOptions &options,
                      Reporter &reporter);

} // namespace ppcc
