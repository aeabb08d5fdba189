// Leads a schedule through the phases.
#include "ppcc/Basic/Diagnostics/Import.h"
#include "ppcc/Basic/Diagnostics/Instance.h"
#include "ppcc/Basic/Diagnostics/Transforms.h"
#include "ppcc/Compiler/Compiler.h"

#include "Loader.h"
#include "ppcc/Compiler/CommPolicy.h"
#include "ppcc/Compiler/ScheduleLibrary.h"
#include "ppcc/Expand/Expand.h"
#include "ppcc/Import/Importer.h"
#include "ppcc/Parse/Parser.h"
#include "ppcc/Pass/PassRegistry.h"
#include "ppcc/Verify/Passes.h"

#include "llvm/Support/Path.h"

using namespace ppcc;

void PhaseTimes::print(raw_ostream &out) const {
  out << "  seconds  phase\n";
  for (const auto &[phase, seconds] : rows)
    out << fmt::format("{:9.4f}  {}\n", seconds, phase);
}

static bool run(const Pipeline &pipeline, const PassRequest &request,
                Session &session, Program &program) {
  session.flush(); // Passes may print.
  Pipeline verifier;
  Instrumentation instrumentation = request.instrumentation;
  instrumentation.printProgram = printProgram;
  if (request.verifiesEach) {
    append("verify", makePassRegistry(), verifier);
    instrumentation.verifyEach = &verifier;
  }
  PassContext context(session.sources, session.diags);
  return runPipeline(pipeline, program, context, instrumentation);
}

bool ppcc::runPasses(const PassRequest &request, Session &session,
                     Program &program, const CommPolicy &comm,
                     DynamicRule dynamic) {
  auto held = session.batchDiagnostics();
  auto pipeline = parsePipeline(request.passes, makePassRegistry(comm, dynamic),
                                session.sources, session.diags);
  return pipeline && run(*pipeline, request, session, program);
}

/// The format of the program that is the input, or null for a schedule: that
/// which is asked for, of the file's extension, or of how its text begins.
static const Importer *programFormat(const Request &request, StringRef fileName,
                                     StringRef text) {
  if (!request.from.empty())
    return findImporter(request.from);
  if (llvm::sys::path::extension(fileName) == ".pp")
    return nullptr;
  const Importer *byName = importerOfName(fileName);
  return byName ? byName : importerOfText(text);
}

static std::optional<InputFile> openInput(const Request &request,
                                          Session &session, Loader &loader) {
  SourceManager &sources = session.sources;
  sources.maxBytes = request.maxSourceBytes.value_or(sources.maxBytes);
  // A program is long, other than a schedule.
  auto source =
      loader.open(request.input, [&](StringRef name, StringRef begin) {
        return request.maxSourceBytes.value_or(
            size_t(1) << (programFormat(request, name, begin) ? 31 : 20));
      });
  if (!source)
    return std::nullopt;
  return InputFile{*source, programFormat(request, sources.name(*source),
                                          sources.text(*source))};
}

std::pair<StringRef, StringRef> ppcc::splitName(StringRef text) {
  auto [file, name] = text.rsplit(':');
  bool isName =
      !file.empty() && !name.empty() && !llvm::isDigit(name[0]) &&
      llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; });
  return isName ? std::pair(file, name) : std::pair(text, StringRef());
}

std::optional<InputFile> ppcc::openInput(const Request &request,
                                         Session &session) {
  ast::Context context;
  Loader loader(session.sources, context, session.diags);
  return ::openInput(request, session, loader);
}

namespace {

using StopAfter = Request::StopAfter;

struct Compilation {
  const Request &request;
  Session &session;
  Compiled &compiled;

  bool run() {
    Loader loader(sources, context, diags);
    auto input = ::openInput(request, session, loader);
    if (!input)
      return false;
    compiled.usageError = findMisuse(*input);
    if (!compiled.usageError.empty())
      return false;
    return input->format ? compileProgram(input->source, *input->format)
                         : compileSchedule(loader, input->source);
  }

