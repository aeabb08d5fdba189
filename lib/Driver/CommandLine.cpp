// Declares and reads the command line of a tool. CLI11, which parses, is seen
// here alone: it takes compilers longer than all else.
#include "ppcc/Driver/CommandLine.h"

#include "Commands.h"
#include "ppcc/Basic/Diagnostics.h" // Formats StringRef, in all files alike.
#include "ppcc/Compiler/ScheduleLibrary.h"
#include "ppcc/Driver/Output.h"
#include "ppcc/IR/Costs.h"
#include "ppcc/Support/Printable.h"

#include <CLI/CLI.hpp>

#include <set>
#include <sstream>

using namespace ppcc;

struct OptionParser::Impl {
  Impl(const Invocation &call, Text name)
      : args(call.args), out(call.out), err(call.err), app("", name) {}

  ArrayRef<const char *> args;
  raw_ostream &out, &err;
  CLI::App app;
  struct Choice {
    std::vector<StringRef> names;
    std::function<void(Text)> set;
  };
  std::map<std::string, Choice> choices; ///< By the names of an option.

  /// What some options are for.
  struct Scope {
    std::function<bool()> holds;
    std::string why;
    std::set<const CLI::Option *> options;
  };
  std::vector<Scope> scopes;
  std::vector<std::function<std::string()>> completions, checks;
  std::vector<std::pair<const CLI::Option *, const std::string *>> outputs;

  void list() const;
  std::string help(bool all);
  std::string findConflict() const;
  const CLI::Option *optionOf(StringRef arg) const;
  std::string wrongValue() const;
  std::string unknownOption() const;
  std::string unexpected(StringRef argument) const;
};

/// Writes what shells complete.
void OptionParser::Impl::list() const {
  for (const CLI::Option *option : app.get_options()) {
    std::string names = option->get_name(/*positional=*/false, true);
    auto found = choices.find(names);
    bool takes = option->get_items_expected_max() != 0;
    out << names << '\t' << (takes ? option->get_option_text() : "") << '\t'
        << (found == choices.end() ? "" : llvm::join(found->second.names, " "))
        << '\t' << option->get_description() << '\n';
  }
}

/// The option that an argument names.
const CLI::Option *OptionParser::Impl::optionOf(StringRef arg) const {
  if (!arg.starts_with("-") || arg.size() == 1)
    return nullptr;
  return app.get_option_no_throw(
      (arg.starts_with("--") ? arg.split('=').first : arg.take_front(2)).str());
}

/// What is wrong with the first value that CLI11 would take otherwise than it
/// looks: for an empty one the next argument, and an option for a value.
std::string OptionParser::Impl::wrongValue() const {
  for (size_t i = 1; i < args.size() && StringRef(args[i]) != "--"; ++i) {
    StringRef arg = args[i];
    const CLI::Option *option = optionOf(arg);
    if (!option)
      continue;
    bool isLong = arg.starts_with("--");
    StringRef name = isLong ? arg.split('=').first : arg.take_front(2);
    StringRef value = arg.drop_front(name.size());
    bool isAttached = !value.empty();
    if (isAttached)
      value.consume_front("=");
    else if (option->get_items_expected_max() == 0 || ++i == args.size())
      continue;
    else
      value = args[i];
    if (value.empty())
      return fmt::format("{}: the value is empty; give one, or omit the option",
                         name);
    if (!isAttached && optionOf(value))
      return fmt::format("{0}: its value is missing, `{1}` is an option; if "
                         "that is the value, write `{2}{1}`",
                         name, value, (name + (isLong ? "=" : "")).str());
  }
  return "";
}

static bool isCostName(StringRef name) {
  return llvm::is_contained(costItems(), name.split('.').first);
}

/// How a value is given that stands in the command line as something else: of a
/// parameter, or a cost.
static std::string definitionHint(const CLI::App &app, StringRef name,
                                  StringRef value) {
  if (app.get_option_no_throw("--cost") && isCostName(name))
    return fmt::format("give costs as in `--cost {}={}`", name, value);
  if (app.get_option_no_throw("-D"))
    return fmt::format("give parameters as in `-D {}={}`", name, value);
  return "";
}

