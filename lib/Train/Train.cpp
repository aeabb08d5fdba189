// pprun: its command line, and what it prints.
#include "ppcc/Train/Train.h"

#include "DefaultText.h"
#include "Launch.h"
#include "RunComparison.h"
#include "Workers.h"

#include "ppcc/Driver/Output.h"
#include "ppcc/Runtime/Json.h"
#include "ppcc/Runtime/Trace.h"
#include "ppcc/Support/Progress.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>
#include <sys/mman.h>
#include <unistd.h>

using namespace ppcc;
using llvm::raw_ostream;
using llvm::StringRef;

namespace {

struct CommandLine {
  std::vector<std::string> programs;
  std::string textFile, traceFile;
  std::optional<uint32_t> ranks, microbatches;
  std::optional<uint64_t> steps;
  bool usesThreads = false, isUnpipelined = false, checks = false;
  TrainOptions train;
};

void declare(OptionParser &parser, CommandLine &line) {
  constexpr uint32_t most = 1 << 20;
  TrainOptions &train = line.train;
  parser.positional("PROGRAM", line.programs,
                    "A program.json of ppcc; with --check, one or more");
  parser.number(
      "--microbatches", line.microbatches, 1, UINT32_MAX,
      "The number of microbatches, for a program that does not fix it");
  parser.number("--ranks", line.ranks, 0, UINT32_MAX,
                "The number of ranks that the program must have");
  parser.number("--steps", line.steps, 1, UINT32_MAX,
                "The number of steps; 50 by default, 1 with --check");
  parser.number("--timeout", train.timeout, 1, 1 << 20,
                "Seconds that a rank waits for another, which may have "
                "stopped, before the run fails; 600 without it");
  parser.flag("--threads", line.usesThreads,
              "Run the ranks as threads of one process, not as processes "
              "that talk by Gloo");
  parser.flag("--unpipelined", line.isUnpipelined,
              "Train the same network without a pipeline");
  parser.flag("--check", line.checks,
              "Compare the gradients, losses and activations with a run "
              "without a pipeline, in double precision");
  parser.exclude("--check", "--unpipelined");
  parser.parsed(
      "--device", "The device: cpu, cuda, or cuda:N; cpu by default",
      [&train](const std::string &text) -> std::string {
        unsigned index = 0;
        bool isNumbered = sscanf(text.c_str(), "cuda:%2u", &index) == 1 &&
                          text == fmt::format("cuda:{}", index);
        train.device = text;
        return isNumbered || text == "cuda" || text == "cpu"
                   ? ""
                   : "invalid value `" + text +
                         "`; expected one of cpu, cuda, cuda:N";
      },
      "DEVICE");
  parser.value("--text", "FILE", line.textFile,
               "The text to learn; without it, ppcc's own documentation");
  parser.number("--seed", train.seed, 0, UINT64_MAX,
                "Seed of the first weights and of the choice of samples");
  parser.parsed(
      "--lr", "The learning rate of Adam",
      [&](const std::string &text) -> std::string {
        return llvm::to_float(text, train.learningRate) &&
                       train.learningRate >= 0 && train.learningRate <= 1e6
                   ? ""
                   : "`" + text + "` is not a number from 0 to 10^6";
      },
      "RATE");
  parser.number("--replicas", train.replicas, 1, 1024,
                "Data-parallel copies of the pipeline, each with its own "
                "microbatches; their gradients are summed");
  parser.flag("--overlap", train.overlaps,
              "Run the members of overlap groups at the same time");
  parser.output("--trace", line.traceFile,
                "Write a trace of the last step, for Perfetto");
  parser.exclude("--trace", "--unpipelined");
  parser.exclude("--trace", "--check");
  parser.value(
      "--save", "FOLDER", train.saveFolder,
      "Write a checkpoint after the last step, in a folder of its own");
  parser.value("--load", "FOLDER", train.loadFolder,
               "Resume from a checkpoint of any program with as many layers");
  for (const char *option : {"--save", "--load"})
    for (const char *other : {"--unpipelined", "--check"})
      parser.exclude(option, other);
  parser.flag("--memory", train.countsBytes,
              "Print the bytes of the activations of each rank");
  parser.number("--layers", train.layers, 1, most,
                "Layers, divided among the stages; by default one per stage");
  parser.number("--width", train.width, 1, most, "Numbers a token");
  parser.number("--heads", train.heads, 1, most,
                "Attention heads; the width is a multiple of them");
  parser.number("--length", train.length, 1, most, "Tokens a sample");
  parser.parsed(
      "--lengths",
      "Tokens per sample; each microbatch draws a number of this range",
      [&train](const std::string &text) -> std::string {
        int end = 0;
        bool isRange = sscanf(text.c_str(), "%u..%u%n", &train.minLength,
                              &train.length, &end) == 2 &&
                       size_t(end) == text.size() && train.minLength >= 1 &&
                       train.minLength <= train.length && train.length <= most;
        return isRange ? "" : "`" + text + "` is not a range such as 8..32";
      },
      "MIN..MAX");
  parser.exclude("--lengths", "--length");
  parser.number("--batch", train.batch, 1, most, "Samples a microbatch");
  parser.flag("--double", train.isDouble, "Compute in double precision");
  parser.flag("--recompute", train.recompute,
              "Keep only the inputs of stages, and recompute forwards for the "
              "backward");
}

/// What is wrong with the options together, or nothing.
std::string checkOptions(const CommandLine &line) {
  const TrainOptions &train = line.train;
  if (train.width % train.heads != 0)
    return fmt::format("--heads: {} do not divide a width of {}", train.heads,
                       train.width);
  if (train.countsBytes && (line.usesThreads || line.isUnpipelined))
    return "--memory counts the bytes of a process and needs one per rank: "
           "omit --threads and --unpipelined";
  if (train.countsBytes && train.device != "cpu")
    return "--memory counts the bytes of the host: omit --device";
  if (line.programs.size() > 1 && !line.checks)
    return "several programs need --check";
  for (const std::string &input : line.programs)
    if (isSameFile(line.traceFile, input, llvm::outs()))
      return "--trace would overwrite the program `" + input + "`";
  if (isSameFile(line.traceFile, line.textFile, llvm::outs()))
    return "--trace would overwrite the text `" + line.textFile + "`";
  return "";
}

int report(raw_ostream &err, StringRef text, StringRef note) {
  err << "pprun: error: " << text << "\nnote: " << note << '\n';
  return Errors;
}

/// Fills the text to learn. False after a report.
bool readText(CommandLine &line, raw_ostream &err) {
  TrainOptions &train = line.train;
  if (line.textFile.empty()) {
    for (const Page &page : defaultText())
      train.text += page.text;
  } else {
    auto file = llvm::MemoryBuffer::getFile(line.textFile);
    if (!file) {
      report(err,
             fmt::format("cannot read `{}`: {}", line.textFile,
                         file.getError().message()),
             "give the path of a text file to --text");
      return false;
    }
    train.text = (*file)->getBuffer().str();
  }
  if (train.text.size() > train.length)
    return true;
  report(err,
         fmt::format("the text has {} bytes, but a sample needs {}",
                     train.text.size(), train.length + 1),
         "give a longer text, or a smaller --length");
  return false;
}

/// Reads a program that can be trained. False after a report.
bool readProgram(const std::string &path, const CommandLine &line,
                 rt::LoadedProgram &loaded, raw_ostream &err) {
  const char *hint = "`ppcc SCHEDULE -o program.json` writes one";
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    report(err, fmt::format("cannot read `{}`: {}", path, strerror(errno)),
           hint);
    return false;
  }
  try {
    loaded = rt::readJson(file);
    if (line.microbatches)
      loaded = loaded.at(*line.microbatches);
  } catch (const std::exception &error) {
    report(err, fmt::format("`{}`: {}", path, error.what()), hint);
    return false;
  }
  const rt::Program &program = loaded.program();
  std::string wrong;
  if (program.instance)
    wrong = "the program is for all numbers of microbatches: choose one with "
            "--microbatches";
  else if (line.ranks && *line.ranks != program.numRanks)
    wrong = fmt::format("the program is for {} ranks, and --ranks says {}",
                        program.numRanks, *line.ranks);
  else if (!program.hasBackward)
    wrong = "the program has no backward: there is nothing to train";
  else if (llvm::any_of(program.pipes, [](const rt::Pipe &pipe) {
             return !pipe.gaps.empty();
           }))
    wrong = "stages lack the edge to the next, but the transformer is a chain";
  else if (llvm::any_of(program.pipes,
                        [](const rt::Pipe &pipe) { return pipe.slices > 1; }))
    wrong = "the microbatches are slices of sequences, but the transformer "
            "takes whole ones";
  else if (countMicrobatches(program) == 0)
    wrong = "the program has no microbatches";
  else if (uint64_t(microbatchesEnd(program)) * line.train.replicas >
           UINT32_MAX)
    wrong = fmt::format("{} replicas have too many microbatches",
                        line.train.replicas);
  if (wrong.empty())
    return true;
  report(err, fmt::format("`{}`: {}", path, wrong),
         "compile the schedule with other parameters or settings: "
         "`ppcc SCHEDULE --list-params`");
  return false;
}

