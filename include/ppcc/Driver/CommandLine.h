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
  /// Takes a value; gives what is wrong with it, or nothing.
  using Take = std::function<std::string(const std::string &value)>;

  /// With `--help`.
  OptionParser(const Invocation &call, std::string name, std::string summary);
  ~OptionParser();

  /// Adds `--version`, which says the name of the tool.
  void version();
  /// Text behind that of `--help`.
  void footer(std::string text);
  /// What `declare` declares stands in `--help` below this title.
  void group(std::string title, function_ref<void()> declare);

  void positional(std::string name, std::string &value, std::string summary,
                  bool isRequired = false);
  /// One at least.
  void positional(std::string name, std::vector<std::string> &values,
                  std::string summary);
  /// `names` are as in `-o,--output`, here and below; `meta` stands for the
  /// value in the text of `--help`.
  void flag(std::string names, bool &value, std::string summary);
  void value(std::string names, std::string meta, std::string &value,
             std::string summary);
  /// A whole number of a range.
  template <class T>
  void number(std::string names, T &value, uint64_t least, uint64_t most,
              std::string summary) {
    numberInto(std::move(names), least, most, std::move(summary),
               [&value](uint64_t given) { value = given; });
  }
  /// One of some names, literals; a misspelt one gets a suggestion.
  void choice(std::string names, std::string summary,
              std::vector<StringRef> choices,
              std::function<void(const std::string &)> set);
  void choice(std::string names, std::string summary,
              std::vector<StringRef> choices, std::string &value);
  /// The same, where each name stands for a value.
  template <class T>
  void choice(std::string names, std::string summary,
              std::vector<std::pair<StringRef, std::type_identity_t<T>>> known,
              T &value) {
    using Choice = std::pair<StringRef, T>;
    choice(std::move(names), std::move(summary), namesIn(known, &Choice::first),
           [known, &value](const std::string &name) {
             value = findBy(known, name, &Choice::first)->second;
           });
  }
  void parsed(std::string names, std::string summary, Take take,
              std::string meta = "TEXT");
  /// An option that may be given several times, and then is taken each time;
  /// with a delimiter, its value may be several, too.
  void each(std::string names, std::string meta, std::string summary, Take take,
            char delimiter = '\0');
  void each(std::string names, std::string meta,
            std::vector<std::string> &values, std::string summary);
  /// Two options that are not given together.
  void exclude(const std::string &name, const std::string &other);

  /// The exit code when the arguments end the run: help was asked for, or the
  /// usage was wrong and has been explained. `--list-options` writes a line for
  /// each option: its names, what stands for its value, the values that there
  /// are, and the summary, with tabs between.
  std::optional<int> parse();
  /// Says what is wrong with a command line, and gives the exit code.
  int wrong(StringRef text) const;

private:
  void numberInto(std::string names, uint64_t least, uint64_t most,
                  std::string summary, std::function<void(uint64_t)> set);

  struct Impl;
  std::unique_ptr<Impl> impl;
};

/// Adds `--output`, whose default is standard output.
void addOutput(OptionParser &parser, std::string &output);
/// Adds `--max-errors`.
void addMaxErrors(OptionParser &parser, size_t &maxErrors);

} // namespace ppcc
