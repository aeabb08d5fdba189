// `ppcc serve`: a page on this machine that shows a schedule while its file
// changes.
#include "Http.h"
#include "Options.h"
#include "Watch.h"
#include "ppcc/Analysis/Analyses.h"
#include "ppcc/Analysis/Cost/Durations.h"
#include "ppcc/Analysis/Report/Report.h"
#include "ppcc/Compiler/ScheduleLibrary.h"
#include "ppcc/Emit/Writer.h"
#include "ppcc/Support/Embedded.h"
#include "ppcc/Support/Subprocess.h"
#include "ppcc/Support/Uri.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Signals.h"

#include <random>
#include <set>

using namespace ppcc;

namespace ppcc {
/// live.html alone.
ArrayRef<EmbeddedFile> livePage();
} // namespace ppcc

namespace {

constexpr uint64_t maxPreviewActions =
    1'000'000; ///< While somebody drags a slider.

constexpr unsigned maxSeconds = 30;

/// What becomes of the schedule, with some values.
struct Build {
  explicit Build(std::string key) : key(std::move(key)) {}

  std::string key;
  llvm::IntrusiveRefCntPtr<WatchedFiles> files; ///< Null before the first job.
  uint64_t number = 0;
  std::string state; ///< JSON for the page.
  std::string page;  ///< The viewer; empty when there are errors.
  Subprocess job;
  std::chrono::steady_clock::time_point
      lastRequested; ///< When it was last wanted.
};

class LiveServer {
public:
  LiveServer(const Options &options, Session::Files files)
      : options(options), files(std::move(files)) {
    std::random_device random;
    for (int i = 0; i != 4; ++i)
      token += fmt::format("{:08x}", random());
  }

  std::string token;
  std::function<void()> onPageServed; ///< When somebody has the page.

  /// `/TOKEN/` is the page, `/TOKEN/state` waits for another build than that of
  /// `after`, `/TOKEN/view` is its picture. `D.NAME` is the value of a
  /// parameter, `cost.NAME` a cost.
  std::optional<HttpResponse> answer(const HttpRequest &request) {
    StringRef path = request.path;
    if (!path.consume_front("/" + token + "/"))
      return HttpResponse{404, "text/plain", "not here"};
    std::string framed = "frame-ancestors 'self'";
    if (path.empty()) {
      onPageServed();
      return HttpResponse{
          200, "text/html; charset=utf-8", livePage().front().text.str(),
          "default-src 'none'; script-src 'unsafe-inline'; style-src "
          "'unsafe-inline'; connect-src 'self'; frame-src 'self'; " +
              framed};
    }
    if (path != "state" && path != "view")
      return HttpResponse{404, "text/plain", "not here"};
    std::string key;
    uint64_t after = 0;
    for (const auto &[name, value] : request.query)
      if (name != "after")
        key += name + "=" + value + "\n";
      else
        StringRef(value).getAsInteger(10, after);
    Build &build = findOrAddBuild(key);
    if (!isReady(build, request))
      return std::nullopt;
    if (path == "view")
      return HttpResponse{200, "text/html; charset=utf-8", build.page,
                          "default-src 'none'; script-src 'unsafe-inline'; "
                          "style-src 'unsafe-inline'; " +
                              framed};
    if (build.number == after)
      return std::nullopt;
    return HttpResponse{200, "application/json", build.state};
  }

  /// Of the job that runs; -1 for none.
  int descriptor() const {
    for (const Build &build : builds)
      if (build.job.isRunning())
        return build.job.descriptor();
    return -1;
  }

private:
  Build &findOrAddBuild(const std::string &key) {
    if (auto *found = findBy(builds, key, &Build::key))
      return *found;
    for (auto at = builds.begin(); at != builds.end() && builds.size() >= 8;)
      at = isWanted(*at) ? std::next(at) : builds.erase(at);
    return builds.emplace_back(key);
  }

  /// Whether somebody waits for it, who asks again and again.
  static bool isWanted(const Build &build) {
    return std::chrono::steady_clock::now() - build.lastRequested <
           std::chrono::milliseconds(250);
  }

  /// Whether it is that of the files as they are. Else it is being made, or
  /// will be when the job that others wait for has ended.
  bool isReady(Build &build, const HttpRequest &request) {
    build.lastRequested = std::chrono::steady_clock::now();
    if (build.job.isRunning() && build.files->hasChanged())
      build.job.stop();
    if (!build.job.isRunning()) {
      if (build.files && !build.files->hasChanged())
        return true;
      for (Build &other : builds)
        if (other.job.isRunning()) {
          if (isWanted(other))
            return false;
          other.job.stop();
          other.files = nullptr;
        }
      start(request, build);
    }
    while (build.job.isRunning() && build.job.read())
      finish(build);
    return false;
  }

  void start(const HttpRequest &request, Build &build) {
    build.number = ++numbers;
    build.files = llvm::makeIntrusiveRefCnt<WatchedFiles>(files);
    (void)build.files->status(options.request.input);
    bool isStarted = build.job.start(maxSeconds, [&](raw_ostream &out) {
      make(request, build);
      out << build.state.size() << '\n'
          << build.state << build.page.size() << '\n'
          << build.page << build.files->serialize();
    });
    if (!isStarted)
      finish(build);
  }