  /// What of the request is not for an input that is a program, or a schedule,
  /// in the words of the command line.
  std::string findMisuse(const InputFile &input) const {
    bool isProgram = input.format != nullptr;
    bool givesParams = !request.params.empty() &&
                       !request.ignoresUnknownParams &&
                       !(isProgram && isFamilyFile(input.source, sources));
    struct Rule {
      bool isGiven, forProgram;
      StringRef text;
    };
    const CommRequest &comm = request.comm;
    bool fusesNothing = comm.order == CommOrder::None &&
                        ((comm.fusion && comm.fusion->fusion != Fusion::None) ||
                         comm.prefetch || comm.preconnect == Preconnect::On);
    const Rule rules[] = {
        {givesParams, false,
         "-D gives parameters of a schedule values; the input is a program"},
        {!request.layout.empty(), false,
         "--layout gives the stages of a schedule layers; the input is a "
         "program"},
        {!request.model.empty(), false,
         "--model says what the work of a schedule is; the input is a program"},
        {!request.cluster.empty(), false,
         "--cluster says what a schedule runs on; the input is a program"},
        {!request.schedule.empty(), false,
         "FILE:NAME chooses a schedule; the input is a program"},
        {!request.rules.empty(), false,
         "--with gives a schedule rules to follow; the input is a program"},
        {request.until == StopAfter::Checked, false,
         "--list-params is for schedules; the input is a program"},
        {request.until == StopAfter::Parsed, false,
         "--emit=ast is for schedules; the input is a program"},
        {fusesNothing, true,
         "--comm-order=none leaves out the messages that --fuse, --prefetch "
         "and --preconnect are about"},
        {request.microbatches.has_value(), true,
         "--microbatches is for programs; give the parameter of the schedule "
         "with -D"},
    };
    for (const Rule &rule : rules)
      if (rule.isGiven && rule.forProgram != isProgram)
        return rule.text.str();
    if (!request.from.empty() && !findImporter(request.from))
      return "--from: unknown program format `" + request.from + "`";
    for (const std::string &setting : request.costs.settings)
      if (std::string wrong = checkCost(setting); !wrong.empty())
        return "--cost: " + wrong;
    return "";
  }

  /// Verifies what somebody else wrote; adds messages when it has none.
  bool compileProgram(uint32_t source, const Importer &format) {
    ImportContext importContext{
        source,
        sources,
        diags,
        {request.microbatches, request.limits.maxActions, {}}};
    importContext.options.ignoresUnknownParams = request.ignoresUnknownParams;
    for (const sema::ParamValue &param : request.params)
      importContext.options.params.emplace_back(param.name, param.value);
    auto program = times.measure(
        "import", [&] { return importProgram(format, importContext); });
    if (!program)
      return false;
    const Facts facts = program->facts();
    if (request.comm.preconnect == Preconnect::Off)
      program->setFacts({program->provenUnder(), {}});
    compiled.program = std::move(*program);
    keepConnections(importContext);
    // A copy, where passes change the rows; facts they always do.
    std::optional<Program> given;
    if (!importContext.derived.empty() &&
        (!compiled.program.firstMessage() || comm.fusion || request.rolled ||
         !request.passes.passes.empty()))
      given = compiled.program;
    if (!finish(nullptr))
      return false;
    Program &read = given ? *given : compiled.program;
    const Facts found = read.facts();
    read.setFacts(facts);
    bool isRight = checkDerived(importContext, read);
    read.setFacts(found);
    return isRight;
  }

