// Declares and reads the command line of a tool.
#pragma once

#include "ppcc/Support/LLVM.h"
#include "ppcc/Support/Suggest.h"
#include "llvm/Support/VirtualFileSystem.h"

namespace ppcc {

enum ExitCode { Success = 0, Errors = 1, Usage = 2 };

/// Such as `0.1.0 (0123456789ab)`: the version, and the commit if it is known.
StringRef versionText();

/// How a program is called: its arguments, which begin with its name, the files
/// that it sees, and where it writes.
struct Invocation {
  ArrayRef<const char *> args;
  llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> files;
  raw_ostream &out, &err;
};

/// The options of a tool, each bound to what it fills.
class OptionParser {
public:
  using Text = const std::string &;
  /// Takes a value; gives what is wrong with it, or nothing.
  using Parse = std::function<std::string(Text value)>;

  /// With `--help` and `--help-all`. The purpose of a command of ppcc, and its
  /// examples, are those of lib/Driver/Commands.def.
  OptionParser(const Invocation &call, Text name);
  ~OptionParser();

  /// Adds `--version`, which says the name of the tool.
  void version();
  /// What `declare` declares stands in `--help-all` alone, below this title.
  void group(Text title, function_ref<void()> declare);
  /// What `declare` declares is for command lines, once they are read, of which
  /// `holds` is true; in others it is wrong usage, for the reason `why`.
  void onlyIf(std::function<bool()> holds, Text why,
              function_ref<void()> declare);
  /// Completes what a command line that has been read says; gives what is wrong
  /// with it, or nothing. Comes before what onlyIf() says.
  void afterParse(std::function<std::string()> complete);
  /// Gives what is wrong with a command line that has been read, or nothing.
  void addCheck(std::function<std::string()> error);

  void positional(Text name, std::string &value, Text summary,
                  bool isRequired = false);
  /// One at least.
  void positional(Text name, std::vector<std::string> &values, Text summary);
  /// `names` are as in `-o,--output`, here and below; `meta` stands for the
  /// value in the text of `--help`.
  void flag(Text names, bool &value, Text summary);
  void value(Text names, Text meta, std::string &value, Text summary);
  /// The name of a file that is written. No two are one file.
  void output(Text names, std::string &value, Text summary);
  /// A whole number of a range.
  template <class T>
  void number(Text names, T &value, uint64_t min, uint64_t max, Text summary) {
    numberInto(names, min, max, summary,
               [&value](uint64_t given) { value = given; });
  }
  /// One of some names, literals; a misspelt one gets a suggestion.
  void choice(Text names, Text summary, std::vector<StringRef> choices,
              std::function<void(Text)> set);
  void choice(Text names, Text summary, std::vector<StringRef> choices,
              std::string &value) {
    choice(names, summary, std::move(choices),
           [&value](Text given) { value = given; });
  }
  /// The same, where each name stands for a value.
  template <class T>
  void choice(Text names, Text summary,
              std::vector<std::pair<StringRef, std::type_identity_t<T>>> known,
              T &value) {
    using Choice = std::pair<StringRef, T>;
    choice(names, summary, namesIn(known, &Choice::first),
           [known, &value](Text name) {
             value = findBy(known, name, &Choice::first)->second;
           });
  }
  void parsed(Text names, Text summary, Parse take, Text meta = "TEXT");
  /// `--format` is the name that is the extension of this output, unless it is
  /// given.
  void formatByExtension(const std::string &output);
  /// An option that may be given several times, and then is taken each time;
  /// with a delimiter, its value may be several, too.
  void repeated(Text names, Text meta, Text summary, Parse take,
                char delimiter = '\0');
  void repeated(Text names, Text meta, std::vector<std::string> &values,
                Text summary);
  /// Two options that are not given together.
  void exclude(Text name, Text other);
  /// Whether an option stands in the arguments that were read.
  bool isGiven(Text name) const;

  /// The exit code when the arguments end the run: help was asked for, or the
  /// usage was wrong and has been explained. `--list-options` writes a line for
  /// each option: its names, what stands for its value, the values that there
  /// are, and the summary, with tabs between.
  std::optional<int> parse();
  /// Says what is wrong with a command line, and gives the exit code.
  int usageError(StringRef text) const;

private:
  void numberInto(Text names, uint64_t min, uint64_t max, Text summary,
                  std::function<void(uint64_t)> set);

  struct Impl;
  std::unique_ptr<Impl> impl;
};

/// The commands that have an option, in words, or nothing: `` `ppcc prove` has
/// it``.
std::string commandsWith(StringRef option);

/// Adds `--output`, whose default is standard output.
void addOutput(OptionParser &parser, std::string &output);

} // namespace ppcc