  /// Takes what the job has made.
  void finish(Build &build) {
    StringRef remaining = build.job.output;
    auto take = [&](std::string &part) {
      size_t size = 0;
      bool isGood = !remaining.consumeInteger(10, size) &&
                    remaining.consume_front("\n") && size <= remaining.size();
      if (isGood) {
        part = remaining.take_front(size).str();
        remaining = remaining.drop_front(size);
      }
      return isGood;
    };
    if (build.job.outcome == Subprocess::Outcome::Succeeded &&
        take(build.state) && take(build.page)) {
      build.files->deserialize(remaining);
    } else {
      build.page.clear();
      build.state.clear();
      write(build, {}, false, "error: " + build.job.errorText(), "", {}, {});
    }
    build.job.output.clear();
  }

  /// Whether `-D given=1` means what the page calls `P` or `model.P`.
  static bool means(StringRef given, StringRef name) {
    return given == name || given == name.rsplit('.').second ||
           (given.consume_front("schedule.") && given == name);
  }

  void make(const HttpRequest &request, Build &build) {
    auto start = std::chrono::steady_clock::now();
    Options chosen = options;
    std::string errorText;
    for (const auto &[key, value] : request.query) {
      StringRef name = key;
      if (name.consume_front("D.")) {
        llvm::erase_if(chosen.request.params, [&](const sema::ParamValue &one) {
          return means(one.name, name);
        });
        parseDefinition((name.contains('.') ? "" : "schedule.") + name.str() +
                            "=" + value,
                        chosen.request.params.emplace_back());
      } else if (name.consume_front("cost.")) {
        std::string setting = name.str() + "=" + value;
        if (std::string wrong = checkCost(setting); wrong.empty())
          chosen.request.costs.settings.push_back(setting);
        else
          errorText += wrong + "\n";
      }
    }
    chosen.request.limits.maxActions =
        std::min(chosen.request.limits.maxActions, maxPreviewActions);
    // What is above its limit is shown, too.
    chosen.request.checksMemory = false;
    Session session(build.files);
    session.sources.readsStreams = false;
    Compiled compiled = compile(chosen.request, session);
    llvm::raw_string_ostream page(build.page);
    build.page.clear();
    bool isGood = errorText.empty() && compiled &&
                  emit(compiled, *findEmitter("html"), page, session,
                       options.emitOptions);
    std::string figures;
    if (!isGood)
      build.page.clear();
    else if (figures = figuresOf(compiled, session.diags); !figures.empty()) {
      PassRequest check;
      check.passes = "verify-memory";
      runPasses(check, session, compiled.program, compiled.comm);
    }
    errorText += compiled.usageError + session.text();
    build.state.clear();
    write(build, compiled, isGood, errorText, figures,
          std::chrono::steady_clock::now() - start, chosen.request.params);
  }

  /// Writes the state of the build.
  void write(Build &build, const Compiled &compiled, bool isGood,
             const std::string &errorText, const std::string &figures,
             std::chrono::duration<double> took,
             ArrayRef<sema::ParamValue> given) {
    const Program &program = compiled.program;
    auto putParam = [&](JsonFields &fields, const ParameterText &param) {
      fields("name", param.name);
      fields("type", param.type);
      fields("range", param.range);
      std::string value = param.defaultValue;
      for (const sema::ParamValue &one : given)
        if (means(one.name, param.name))
          value = one.value;
      if (auto *known =
              findBy(program.params(), param.name, &ProgramParam::name))
        value = known->value;
      fields("value", value);
    };
    auto put = [&](JsonFields &fields) {
      fields("number", build.number);
      fields("input", options.request.input);
      fields("good", isGood);
      fields.raw("seconds", fmt::to_string(took.count()));
      fields("messages", errorText);
      fields("figures", figures);
      fields.objects("params", compiled.params, putParam);
      fields.objects("costs", isGood ? costsOf(program) : Costs(),
                     [](JsonFields &of, const auto &cost) {
                       of("name", cost.first);
                       of("value", cost.second);
                     });
    };
    llvm::raw_string_ostream stream(build.state);
    Writer(stream).object(put);
  }

  static std::string figuresOf(const Compiled &compiled,
                               DiagnosticEngine &diags) {
    const Program &program = compiled.program;
    const TimedRun *timed =
        Analyses(program).timedRun(compiled.comm.transports.front(), diags);
    if (!timed)
      return "";
    Report report = reportOf(program, *timed);
    auto most =
        std::ranges::max_element(report.ranks, {}, [](const RankReport &rank) {
          return rank.memory.memory;
        });
    const Units &units = program.units();
    std::string text = fmt::format("makespan {}, bubble {:.1f} %, memory {}",
                                   units.time(report.makespan),
                                   double(report.globalBubbleRate.value) / 1e7,
                                   units.memory(most->memory.memory));
    return most->memoryLimit ? text + " of " + units.memory(*most->memoryLimit)
                             : text;
  }