  /// Whether what a file says of its rows follows from them: what runs it may
  /// rely on that. O(bytes).
  bool checkDerived(const ImportContext &read, const Program &given) {
    for (auto [key, text] : read.derived) {
      std::string truth = derivedJson(given, key);
      // The first number or text that differs, in both.
      size_t at = 0, atTruth = 0, token = 0, trueToken = 0;
      auto skipBlanks = [](StringRef in, size_t &i) {
        i = std::min(in.find_first_not_of(" \t\r\n", i), in.size());
        return i != in.size();
      };
      while (skipBlanks(text, at) & skipBlanks(truth, atTruth) &&
             text[at] == truth[atTruth])
        if (++at, ++atTruth; !llvm::isAlnum(text[at - 1]))
          std::tie(token, trueToken) = std::pair(at, atTruth);
      if (at == text.size() && atTruth == truth.size())
        continue;
      auto word = [](StringRef from) {
        return from.take_until([](char c) { return c == ',' || c == '\n'; })
            .trim(" ]\"");
      };
      uint32_t begin = text.begin() + token - sources.text(read.file).begin();
      return diags.report<diag::ImportJsonDerived>(
          SourceRange{sources.loc(read.file, begin),
                      sources.loc(read.file, begin + 1)},
          key, word(text.drop_front(token)),
          word(StringRef(truth).drop_front(trueToken)));
    }
    return true;
  }

  /// Tells the observer of the names in what is right of files that do not
  /// parse.
  void observeRest(ArrayRef<uint32_t> read) {
    DiagnosticEngine unheard([](const Diagnostic &) {});
    ast::Context own;
    Loader loader(sources, own, unheard, /*keepsRest=*/true);
    sema::check(*loader.load(read), own, commWords(), unheard,
                session.observer);
  }

  /// On the transports that a program was made for its list of connections is
  /// whole; an instance of many is for these unless others are asked for.
  void keepConnections(const ImportContext &read) {
    std::vector<Transport> made;
    for (const std::string &name : read.transports)
      if (auto transport = findTransport(name))
        made.push_back(*transport);
    if (read.isInstance && comm.transports.empty())
      comm.transports = made;
    const std::vector<Transport> &asked =
        comm.transports.empty() ? CommPolicy().transports : comm.transports;
    bool isWhole = read.listsConnections && compiled.program.firstMessage() &&
                   llvm::all_of(asked, [&](const Transport &one) {
                     return findBy(made, one.name, &Transport::name);
                   });
    if (!comm.preconnect && isWhole)
      comm.preconnect = Preconnect::Off;
  }

  bool compileSchedule(Loader &loader, uint32_t source) {
    std::vector<uint32_t> read = {source};
    if (!request.rules.empty())
      read.insert(read.begin(), ruleApplications());
    auto files = times.measure("parse", [&] { return loader.load(read); });
    if (!files) {
      if (session.observer)
        observeRest(read);
      return false;
    }
    compiled.files = std::move(*files);
    if (request.until == StopAfter::Parsed)
      return true;
    SectionChoice model{"model", request.model},
        cluster{"cluster", request.cluster};
    for (SectionChoice *choice : {&model, &cluster})
      if (!choice->text.empty() && !open(*choice, loader))
        return false;
    auto module = times.measure("check", [&] {
      return sema::check(compiled.files, context, commWords(), diags,
                         session.observer);
    });
    if (!module)
      return false;
    const sema::Schedule *schedule = sema::selectSchedule(
        *module, request.schedule, sources.name(source), diags);
    if (!schedule)
      return false;
    sema::Selection selection{schedule};
    if (!select(model, *module, schedule->model, selection.model) ||
        !select(cluster, *module, schedule->cluster, selection.cluster))
      return false;
    for (const sema::Owner &owner : ownersOf(selection))
      for (const sema::ScheduleParam &param : owner.declaration->params)
        compiled.params.push_back(textOf(param, owner));
    auto layout = layoutChoice(selection);
    if (!layout)
      return false;
    if (request.until == StopAfter::Checked) {
      compiled.checked = std::make_shared<Checked>(
          Checked{std::move(*module), selection, std::move(*layout)});
      return true;
    }
    auto program = times.measure(
        "expand", [&] { return expandSchedule(*module, selection, *layout); });
    if (!program)
      return false;
    compiled.program = std::move(*program);
    return finish(&selection);
  }

