// `ppcc serve`: a page on this machine that shows a schedule while its file
// changes.
#include "Http.h"
#include "Options.h"
#include "Watch.h"
#include "ppcc/Emit/Emitter.h"
#include "ppcc/Support/Embedded.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/Program.h"

#include <random>

using namespace ppcc;
namespace json = llvm::json;

namespace ppcc {
/// live.html alone.
ArrayRef<EmbeddedFile> livePage();
} // namespace ppcc

namespace {

constexpr uint64_t mostActions = 1'000'000; ///< While somebody drags a slider.

/// What became of the schedule, with some values.
struct Build {
  llvm::IntrusiveRefCntPtr<WatchedFiles> files;
  uint64_t number = 0;
  std::string state; ///< JSON for the page.
  std::string page;  ///< The viewer; empty when there are errors.
};

class Live {
public:
  Live(const Options &options, Session::Files files)
      : options(options), files(std::move(files)) {
    std::random_device random;
    for (int i = 0; i != 4; ++i)
      token += fmt::format("{:08x}", random());
  }

  std::string token;

  /// `/TOKEN/` is the page, `/TOKEN/state` waits for another build than that of
  /// `after`, `/TOKEN/view` is its picture. `D.NAME` is the value of a
  /// parameter, `cost.NAME` a cost.
  std::optional<HttpResponse> answer(const HttpRequest &request) {
    StringRef path = request.path;
    if (!path.consume_front("/" + token + "/"))
      return HttpResponse{404, "text/plain", "not here"};
    std::string framed = "frame-ancestors 'self'";
    if (path.empty())
      return HttpResponse{
          200, "text/html; charset=utf-8", livePage().front().text.str(),
          "default-src 'none'; script-src 'unsafe-inline'; style-src "
          "'unsafe-inline'; connect-src 'self'; frame-src 'self'; " +
              framed};
    if (path != "state" && path != "view")
      return HttpResponse{404, "text/plain", "not here"};
    std::string key;
    uint64_t after = 0;
    for (const auto &[name, value] : request.query)
      if (name != "after")
        key += name + "=" + value + "\n";
      else
        StringRef(value).getAsInteger(10, after);
    Build &build = current(key, request);
    if (path == "view")
      return HttpResponse{200, "text/html; charset=utf-8", build.page,
                          "default-src 'none'; script-src 'unsafe-inline'; "
                          "style-src 'unsafe-inline'; " +
                              framed};
    if (build.number == after)
      return std::nullopt;
    return HttpResponse{200, "application/json", build.state};
  }

private:
  Build &current(const std::string &key, const HttpRequest &request) {
    auto *found = findBy(builds, key, &NamedBuild::first);
    if (!found) {
      if (builds.size() == 8)
        builds.pop_front();
      found = &builds.emplace_back(key, Build());
    }
    Build &build = found->second;
    if (!build.files || build.files->hasChanged())
      make(request, build);
    return build;
  }

  void make(const HttpRequest &request, Build &build) {
    auto start = std::chrono::steady_clock::now();
    build.files = llvm::makeIntrusiveRefCnt<WatchedFiles>(files);
    build.number = ++numbers;
    build.page.clear();
    Options chosen = options;
    std::string complaint;
    for (const auto &[key, value] : request.query) {
      StringRef name = key;
      if (name.consume_front("D.")) {
        llvm::erase_if(chosen.request.params, [&](const sema::ParamValue &one) {
          return one.name == name;
        });
        parseDefinition(name.str() + "=" + value,
                        chosen.request.params.emplace_back());
      } else if (name.consume_front("cost.")) {
        std::string setting = name.str() + "=" + value;
        if (std::string wrong = checkCost(setting); wrong.empty())
          chosen.request.costs.settings.push_back(setting);
        else
          complaint += wrong + "\n";
      }
    }
    chosen.request.limits.maxActions =
        std::min(chosen.request.limits.maxActions, mostActions);
    Session session(build.files);
    Compiled compiled = compile(chosen.request, session);
    llvm::raw_string_ostream page(build.page);
    bool isGood = compiled && emit(compiled, *findEmitter("html"), page,
                                   session, options.emitOptions);
    if (!isGood)
      build.page.clear();
    complaint += compiled.misuse + session.text();
    llvm::raw_string_ostream stream(build.state);
    build.state.clear();
    write(json::OStream(stream), build, compiled, isGood, complaint,
          std::chrono::steady_clock::now() - start);
  }

  void write(json::OStream json, const Build &build, const Compiled &compiled,
             bool isGood, const std::string &complaint,
             std::chrono::duration<double> took) {
    const Program &program = compiled.program;
    json.object([&] {
      json.attribute("number", int64_t(build.number));
      json.attribute("input", json::fixUTF8(options.request.input));
      json.attribute("good", isGood);
      json.attribute("seconds", took.count());
      json.attribute("messages", json::fixUTF8(complaint));
      json.attributeArray("params", [&] {
        for (const ParameterText &param : compiled.params)
          json.object([&] {
            json.attribute("name", param.name);
            json.attribute("type", param.type);
            json.attribute("range", param.range);
            std::string value = param.defaultValue;
            if (auto *given = findBy(options.request.params, param.name,
                                     &sema::ParamValue::name))
              value = given->value;
            if (auto *known =
                    findBy(program.params(), param.name, &ProgramParam::name))
              value = known->value;
            json.attribute("value", json::fixUTF8(value));
          });
      });
      json.attributeArray("costs", [&] {
        for (const KindInfo &kind : program.kinds().rows())
          if (kind.occupiesRank())
            json.value(kind.letters);
        for (StringRef name : {"latency", "limit"})
          json.value(name);
      });
    });
  }

  const Options &options;
  Session::Files files;
  using NamedBuild = std::pair<std::string, Build>;
  std::list<NamedBuild> builds; ///< The newest last.
  uint64_t numbers = 0;
};

} // namespace

int ppcc::runServe(const Invocation &call) {
  Options options;
  uint16_t port = 0;
  bool opens = false;
  OptionParser parser(
      call, "ppcc serve",
      "Shows a schedule in a browser of this machine, while its "
      "file changes: its timeline, what is wrong with it, and "
      "sliders for parameters and costs");
  parser.positional("INPUT", options.request.input,
                    "The schedule, or a program of another tool",
                    /*isRequired=*/true);
  parser.number("--port", port, 0, 65535, "Of 127.0.0.1; a free one without");
  parser.flag("--open", opens, "Open the page in the browser (xdg-open)");
  addCompileOptions(parser, options);
  options.emit = "html";
  options.choosesFormat = false;
  addPictureOptions(parser, options);
  if (std::optional<int> code = parser.parse())
    return *code;
  if (options.request.input == "-")
    return parser.wrong("a file is to change, which standard input does not");
  HttpServer server;
  if (llvm::Error error = server.listen(port))
    return parser.wrong(llvm::toString(std::move(error)));
  Live live(options, call.files);
  std::string address =
      fmt::format("http://127.0.0.1:{}/{}/", server.port(), live.token);
  call.out << "serving " << options.request.input << " at " << address << '\n';
  call.out.flush();
  if (opens)
    if (auto browser = llvm::sys::findProgramByName("xdg-open"))
      llvm::sys::ExecuteNoWait(*browser, {*browser, address}, std::nullopt);
  for (;;)
    server.serve(
        std::chrono::milliseconds(15),
        [&](const HttpRequest &request) { return live.answer(request); });
}