/// The first unknown option, with which command has it, or what it was probably
/// meant to be.
std::string OptionParser::Impl::unknownOption() const {
  std::vector<std::string> names;
  for (const CLI::Option *option : app.get_options())
    for (const std::string &name : option->get_lnames())
      names.push_back("--" + name);
  for (size_t i = 1; i < args.size() && StringRef(args[i]) != "--"; ++i) {
    StringRef arg = args[i];
    StringRef name =
        arg.starts_with("--") ? arg.split('=').first : arg.take_front(2);
    if (const CLI::Option *option = optionOf(arg)) {
      i += name == arg && option->get_items_expected_max() != 0;
    } else if (arg.starts_with("-") && arg.size() != 1) {
      std::string others = commandsWith(name);
      if (!others.empty())
        return "unknown option " + arg.str() + "; " + others;
      StringRef bare = name.ltrim('-');
      if (std::string hint = definitionHint(
              app, bare, name == arg ? "VALUE" : arg.split('=').second);
          !hint.empty() && (bare.size() == 1 || isCostName(bare)))
        return "unknown option " + arg.str() + "; " + hint;
      std::vector<std::string> longer;
      for (const std::string &known : names)
        if (name.size() > 4 && StringRef(known).starts_with(name))
          longer.push_back("`" + known + "`");
      return "unknown option " + arg.str() +
             (longer.empty()
                  ? didYouMean(name, namesIn(names))
                  : "; did you mean " + llvm::join(longer, " or ") + "?");
    }
  }
  return "";
}

/// What to say of an argument that is one too many.
std::string OptionParser::Impl::unexpected(StringRef argument) const {
  std::string hint;
  if (auto [name, value] = argument.split('='); !value.empty())
    hint = definitionHint(app, name, value);
  // `ppcc rport my.pp`: the first of two inputs is no file, but a command.
  StringRef first = args[1];
  if (hint.empty() && app.get_name() == "ppcc" && !first.starts_with("-") &&
      !first.contains('.') && !findLibraryFile(first))
    return fmt::format(
        "unknown command `{}`{}", first,
        llvm::is_contained({"tune", "profile", "check-proof"}, first)
            ? fmt::format("; `ppcc-{}` is a program of its own", first)
            : didYouMean(first, namesIn(commands(), &Command::name)));
  return fmt::format("`{}` was not expected{}{}", argument,
                     hint.empty() ? "" : "; ", hint);
}

/// `--output`, or `-D`.
static std::string nameOf(const CLI::Option &option) {
  return option.get_lnames().empty() ? option.get_name()
                                     : "--" + option.get_lnames().front();
}

/// What is wrong with the options that were given, all together.
std::string OptionParser::Impl::findConflict() const {
  for (const auto &complete : completions)
    if (std::string error = complete(); !error.empty())
      return error;
  for (const CLI::Option *option : app.get_options())
    for (const Scope &scope : scopes)
      if (option->count() != 0 && scope.options.count(option) && !scope.holds())
        return nameOf(*option) + ": " + scope.why;
  for (const auto &rule : checks)
    if (std::string error = rule(); !error.empty())
      return error;
  for (const auto &[option, path] : outputs)
    for (const auto &[other, otherPath] : outputs)
      if (other != option && isSameFile(*path, *otherPath, out))
        return nameOf(*option) + " and " + nameOf(*other) +
               " are the same file";
  for (const auto &[option, path] : outputs)
    if (*path != "-" && isSameFile(*path, "/dev/stderr", out) &&
        llvm::sys::fs::is_regular_file(*path))
      return nameOf(*option) + " is the file of standard error";
  return "";
}

namespace {

/// What `--help` says of ppcc itself: the commands before the options.
struct CommandsFirst : CLI::Formatter {
  std::string make_usage(const CLI::App *, std::string) const override {
    std::string text = "Usage: ppcc [COMMAND] [OPTIONS] INPUT\n\n"
                       "Commands (`ppcc COMMAND --help`):\n";
    for (const Command &command : commands())
      text += fmt::format("  {:<15}{}\n", command.name, command.summary);
    return text + "\nWithout a command, ppcc builds:\n";
  }
};

} // namespace