/// The files in which ranks meet, one a replica and one for all: in memory, and
/// gone with the processes.
class RendezvousFiles {
public:
  explicit RendezvousFiles(uint32_t replicas) {
    for (uint32_t i = 0; i != replicas + 1; ++i)
      files.push_back(memfd_create("pprun", 0));
  }
  ~RendezvousFiles() {
    for (int file : files)
      close(file);
  }
  RendezvousFiles(const RendezvousFiles &) = delete;
  RendezvousFiles &operator=(const RendezvousFiles &) = delete;

  /// For this process and those that it forks.
  RendezvousPaths of(uint32_t replica) const {
    return {path(files[replica]), path(files.back())};
  }

private:
  static std::string path(int file) {
    return fmt::format("/proc/self/fd/{}", file);
  }

  std::vector<int> files;
};

/// A rank, of those of all replicas.
std::string rankName(const rt::Program &program, const CommandLine &line,
                     uint32_t rank) {
  if (line.train.replicas == 1)
    return fmt::format("rank {}", rank);
  return fmt::format("replica {}, rank {}", rank / program.numRanks,
                     rank % program.numRanks);
}

std::vector<Worker> pipelined(const rt::Program &program,
                              const CommandLine &line,
                              const RendezvousFiles &places) {
  const TrainOptions &train = line.train;
  if (line.usesThreads)
    return {
        {"all ranks", [&](Reporter &to) { trainThreads(program, train, to); }}};
  std::vector<Worker> workers;
  for (uint32_t rank = 0; rank != train.replicas * program.numRanks; ++rank)
    workers.push_back({rankName(program, line, rank), [&, rank](Reporter &to) {
                         trainRank(program, rank,
                                   places.of(rank / program.numRanks), train,
                                   to);
                       }});
  return workers;
}

