// The processes that train: what each does.
#pragma once

#include "Messages.h"
#include "Options.h"

#include "ppcc/Runtime/Program.h"

namespace ppcc {

/// A pipelined run in one process, a thread a rank.
void trainThreads(const rt::Program &program, const TrainOptions &options,
                  Reporter &reporter);

/// One rank of a pipelined run, in a process of its own. The ranks meet in
/// `file`.
void trainRank(const rt::Program &program, uint32_t rank,
               const std::string &file, const TrainOptions &options,
               Reporter &reporter);

/// The same network without a pipeline: one microbatch after another, each with
/// one graph from its loss to the embedding.
void trainUnpipelined(const rt::Program &program, const TrainOptions &options,
                      Reporter &reporter);

} // namespace ppcc