  /// What --model or --cluster names.
  struct SectionChoice {
    StringRef word, text;
    StringRef name = {};                 ///< Empty for the only one.
    std::optional<uint32_t> source = {}; ///< Of the file that declares it.
  };

  static StringRef nameIn(const ast::Stmt *item, StringRef word) {
    if (auto *model = dyn_cast<ast::ModelItem>(item))
      return word == "model" ? model->name.text : "";
    auto *cluster = dyn_cast<ast::ClusterItem>(item);
    return cluster && word == "cluster" ? cluster->name.text : "";
  }

  /// Finds the file that declares what is chosen: one of those that the
  /// schedule needs, for a bare name that they know, else one that is loaded.
  bool open(SectionChoice &choice, Loader &loader) {
    StringRef file = choice.text;
    for (const ast::File &known : llvm::reverse(compiled.files))
      for (const ast::Stmt *item : known.items)
        if (nameIn(item, choice.word) == file) {
          choice.name = file;
          choice.source = known.source;
          return true;
        }
    std::tie(file, choice.name) = splitName(file);
    choice.source = loader.open(file);
    return choice.source && loader.loadInto(compiled.files, *choice.source);
  }

  /// The section that is chosen, else that of the schedule, if any. False after
  /// a report that there is none.
  bool select(const SectionChoice &choice, const sema::Module &module,
              const std::optional<sema::Section> &own,
              const sema::Section *&place) {
    if (choice.text.empty()) {
      place = own ? &*own : nullptr;
      return true;
    }
    std::vector<StringRef> names;
    for (const sema::Section &section : module.sections)
      if (section.source == *choice.source && section.word() == choice.word) {
        names.push_back(section.name);
        if (choice.name.empty() || section.name == choice.name)
          place = &section;
      }
    StringRef file = sources.name(*choice.source);
    if (names.empty())
      diags.report<diag::NoSection>(Location(), file, choice.word);
    else if (!place)
      diags.report<diag::UnknownSection>(Location(), choice.word, choice.name,
                                         file, didYouMean(choice.name, names));
    else if (choice.name.empty() && names.size() > 1)
      diags.report<diag::AmbiguousSection>(
          Location(), file, names.size(), choice.word, llvm::join(names, ", "));
    else
      return true;
    return false;
  }

  /// The rules that are requested, as a file that follows them.
  uint32_t ruleApplications() {
    std::string text; // A rule a line, as on the command line.
    for (const std::string &rule : request.rules)
      text += "with " + rule + ";\n";
    text += "import \"" + request.ruleFile + "\";\n";
    return sources.add("--with",
                       llvm::MemoryBuffer::getMemBufferCopy(text, "--with"));
  }

  static ParameterText textOf(const sema::ScheduleParam &param,
                              const sema::Owner &owner) {
    const ast::Parameter &decl = *param.decl;
    std::string name = decl.name.text.str();
    if (owner.word != "schedule")
      name = owner.word.str() + "." + name;
    ParameterText text{name, typeName(param.type).str(), "", ""};
    if (decl.end)
      text.range = fmt::format("in {} .. {}", sema::source(decl.lowerBound),
                               sema::source(decl.end));
    else if (decl.lowerBound)
      text.range = ">= " + sema::source(decl.lowerBound);
    if (decl.defaultValue)
      text.defaultValue = sema::source(decl.defaultValue);
    return text;
  }

  /// A layout that the schedule was written for stays with another model.
  std::optional<sema::LayoutOverride>
  layoutChoice(const sema::Selection &selection) {
    sema::LayoutOverride layout;
    bool isByCost = request.layout == "by-cost";
    if (isByCost || request.layout == "evenly")
      layout.isByCost = isByCost;
    const std::optional<sema::Section> &own = selection.schedule->model;
    if (!request.model.empty() && request.layout.empty() && own &&
        own->layout && !selection.model->layout) {
      for (StringRef stage : own->layout->stages)
        layout.stages.push_back(stage.str());
      layout.place = own->layout->text.range;
    }
    if (layout.isByCost || request.layout.empty())
      return layout;
    constexpr StringRef name = "--layout";
    auto file = sources.lookup(name);
    if (!file)
      file = sources.add(
          name, llvm::MemoryBuffer::getMemBuffer(request.layout, name));
    auto given = parseLayout(request.layout, sources.loc(*file, 0), diags);
    if (!given)
      return std::nullopt;
    layout.stages = std::move(*given);
    return layout;
  }

