// Times the parts of the compiler on interleaved 1F1B with 128 ranks and 2
// chunks: 512 M compute actions.
#include "ppcc/Analysis/Makespan.h"
#include "ppcc/Analysis/Simulation.h"
#include "ppcc/Driver/CommWords.h"
#include "ppcc/Driver/PassRegistry.h"
#include "ppcc/Driver/ScheduleLibrary.h"
#include "ppcc/Emit/Emitter.h"
#include "ppcc/Expand/Expand.h"
#include "ppcc/Parse/Parser.h"
#include "ppcc/Pass/PipelineParser.h"
#include "ppcc/Transforms/Preconnect.h"

#include "llvm/ADT/STLExtras.h"

#include <benchmark/benchmark.h>

#include <cstdlib>

using namespace ppcc;

namespace {

/// A compilation of the schedule that can be stopped behind each phase.
class Fixture {
public:
  explicit Fixture(int64_t microbatches)
      : sources(llvm::vfs::getRealFileSystem()),
        diags([&](const Diagnostic &found) {
          render(found, sources, llvm::errs()), std::abort();
        }),
        registry(makePassRegistry()) {
    auto *file = llvm::find_if(scheduleLibrary(), [](const LibraryFile &f) {
      return f.name == "interleaved_1f1b.pp";
    });
    source =
        sources.add(file->name, llvm::MemoryBuffer::getMemBuffer(file->text));
    files.push_back(*parseFile(source, sources, context, diags));
    module = *sema::check(files, context, commWords(), diags);
    params = {{"P", "128"}, {"V", "2"}, {"M", std::to_string(microbatches)}};
  }

  Program expanded() {
    sema::Evaluator evaluator(module, diags, limits.maxSteps());
    auto instance = sema::instantiate(module.schedules.front(), params, nullptr,
                                      limits, evaluator, diags);
    return *expand(module, std::move(*instance), limits, evaluator, sources,
                   diags);
  }

  void run(llvm::StringRef pipeline, Program &program) {
    PassContext passContext(sources, diags);
    if (!runPipeline(*parsePipeline(pipeline, registry, sources, diags),
                     program, passContext))
      std::abort();
  }

  SourceManager sources;
  DiagnosticEngine diags;
  ast::Context context;
  std::vector<ast::File> files;
  sema::Module module;
  std::vector<sema::ParamValue> params;
  sema::Limits limits;
  PassRegistry registry;
  uint32_t source = 0;
};

void setRate(benchmark::State &state, size_t actions) {
  state.SetItemsProcessed(state.iterations() * actions);
  state.counters["actions"] = double(actions);
}

void parseAndCheck(benchmark::State &state) {
  Fixture fixture(1);
  for (auto _ : state) {
    ast::Context context;
    std::vector<ast::File> files{
        *parseFile(fixture.source, fixture.sources, context, fixture.diags)};
    benchmark::DoNotOptimize(
        sema::check(files, context, commWords(), fixture.diags));
  }
}

void expandProgram(benchmark::State &state) {
  Fixture fixture(state.range(0));
  size_t actions = 0;
  for (auto _ : state)
    actions = fixture.expanded().size();
  setRate(state, actions);
}

/// Runs a pipeline on a fresh copy of the program that `before` leads to.
void passes(benchmark::State &state, const char *before, const char *pipeline) {
  Fixture fixture(state.range(0));
  Program input = fixture.expanded();
  fixture.run(before, input);
  size_t actions = 0;
  for (auto _ : state) {
    state.PauseTiming();
    Program program = input;
    state.ResumeTiming();
    fixture.run(pipeline, program);
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

/// The makespan by data alone, without the times of rows.
void bound(benchmark::State &state) {
  Fixture fixture(state.range(0));
  Program program = fixture.expanded();
  ProgramIndex index(program);
  Durations durations(program);
  for (auto _ : state)
    benchmark::DoNotOptimize(dataBound(program, index, durations));
  setRate(state, program.size());
}

void emit(benchmark::State &state, const char *name) {
  Fixture fixture(state.range(0));
  Program program = fixture.expanded();
  fixture.run("inject-comm", program);
  EmitContext context{fixture.diags, fixture.sources, {}};
  for (auto _ : state) {
    llvm::raw_null_ostream out;
    findEmitter(name)->emit(program, out, context);
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
  uint32_t file =
      fixture.sources.add("bench.ir", llvm::MemoryBuffer::getMemBuffer(text));
  for (auto _ : state)
    benchmark::DoNotOptimize(
        parseProgram(file, fixture.sources, fixture.diags));
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
BENCHMARK_CAPTURE(passes, inject_comm_sweep, "", "inject-comm{order=sweep}")
    ->Apply(sizes);
BENCHMARK_CAPTURE(passes, inject_comm_late, "", "inject-comm{order=late}")
    ->Apply(sizes);
BENCHMARK_CAPTURE(passes, inject_comm_ready_time, "",
                  "inject-comm{order=ready-time}")
    ->Apply(sizes);
BENCHMARK(bound)->Apply(sizes);
BENCHMARK_CAPTURE(simulation, by_data, nullptr)->Apply(sizes);
BENCHMARK_CAPTURE(simulation, buffered, "buffered")->Apply(sizes);
BENCHMARK_CAPTURE(simulation, rendezvous, "rendezvous")->Apply(sizes);
BENCHMARK_CAPTURE(simulation, stream, "stream")->Apply(sizes)->Arg(20480);
BENCHMARK_CAPTURE(simulation, per_edge, "stream-per-edge")->Apply(sizes);
BENCHMARK_CAPTURE(passes, verify_with_comm, "inject-comm", "verify")
    ->Apply(sizes);
BENCHMARK_CAPTURE(passes, verify_matching, "inject-comm", "verify-matching")
    ->Apply(sizes);
BENCHMARK_CAPTURE(passes, verify_stream, "inject-comm",
                  "verify-transport{transport=stream}")
    ->Apply(sizes);
BENCHMARK_CAPTURE(emit, json, "json")->Apply(sizes);
BENCHMARK_CAPTURE(emit, actions, "actions")->Apply(sizes);
BENCHMARK_CAPTURE(emit, torch_csv, "torch-csv")->Apply(sizes);
BENCHMARK_CAPTURE(emit, ir, "ir")->Apply(sizes);
BENCHMARK(readIr)->Apply(sizes);
BENCHMARK(connectStar)->Arg(300'000)->Unit(benchmark::kMillisecond);

} // namespace

BENCHMARK_MAIN();