/// In lines of at most `width`, where words allow it.
static std::string wrapped(StringRef text, size_t width) {
  std::string result;
  size_t column = 0;
  for (StringRef word : llvm::split(text, ' ')) {
    bool breaks = column != 0 && column + 1 + word.size() > width;
    if (!result.empty())
      result += breaks ? '\n' : ' ';
    result += word;
    column = breaks ? word.size() : column + 1 + word.size();
  }
  return result;
}

OptionParser::OptionParser(const Invocation &call, Text name)
    : impl(std::make_unique<Impl>(call, name)) {
  CLI::App &app = impl->app;
  std::vector<std::string> examples;
  if (name == "ppcc") {
    app.formatter(std::make_shared<CommandsFirst>());
    app.description("Compiles, verifies, simulates and finds "
                    "pipeline-parallel schedules");
  }
  for (const Command &command : commands()) {
    bool isThis = name == "ppcc " + command.name.str();
    if (isThis)
      app.description(command.purpose.str());
    for (StringRef example : command.examples)
      if (isThis && !example.empty())
        examples.push_back(fmt::format("\n  {} {}", name, example));
  }
  if (!examples.empty())
    app.footer("Examples:" + llvm::join(examples, ""));
  app.get_formatter()->column_width(30);
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.set_help_all_flag("--help-all", "The same with all options");
}

/// Breaks descriptions into lines of a terminal; without `all`, leaves out the
/// options of groups, which it names.
std::string OptionParser::Impl::help(bool all) {
  std::vector<std::string> groups = app.get_groups();
  for (CLI::Option *option : app.get_options()) {
    option->description(wrapped(option->get_description(), 68));
    if (!all && option->get_group() != app.option_defaults()->get_group())
      option->group("");
  }
  app.description(wrapped(app.get_description(), 98));
  std::erase(groups, app.option_defaults()->get_group());
  std::erase(groups, "");
  if (!all && !groups.empty())
    app.footer("More with --help-all: " + llvm::join(groups, ", ") +
               (app.get_footer().empty() ? "" : "\n\n" + app.get_footer()));
  return app.help();
}

OptionParser::~OptionParser() = default;

void OptionParser::version() {
  impl->app.set_version_flag("--version",
                             impl->app.get_name() + " " + versionText().str(),
                             "Print the version and exit");
}

void OptionParser::group(Text title, function_ref<void()> declare) {
  std::string outer = impl->app.option_defaults()->get_group();
  impl->app.option_defaults()->group(title);
  declare();
  impl->app.option_defaults()->group(outer);
}

void OptionParser::onlyIf(std::function<bool()> holds, Text why,
                          function_ref<void()> declare) {
  auto options = impl->app.get_options();
  std::set<const CLI::Option *> before(options.begin(), options.end()), own;
  declare();
  for (const CLI::Option *option : impl->app.get_options())
    if (!before.count(option))
      own.insert(option);
  impl->scopes.push_back({std::move(holds), why, std::move(own)});
}

void OptionParser::afterParse(std::function<std::string()> complete) {
  impl->completions.push_back(std::move(complete));
}

void OptionParser::addCheck(std::function<std::string()> error) {
  impl->checks.push_back(std::move(error));
}

bool OptionParser::isGiven(Text name) const {
  return impl->app.get_option(name)->count() != 0;
}

void OptionParser::positional(Text name, std::string &value, Text summary,
                              bool isRequired) {
  impl->app.add_option(name, value, summary)->required(isRequired);
}

void OptionParser::positional(Text name, std::vector<std::string> &values,
                              Text summary) {
  impl->app.add_option(name, values, summary)->required();
  addCheck([this, &values]() -> std::string {
    for (const std::string &value : values)
      if (StringRef(value).contains('=') && !llvm::sys::fs::exists(value))
        return impl->unexpected(value);
    return "";
  });
}

void OptionParser::flag(Text names, bool &value, Text summary) {
  impl->app.add_flag(names, value, summary);
}

void OptionParser::value(Text names, Text meta, std::string &value,
                         Text summary) {
  impl->app.add_option(names, value, summary)->option_text(meta);
}

