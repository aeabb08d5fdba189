// `ppcc completion`: what shells complete, from the options of the commands.
#include "Options.h"
#include "ppcc/Compiler/ScheduleLibrary.h"
#include "ppcc/Support/Suggest.h"

using namespace ppcc;

namespace {

/// A line of `--list-options`.
struct OptionText {
  SmallVector<StringRef, 2> names;
  StringRef meta, choices, summary; ///< Meta is empty for a flag.
};

struct CommandText {
  StringRef name, summary;
  std::string list; ///< What the options are made of.
  std::vector<OptionText> options = {};
};

std::vector<CommandText> commandTexts(Session::Files fs) {
  std::vector<CommandText> all;
  auto add = [&](StringRef name, ToolMain &run, StringRef summary) {
    CommandText &command = all.emplace_back(CommandText{name, summary, ""});
    llvm::raw_string_ostream stream(command.list);
    run({"ppcc", "--list-options"}, fs, stream, llvm::nulls());
  };
#define COMMAND(name, function, summary) add(name, function, summary);
#include "Commands.def"
  for (CommandText &command : all)
    for (StringRef line : llvm::split(command.list, '\n')) {
      SmallVector<StringRef> cells;
      line.split(cells, '\t');
      if (cells.size() != 4 || !cells[0].starts_with("-"))
        continue;
      OptionText &option = command.options.emplace_back();
      cells[0].split(option.names, ',');
      option.meta = cells[1];
      option.choices = cells[2];
      option.summary = cells[3];
    }
  return all;
}

/// All names that `ppcc NAME` compiles.
std::string libraryNames() {
  std::vector<std::string> names;
  for (const LibraryFile &file : scheduleLibrary())
    if (file.text.contains("\nschedule "))
      llvm::append_range(names, file.names());
  return llvm::join(names, " ");
}

/// The summary up to the first break, without what quotes or brackets it.
std::string plain(StringRef summary) {
  std::string text;
  for (char c : summary.take_until([](char c) { return c == ';' || c == ':'; }))
    if (!StringRef("'`[]\\\"").contains(c))
      text += c;
  return text;
}

std::string namesOf(const std::vector<CommandText> &commands) {
  return llvm::join(namesIn(commands, &CommandText::name), " ");
}

void writeBash(const std::vector<CommandText> &commands, raw_ostream &out) {
  out << R"(# Completion of ppcc for bash: source <(ppcc completion bash)
_ppcc() {
  local cur=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD-1]} command=build words=
  # bash parts --emit=json at the sign.
  if [[ $cur == = ]]; then cur=; elif [[ $option == = ]]; then option=${COMP_WORDS[COMP_CWORD-2]}; fi
  case " )"
      << namesOf(commands)
      << R"( " in *" ${COMP_WORDS[1]} "*) command=${COMP_WORDS[1]};; esac
  case $command:$option in
)";
  std::string others; // Options whose values are not known.
  for (const CommandText &command : commands)
    for (const OptionText &option : command.options)
      for (StringRef name : option.names)
        if (!option.choices.empty())
          out << "    " << command.name << ':' << name << ") words='"
              << option.choices << "';;\n";
        else if (!option.meta.empty())
          others += (others.empty() ? "" : "|") + command.name.str() + ':' +
                    name.str();
  out << "    " << others << ") compopt -o default; return;;\n";
  out << R"(    *) if [[ $cur == -* ]]; then
        case $command in
)";
  for (const CommandText &command : commands) {
    out << "          " << command.name << ") words='";
    for (const OptionText &option : command.options)
      out << llvm::join(option.names, " ") << ' ';
    out << "';;\n";
  }
  out << R"(        esac
      elif [[ $command == completion ]]; then words='bash zsh fish'
      elif [[ $command != new && $command != explain-error ]]; then
        compopt -o filenames
        words=')"
      << libraryNames() << R"('
        [[ $COMP_CWORD == 1 ]] && words+=' )"
      << namesOf(commands) << R"('
        COMPREPLY=($(compgen -f -- "$cur"))
      fi;;
  esac
  COMPREPLY+=($(compgen -W "$words" -- "$cur"))
}
complete -F _ppcc ppcc
)";
}