  std::optional<Program> expandSchedule(const sema::Module &module,
                                        const sema::Selection &selection,
                                        const sema::LayoutOverride &layout) {
    sema::Evaluator evaluator(module, diags, request.limits.maxSteps());
    evaluator.observer = session.observer;
    auto instance = sema::instantiate(selection, params(selection), layout,
                                      request.limits, evaluator, diags);
    if (!instance)
      return std::nullopt;
    instance->rows = request.rows;
    auto addCosts = [&](Program &program) {
      return applyCosts(request.costs, session, program);
    };
    return expand(module, std::move(*instance), request.limits, evaluator,
                  sources, addCosts, diags);
  }

  /// The values for the parameters of what is compiled.
  std::vector<sema::ParamValue> params(const sema::Selection &selection) const {
    std::vector<sema::ParamValue> values = request.params;
    if (request.ignoresUnknownParams)
      llvm::erase_if(values, [&](const sema::ParamValue &value) {
        return !hasParameter(value.name, ownersOf(selection));
      });
    return values;
  }

  /// Gives the program its costs, and runs the passes; `selection` is null for
  /// one that was read.
  bool finish(const sema::Selection *selection) {
    if (request.until == StopAfter::Expanded)
      return true;
    if (!applyCosts(request.costs, session, compiled.program))
      return false;
    auto policy = decideComm(comm, selection, compiled.program, diags);
    if (!policy)
      return false;
    compiled.comm = std::move(*policy);
    size_t transports = compiled.comm.transports.size();
    if (transports > 1 &&
        compiled.program.size() * transports > 2 * request.limits.maxActions)
      return diags.report<diag::TooManyTransports>(
          {}, compiled.program.size(), transports,
          2 * request.limits.maxActions);
    if (request.torch.fsdp)
      compiled.comm.torch = request.torch;
    return times.measure("passes", [&] { return transform(); });
  }

  bool transform() {
    Program &program = compiled.program;
    if (!request.passes.passes.empty())
      return runPasses(request.passes, session, program, compiled.comm,
                       request.dynamic);
    Pipeline pipeline = compiled.comm.pipeline();
    if (request.checksMemory)
      pipeline.push_back({"verify-memory", PassKind::Check,
                          verifyMemory(compiled.comm.transports.front())});
    if (request.dynamic != DynamicRule::None)
      pipeline.push_back(
          {"verify-dynamic", PassKind::Check, verifyDynamic(request.dynamic)});
    if (request.rolled)
      append("roll", makePassRegistry(), pipeline);
    return ::run(pipeline, request.passes, session, program);
  }

  CommRequest comm = request.comm;
  SourceManager &sources = session.sources;
  DiagnosticEngine &diags = session.diags;
  ast::Context &context = *compiled.context;
  PhaseTimes &times = compiled.times;
};

} // namespace

Compiled ppcc::compile(const Request &request, Session &session) {
  auto held = session.batchDiagnostics();
  if (request.byFamily && !session.observer)
    if (auto known = request.byFamily(request, session))
      return std::move(*known);
  Compiled compiled;
  compiled.context = std::make_unique<ast::Context>();
  compiled.isGood = Compilation{request, session, compiled}.run();
  return compiled;
}

bool ppcc::emit(const Compiled &compiled, const Emitter &format,
                raw_ostream &out, Session &session, EmitOptions options) {
  options.transport = compiled.comm.transports.front();
  auto held = session.batchDiagnostics();
  EmitContext context{session.diags, session.sources, std::move(options)};
  return emitProgram(format, compiled.program, out, context);
}