Worker unpipelined(const rt::Program &program, const TrainOptions &train) {
  return {"the run without a pipeline",
          [&](Reporter &to) { trainUnpipelined(program, train, to); }};
}

/// Writes the trace of a run.
int saveTrace(const std::string &path, const rt::Program &program,
              const rt::Trace &trace, raw_ostream &out, raw_ostream &err) {
  Session session(llvm::vfs::getRealFileSystem());
  ExitCode code = writeOutput(path, out, session, [&](raw_ostream &s) {
    std::ostringstream text;
    rt::writeTrace(text, program, trace);
    s << text.str();
  });
  return code == Success
             ? code
             : report(err, session.found.front().message,
                      "give --trace the path of a file that can be written");
}

constexpr const char *failureHint =
    "all ranks stop when one fails; check the schedule with `ppcc --check`";

int train(const rt::Program &program, const CommandLine &line, raw_ostream &out,
          raw_ostream &err) {
  RendezvousFiles places(line.train.replicas);
  std::vector<Worker> workers =
      line.isUnpipelined ? std::vector{unpipelined(program, line.train)}
                         : pipelined(program, line, places);
  Progress progress(err, line.train.steps);
  progress.next("starting");
  LossCurve curve(countMicrobatches(program) * line.train.replicas);
  std::map<uint32_t, Peak> peaks;
  rt::Trace trace(program.numRanks);
  auto hear = [&](size_t, const WorkerMessage &message) {
    if (auto *peak = std::get_if<Peak>(&message))
      peaks[peak->rank] = *peak;
    if (auto *events = std::get_if<Events>(&message))
      trace.rank(events->rank)
          .replaceEvents(std::vector(events->events), events->concurrent, 0);
    auto *losses = std::get_if<StepLosses>(&message);
    if (!losses)
      return;
    curve.add(*losses);
    while (std::optional<double> loss = curve.next()) {
      std::string text = fmt::format("loss {:.6f}", *loss);
      progress.clear();
      out << "step " << curve.lastStep() << ": " << text << '\n';
      out.flush();
      if (curve.numTaken() != line.train.steps)
        progress.next(text);
    }
  };
  std::optional<std::string> failure = runWorkers(workers, hear);
  progress.clear();
  if (failure)
    return report(err, *failure, failureHint);
  for (const auto &[rank, peak] : peaks) {
    out << fmt::format("{}: at most {} activations alive",
                       rankName(program, line, rank), peak.activations);
    if (line.train.countsBytes)
      out << fmt::format(", {} bytes", peak.bytes);
    out << '\n';
  }
  return line.traceFile.empty()
             ? Success
             : saveTrace(line.traceFile, program, trace, out, err);
}