void writeZsh(const std::vector<CommandText> &commands, raw_ostream &out) {
  out << R"(#compdef ppcc
# Completion of ppcc for zsh: source <(ppcc completion zsh)
_ppcc() {
  local command=build
  local -a commands=(
)";
  for (const CommandText &command : commands)
    out << "    '" << command.name << ':' << plain(command.summary) << "'\n";
  out << R"(  )
  local -a library=()"
      << libraryNames() << R"()
  if [[ -n ${(M)commands:#${words[2]}:*} ]] && (( CURRENT > 2 )); then
    command=${words[2]}
    shift words; (( CURRENT-- ))
  elif (( CURRENT == 2 )) && [[ ${words[2]} != -* ]]; then
    _describe command commands
  fi
  local -a options
  case $command in
)";
  for (const CommandText &command : commands) {
    out << "    " << command.name << ") options=(\n";
    for (const OptionText &option : command.options)
      for (StringRef name : option.names) {
        bool isLong = name.starts_with("--");
        out << "      '*" << name
            << (option.meta.empty() ? ""
                : isLong            ? "="
                                    : "+")
            << '[' << plain(option.summary) << ']';
        if (!option.choices.empty())
          out << ":value:(" << option.choices << ')';
        else if (!option.meta.empty())
          out << ":value:"
              << (option.meta.starts_with("FILE") ? "_files" : " ");
        out << "'\n";
      }
    out << "    );;\n";
  }
  out << R"sh(  esac
  if [[ $command == completion ]]; then options+=('1:shell:(bash zsh fish)')
  elif [[ $command != new && $command != explain-error ]]; then
    options+=('*:input:_ppcc_input')
  fi
  _arguments $options
}
_ppcc_input() { _alternative "schedules:schedule:($library)" 'files:file:_files' }
compdef _ppcc ppcc
)sh";
}

void writeFish(const std::vector<CommandText> &commands, raw_ostream &out) {
  out << "# Completion of ppcc for fish: ppcc completion fish | source\n"
         "set -l commands "
      << namesOf(commands) << "\n";
  for (const CommandText &command : commands)
    out << "complete -c ppcc -n __fish_is_first_arg -a " << command.name
        << " -d '" << plain(command.summary) << "'\n";
  out << "complete -c ppcc -n 'not __fish_seen_subcommand_from new completion "
         "explain-error' -a '"
      << libraryNames() << "'\n"
      << "complete -c ppcc -n '__fish_seen_subcommand_from completion' -xa "
         "'bash zsh fish'\n";
  for (const CommandText &command : commands)
    for (const OptionText &option : command.options) {
      out << "complete -c ppcc -n '";
      if (command.name == "build")
        out << "not __fish_seen_subcommand_from "
            << StringRef(namesOf(commands)).drop_front(6); // All but `build`.
      else
        out << "__fish_seen_subcommand_from " << command.name;
      out << '\'';
      for (StringRef name : option.names)
        out << (name.starts_with("--") ? " -l " : " -s ") << name.ltrim('-');
      out << " -d '" << plain(option.summary) << '\'';
      if (!option.choices.empty())
        out << " -xa '" << option.choices << '\'';
      else if (!option.meta.empty())
        out << (option.meta.starts_with("FILE") ? " -r" : " -x");
      out << '\n';
    }
}

} // namespace

int ppcc::runCompletion(ArrayRef<const char *> args, Session::Files fs,
                        raw_ostream &out, raw_ostream &err) {
  struct Shell {
    StringRef name;
    void (*write)(const std::vector<CommandText> &, raw_ostream &);
  };
  static constexpr Shell shells[] = {
      {"bash", writeBash}, {"zsh", writeZsh}, {"fish", writeFish}};
  std::string name;
  OptionParser parser(
      "ppcc completion",
      "Writes what a shell completes: source <(ppcc completion bash), the same "
      "for zsh, or ppcc completion fish | source");
  parser.positional("SHELL", name, "bash, zsh or fish", /*isRequired=*/true);
  if (std::optional<int> code = parser.parse(args, out, err))
    return *code;
  if (auto *shell = findBy(shells, name, &Shell::name))
    return shell->write(commandTexts(fs), out), Success;
  return parser.wrong("`" + name + "` is none of bash, zsh, fish", err);
}
