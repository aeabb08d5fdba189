// Times the parts of the compiler on interleaved 1F1B with 128 ranks and 2
// chunks: 512 M compute actions.
#include "ppcc/Analysis/Run/Simulation.h"
#include "ppcc/Compiler/Compiler.h"
#include "ppcc/Transforms/Passes.h"

#include <benchmark/benchmark.h>

#include <cstdlib>

using namespace ppcc;

namespace {

/// Compilations of the schedule that end behind some phase.
class Fixture {
public:
  explicit Fixture(int64_t microbatches)
      : session(llvm::vfs::getRealFileSystem(),
                [](const Diagnostic &found, const SourceManager &sources) {
                  render(found, sources, llvm::errs()), std::abort();
                }) {
    request.input = "interleaved_1f1b";
    request.params = {
        {"P", "128"}, {"V", "2"}, {"M", std::to_string(microbatches)}};
    request.limits.maxActions = 100'000'000;
  }

  Compiled compiled(Request::StopAfter until) {
    request.until = until;
    return compile(request, session);
  }
  Program expanded() { return compiled(Request::StopAfter::Expanded).program; }

  void run(llvm::StringRef pipeline, Program &program,
           CommOrder order = CommOrder::ReadyTime) {
    CommPolicy comm;
    comm.order = order;
    if (!runPasses({pipeline.str()}, session, program, comm))
      std::abort();
  }

  Session session;
  Request request;
};

void setRate(benchmark::State &state, size_t actions) {
  state.SetItemsProcessed(state.iterations() * actions);
  state.counters["actions"] = double(actions);
}

void parseAndCheck(benchmark::State &state) {
  Fixture fixture(1);
  for (auto _ : state)
    benchmark::DoNotOptimize(fixture.compiled(Request::StopAfter::Checked));
}

void expandProgram(benchmark::State &state) {
  Fixture fixture(state.range(0));
  size_t actions = 0;
  for (auto _ : state)
    actions = fixture.expanded().size();
  setRate(state, actions);
}

/// Runs a pipeline on a fresh copy of the program that `before` leads to.
void passes(benchmark::State &state, const char *before, const char *pipeline,
            CommOrder order = CommOrder::ReadyTime) {
  Fixture fixture(state.range(0));
  Program input = fixture.expanded();
  fixture.run(before, input);
  size_t actions = 0;
  for (auto _ : state) {
    state.PauseTiming();
    Program program = input;
    state.ResumeTiming();
    fixture.run(pipeline, program, order);
    actions = program.size();
  }
  setRate(state, actions);
}

/// Times a program with messages on a transport; without one by data alone.
void simulation(benchmark::State &state, const char *transport) {
  Fixture fixture(state.range(0));
  Program program = fixture.expanded();
  if (transport)
    fixture.run("inject-comm{order=sweep}", program);
  ProgramIndex index(program);
  MessageIndex messages(program, index);
  Durations durations(program);
  for (auto _ : state)
    benchmark::DoNotOptimize(transport
                                 ? simulate(program, index, messages, durations,
                                            *findTransport(transport))
                                 : simulate(program, index, durations));
  setRate(state, program.size());
}

void emit(benchmark::State &state, const char *name) {
  Fixture fixture(state.range(0));
  Program program = fixture.expanded();
  fixture.run("inject-comm", program);
  EmitContext context{fixture.session.diags, fixture.session.sources, {}};
  for (auto _ : state) {
    llvm::raw_null_ostream out;
    emitProgram(*findEmitter(name), program, out, context);
  }
  setRate(state, program.size());
}

void readIr(benchmark::State &state) {
  Fixture fixture(state.range(0));
  Program program = fixture.expanded();
  fixture.run("inject-comm", program);
  std::string text;
  llvm::raw_string_ostream out(text);
  printProgram(program, out);
  Session &session = fixture.session;
  uint32_t file =
      session.sources.add("bench.ir", llvm::MemoryBuffer::getMemBuffer(text));
  for (auto _ : state) {
    ImportContext context{file, session.sources, session.diags, {}};
    benchmark::DoNotOptimize(importProgram(*findImporter("ir"), context));
  }
  setRate(state, program.size());
}

/// The order of connections where one rank meets all others.
void connectStar(benchmark::State &state) {
  uint32_t ranks = state.range(0);
  std::vector<RankPair> star;
  for (uint32_t rank = 1; rank != ranks; ++rank)
    star.push_back({RankId(0), RankId(rank)});
  for (auto _ : state)
    benchmark::DoNotOptimize(connectionOrder(ranks, star));
}

void sizes(benchmark::internal::Benchmark *bench) {
  bench->Arg(32)
      ->Arg(256)
      ->Arg(2048)
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
}

BENCHMARK(parseAndCheck)->Unit(benchmark::kMillisecond);
BENCHMARK(expandProgram)->Apply(sizes);
BENCHMARK_CAPTURE(passes, verify_compute, "", "verify")->Apply(sizes);
BENCHMARK_CAPTURE(passes, inject_comm_sweep, "", "inject-comm",
                  CommOrder::Sweep)
    ->Apply(sizes);
BENCHMARK_CAPTURE(passes, inject_comm_late, "", "inject-comm", CommOrder::Late)
    ->Apply(sizes);
BENCHMARK_CAPTURE(passes, inject_comm_ready_time, "", "inject-comm")
    ->Apply(sizes);
BENCHMARK_CAPTURE(simulation, by_data, nullptr)->Apply(sizes);
BENCHMARK_CAPTURE(simulation, buffered, "buffered")->Apply(sizes);
BENCHMARK_CAPTURE(simulation, rendezvous, "rendezvous")->Apply(sizes);
BENCHMARK_CAPTURE(simulation, stream, "stream")->Apply(sizes)->Arg(20480);
BENCHMARK_CAPTURE(simulation, per_edge, "stream-per-edge")->Apply(sizes);
BENCHMARK_CAPTURE(passes, verify_with_comm, "inject-comm", "verify")
    ->Apply(sizes);
BENCHMARK_CAPTURE(passes, verify_matching, "inject-comm", "verify-matching")
    ->Apply(sizes);
BENCHMARK_CAPTURE(passes, verify_stream, "inject-comm", "verify-transport")
    ->Apply(sizes);
BENCHMARK_CAPTURE(emit, json, "json")->Apply(sizes);
BENCHMARK_CAPTURE(emit, actions, "actions")->Apply(sizes);
BENCHMARK_CAPTURE(emit, torch_csv, "torch-csv")->Apply(sizes);
BENCHMARK_CAPTURE(emit, ir, "ir")->Apply(sizes);
BENCHMARK(readIr)->Apply(sizes);
BENCHMARK(connectStar)->Arg(300'000)->Unit(benchmark::kMillisecond);

} // namespace

BENCHMARK_MAIN();