  /// The costs that the page lets choose, each with its value; with none where
  /// it is not the same everywhere, or there is no limit.
  using Costs = std::vector<std::pair<std::string, std::string>>;
  static Costs costsOf(const Program &program) {
    Costs costs;
    auto add = [&](StringRef name, const std::set<int64_t> &values,
                   decimal::Scale scale) {
      costs.emplace_back(name,
                         values.size() != 1
                             ? ""
                             : decimal::format(*values.begin(), scale.places));
    };
    Durations durations(program);
    std::set<int64_t> latencies, limits;
    for (auto [id, kind] : llvm::enumerate(program.kinds().rows())) {
      if (!kind.occupiesRank())
        continue;
      std::set<int64_t> times;
      for (PipeId pipe : program.pipeIds())
        for (uint32_t stage = 0; stage != program.pipe(pipe).numStages();
             ++stage) {
          Action action;
          action.kind = KindId(id);
          action.pipe = pipe;
          action.stage = StageId(stage);
          action.microbatch = program.pipe(pipe).firstMicrobatch;
          times.insert(durations.of(action));
        }
      add(kind.mnemonic, times, cost::scale);
    }
    for (const CostSetting &setting : program.costs().of(Cost::Latency))
      latencies.insert(setting.values.begin(), setting.values.end());
    if (latencies.empty())
      latencies = {0};
    add("latency", latencies, cost::scale);
    MemoryModel memory(program);
    for (uint32_t rank = 0; rank != program.numRanks(); ++rank)
      if (auto limit = memory.limitOf(RankId(rank)))
        limits.insert(*limit);
    add("limit", limits, amount::scale);
    return costs;
  }

  const Options &options;
  Session::Files files;
  std::list<Build> builds; ///< The newest last.
  uint64_t numbers = 0;
};

/// A page of the user alone that leads to another: its address may stand in the
/// arguments of a process, which everybody can read.
class RedirectPage {
public:
  RedirectPage() = default;
  RedirectPage(const RedirectPage &) = delete;
  ~RedirectPage() { remove(); }

  bool writeTo(StringRef to) {
    int file;
    SmallString<128> model;
    llvm::sys::path::system_temp_directory(/*ErasedOnReboot=*/true, model);
    llvm::sys::path::append(model, "ppcc-serve-%%%%%%%%.html");
    if (llvm::sys::fs::createUniqueFile(
            model, file, path, llvm::sys::fs::OF_None,
            llvm::sys::fs::owner_read | llvm::sys::fs::owner_write) ||
        llvm::sys::fs::make_absolute(path))
      return false;
    llvm::sys::RemoveFileOnSignal(path);
    llvm::raw_fd_ostream out(file, /*shouldClose=*/true);
    out << "<!doctype html>\n<meta charset=\"utf-8\">\n"
           "<meta name=\"referrer\" content=\"no-referrer\">\n"
           "<meta http-equiv=\"refresh\" content=\"0; url="
        << to << "\">\n<title>ppcc</title>\n<a href=\"" << to
        << "\">ppcc serve</a>\n";
    return true;
  }
  std::string address() const { return fileUri(path); }
  void remove() {
    if (path.empty())
      return;
    llvm::sys::fs::remove(path);
    llvm::sys::DontRemoveFileOnSignal(path);
    path.clear();
  }

private:
  SmallString<128> path;
};

} // namespace

int ppcc::runServe(const Invocation &call) {
  Options options;
  uint16_t port = 0;
  bool opens = false;
  OptionParser parser(call, "ppcc serve");
  addInput(parser, options, "The schedule, or a program of another tool");
  parser.number("--port", port, 0, 65535,
                "The port on 127.0.0.1; a free one by default");
  parser.flag("--open", opens, "Open the page in the browser (xdg-open)");
  addCompileOptions(parser, options);
  options.emit = "html";
  options.hasEmitOption = false;
  addPictureOptions(parser, options);
  if (std::optional<int> code = parser.parse())
    return *code;
  if (options.request.input == "-")
    return parser.usageError(
        "a file is to change, which standard input does not");
  if (!findLibraryFile(options.request.input) &&
      !call.files->exists(options.request.input) &&
      !consoleSession(call, options.console)->open(options.request.input))
    return Errors;
  HttpServer server;
  if (llvm::Error error = server.listen(port))
    return parser.usageError(llvm::toString(std::move(error)));
  LiveServer live(options, call.files);
  std::string address =
      fmt::format("http://127.0.0.1:{}/{}/", server.port(), live.token);
  call.out << "serving " << options.request.input << " at " << address << '\n';
  call.out.flush();
  RedirectPage redirect;
  live.onPageServed = [&] { redirect.remove(); };
  if (opens)
    if (auto browser = llvm::sys::findProgramByName("xdg-open"))
      if (redirect.writeTo(address))
        llvm::sys::ExecuteNoWait(*browser, {*browser, redirect.address()},
                                 std::nullopt);
  for (;;)
    server.serve(
        std::chrono::milliseconds(15),
        [&](const HttpRequest &request) { return live.answer(request); },
        live.descriptor());
}
