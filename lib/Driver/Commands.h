// The commands, and what each of them takes.
#pragma once

#include "ppcc/Driver/Driver.h"

namespace ppcc {

#define COMMAND(name, function, summary, purpose, example, another)            \
  ToolMain function;
#include "Commands.def"

/// What stands after `ppcc`.
struct Command {
  StringRef name, summary;
  StringRef purpose;     ///< What `--help` says that it does.
  StringRef examples[2]; ///< Arguments; empty where nobody types them.
  ToolMain *run;
};
ArrayRef<Command> commands();

/// An option as `--list-options` tells it: its names, what stands for its value
/// (nothing for a flag), the values that there are, and what it does.
struct OptionText {
  std::string names, meta, choices, summary;
};
std::vector<OptionText> optionsOf(ToolMain *run);

} // namespace ppcc
