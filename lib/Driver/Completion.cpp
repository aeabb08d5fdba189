// `ppcc completion`: what shells complete. They ask `ppcc completion words`,
// which knows the options of the commands.
#include "Options.h"
#include "ppcc/Compiler/ScheduleLibrary.h"

using namespace ppcc;

namespace {

/// The summary up to the first break.
StringRef brief(StringRef summary) {
  return summary.take_until([](char c) { return c == ';' || c == ':'; });
}

/// Writes what the last of the words may become, a line each: the whole word,
/// what it is, and `=` where a value follows. A line without a word stands for
/// the names of files.
void writeWords(const Invocation &call) {
  ArrayRef<const char *> given = call.args.drop_front(2);
  raw_ostream &out = call.out;
  // bash parts --emit=json at the sign.
  std::vector<StringRef> words(given.begin(), given.end());
  StringRef prefix = words.empty() || words.back() == "=" ? "" : words.back();
  if (!words.empty() && words.back() != "=")
    words.pop_back();
  llvm::erase_if(words, [](StringRef word) { return word == "="; });
  auto put = [&](StringRef front, StringRef word, StringRef what,
                 StringRef after = "") {
    if ((front + word).str().starts_with(prefix.str()))
      out << front << word << '\t' << brief(what) << '\t' << after << '\n';
  };
  auto *command = words.empty()
                      ? nullptr
                      : findBy(commands(), words.front(), &Command::name);
  command = command ? command : commands().begin(); // It builds.
  std::vector<OptionText> options = optionsOf(command->run);
  auto [name, value] = prefix.split('=');
  bool isParted = prefix.starts_with("--") && name != prefix;
  StringRef before = isParted || words.empty() ? name : words.back();
  for (const auto &[names, meta, choices, summary] : options)
    if (!meta.empty() && llvm::is_contained(llvm::split(names, ','), before)) {
      for (StringRef choice : llvm::split(choices, ' '))
        if (!choice.empty())
          put(isParted ? (name + "=").str() : "", choice, "");
      if (StringRef(meta).starts_with("FILE"))
        out << '\n';
      return;
    }
  if (prefix.starts_with("-")) {
    for (const auto &[names, meta, choices, summary] : options)
      for (StringRef name : llvm::split(names, ','))
        put("", name, summary,
            meta.empty() || !name.starts_with("--") ? "" : "=");
  } else if (command->name == "completion") {
    for (StringRef shell : {"bash", "zsh", "fish"})
      put("", shell, "");
  } else if (command->name != "new" && command->name != "explain-error") {
    for (const Command &command : commands())
      if (words.empty())
        put("", command.name, command.summary);
    for (const LibraryFile &file : scheduleLibrary())
      if (file.text.contains("\nschedule "))
        for (const std::string &name : file.names())
          put("", name, "");
    out << '\n';
  }
}

struct Shell {
  StringRef name, script;
};
constexpr Shell shells[] = {
    {"bash", R"sh(# Completion of ppcc for bash: source <(ppcc completion bash)
_ppcc() {
  local word
  while IFS=$'\t' read -r word _; do
    if [[ $word ]]; then COMPREPLY+=("$word"); continue; fi
    compopt -o filenames
    COMPREPLY+=($(compgen -f -- "${COMP_WORDS[COMP_CWORD]#=}"))
  done < <("${COMP_WORDS[0]}" completion words "${COMP_WORDS[@]:1:COMP_CWORD}")
}
complete -F _ppcc ppcc
)sh"},
    {"zsh", R"sh(#compdef ppcc
# Completion of ppcc for zsh: source <(ppcc completion zsh)
_ppcc() {
  local -a plain valued parts
  local line files=
  local -a lines=("${(@f)$($words[1] completion words "${(@)words[2,CURRENT]}"; echo .)}")
  compset -P '--*='
  for line in "${(@)lines[1,-2]}"; do
    parts=("${(@s:	:)line}")
    [[ -n $parts[1] ]] || { files=1; continue }
    [[ -z $IPREFIX ]] || parts[1]=${parts[1]#*=}
    line=${parts[1]//:/\\:}${parts[2]:+:$parts[2]}
    if [[ -n $parts[3] ]]; then valued+=("$line"); else plain+=("$line"); fi
  done
  _describe ppcc plain -- valued -S =
  [[ -z $files ]] || _files
}
compdef _ppcc ppcc
)sh"},
    {"fish", R"sh(# Completion of ppcc for fish: ppcc completion fish | source
function __ppcc_words
    set -l words (commandline -opc) "$(commandline -ct)"
    for line in ($words[1] completion words $words[2..])
        set -l parts (string split \t -- $line)
        if test -n "$parts[1]"
            echo $parts[1]\t$parts[2]
        else
            __fish_complete_path "$(commandline -ct)"
        end
    end
end
complete -c ppcc -f -a '(__ppcc_words)'
)sh"}};

} // namespace

int ppcc::runCompletion(const Invocation &call) {
  if (call.args.size() > 1 && StringRef(call.args[1]) == "words")
    return writeWords(call), Success;
  std::string name;
  OptionParser parser(call, "ppcc completion");
  parser.positional("SHELL", name, "bash, zsh or fish", /*isRequired=*/true);
  if (std::optional<int> code = parser.parse())
    return *code;
  auto *shell = findBy(shells, name, &Shell::name);
  if (!shell)
    return parser.usageError("invalid value `" + name +
                             "`; expected one of bash, zsh, fish");
  call.out << shell->script;
  return Success;
}