void OptionParser::output(Text names, std::string &value, Text summary) {
  CLI::Option *option =
      impl->app.add_option(names, value, summary)->option_text("FILE");
  impl->outputs.push_back({option, &value});
}

void OptionParser::numberInto(Text names, uint64_t min, uint64_t max,
                              Text summary, std::function<void(uint64_t)> set) {
  impl->app.add_option_function<uint64_t>(names, std::move(set), summary)
      ->option_text("N")
      ->check(CLI::Range(min, max));
}

void OptionParser::choice(Text names, Text summary,
                          std::vector<StringRef> choices,
                          std::function<void(Text)> set) {
  std::string list = llvm::join(choices, ", ");
  auto take = [=](Text value) -> std::string {
    if (llvm::is_contained(choices, value))
      return set(value), "";
    return fmt::format("invalid value `{}`; expected one of {}{}", value, list,
                       didYouMean(value, choices));
  };
  impl->choices[names] = {choices, set};
  parsed(names, summary + ": " + list, take, "NAME");
}

void OptionParser::formatByExtension(const std::string &output) {
  afterParse([this, &output]() -> std::string {
    const Impl::Choice &format = impl->choices["--format"];
    StringRef name = llvm::sys::path::extension(output);
    name = name == ".md" ? "markdown" : name.drop_front(!name.empty());
    if (!isGiven("--format") && llvm::is_contained(format.names, name))
      format.set(name.str());
    return "";
  });
}

/// Lets `take` judge a value, as CLI11 wants to know of it.
static auto validator(const std::string &names, OptionParser::Parse take) {
  return [=](const std::string &text) {
    if (std::string error = take(text); !error.empty())
      throw CLI::ValidationError(names, error);
  };
}

void OptionParser::parsed(Text names, Text summary, Parse take, Text meta) {
  impl->app
      .add_option_function<std::string>(
          names, validator(names, std::move(take)), summary)
      ->option_text(meta);
}

void OptionParser::repeated(Text names, Text meta, Text summary, Parse take,
                            char delimiter) {
  using Texts = std::vector<std::string>;
  auto takeAll = [one = validator(names, std::move(take))](const Texts &texts) {
    llvm::for_each(texts, one);
  };
  impl->app.add_option_function<Texts>(names, takeAll, summary)
      ->option_text(meta)
      ->delimiter(delimiter)
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
}

void OptionParser::repeated(Text names, Text meta,
                            std::vector<std::string> &values, Text summary) {
  repeated(names, meta, summary,
           [&values](Text value) { return values.push_back(value), ""; });
}

void OptionParser::exclude(Text name, Text other) {
  impl->app.get_option(name)->excludes(impl->app.get_option(other));
}

int OptionParser::usageError(StringRef text) const {
  const std::string &name = impl->app.get_name();
  impl->err << name << ": error: " << printable(text) << "\nnote: `" << name
            << " --help` lists the options\n";
  return Usage;
}

std::optional<int> OptionParser::parse() {
  ArrayRef<const char *> args = impl->args;
  if (args.size() == 2 && StringRef(args[1]) == "--list-options") {
    impl->list();
    return Success;
  }
  for (auto problem : {&Impl::wrongValue, &Impl::unknownOption})
    if (std::string text = (*impl.*problem)(); !text.empty())
      return usageError(text);
  try {
    impl->app.parse(static_cast<int>(args.size()), args.data());
    std::string text = impl->findConflict();
    return text.empty() ? std::nullopt : std::optional(usageError(text));
  } catch (const CLI::CallForHelp &) {
    impl->out << impl->help(/*all=*/false);
    return Success;
  } catch (const CLI::CallForAllHelp &) {
    impl->out << impl->help(/*all=*/true);
    return Success;
  } catch (const CLI::ExtrasError &error) {
    return usageError(impl->unexpected(impl->app.remaining().front()));
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0) { // --version.
      std::ostringstream text, unused;
      impl->app.exit(error, text, unused);
      impl->out << text.str();
      return Success;
    }
    return usageError(error.what());
  }
}

void ppcc::addOutput(OptionParser &parser, std::string &output) {
  parser.output("-o,--output", output,
                "The output file; `-`, the default, is standard output");
}