/// Compares a program with the run without a pipeline.
int check(const std::string &name, const rt::Program &program,
          const CommandLine &line, raw_ostream &out, raw_ostream &err) {
  RendezvousFiles places(line.train.replicas);
  std::vector<Worker> workers = pipelined(program, line, places);
  size_t reference = workers.size();
  workers.push_back(unpipelined(program, line.train));
  RunResult results[2];
  auto hear = [&](size_t worker, const WorkerMessage &message) {
    results[worker == reference].add(message);
  };
  if (std::optional<std::string> failure = runWorkers(workers, hear))
    return report(err, fmt::format("`{}`: {}", name, *failure), failureHint);
  RunComparison verdict = compare(program, results[0], results[1],
                                  line.train.steps, line.train.replicas);
  std::string peaks, bytes;
  for (const auto &[rank, peak] : results[0].peaks) {
    peaks += fmt::format(" {}", peak.activations);
    bytes += fmt::format(" {}", peak.bytes);
  }
  out << fmt::format("{}: gradients differ by at most {:.2g}, losses of {} "
                     "steps by {:.2g}; activations alive:{}",
                     name, verdict.gradients, line.train.steps, verdict.losses,
                     peaks);
  if (line.train.countsBytes)
    out << "; bytes:" << bytes;
  out << '\n';
  out.flush();
  for (const std::string &wrong : verdict.wrong)
    report(err, fmt::format("`{}`: {}", name, wrong),
           "the run differs from one without a pipeline: an error of ppcc, or "
           "of the program");
  return verdict.wrong.empty() ? Success : Errors;
}

} // namespace

int ppcc::runTraining(const Invocation &call) {
  raw_ostream &err = call.err;
  CommandLine line;
  OptionParser parser(
      call, "pprun",
      "Trains a small transformer on a text, by a program of ppcc");
  parser.version();
  declare(parser, line);
  if (std::optional<int> code = parser.parse())
    return *code;
  if (std::string wrong = checkOptions(line); !wrong.empty())
    return parser.usageError(wrong);
  line.train.steps = line.steps.value_or(line.checks ? 1 : 50);
  line.train.isDouble |= line.checks;
  line.train.sendsGradients = line.checks;
  line.train.traces = !line.traceFile.empty();
  if (std::string wrong = missingDevice(line.train.device); !wrong.empty())
    return report(
        err, wrong,
        "choose a device that exists with --device, or omit it for the CPU");
  if (!readText(line, err))
    return Errors;

  int code = Success;
  std::optional<Progress> progress;
  if (line.programs.size() > 1)
    progress.emplace(err, line.programs.size());
  for (const std::string &path : line.programs) {
    rt::LoadedProgram program;
    if (progress)
      progress->next(llvm::sys::path::filename(path));
    if (!readProgram(path, line, program, err)) {
      code = Errors;
      continue;
    }
    if (progress)
      progress->clear();
    int result = line.checks ? check(path, program, line, call.out, err)
                             : train(program, line, call.out, err);
    code = std::max(code, result);
  }
  return code;
}
