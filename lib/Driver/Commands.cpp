#include "Commands.h"

using namespace ppcc;

ArrayRef<Command> ppcc::commands() {
  static constexpr Command table[] = {
#define COMMAND(name, function, summary, purpose, example, another)            \
  {name, summary, purpose, {example, another}, &function},
#include "Commands.def"
  };
  return table;
}

std::vector<OptionText> ppcc::optionsOf(ToolMain *run) {
  std::string list;
  llvm::raw_string_ostream stream(list);
  run({{"", "--list-options"}, nullptr, stream, llvm::nulls()});
  std::vector<OptionText> options;
  for (StringRef line : llvm::split(list, '\n')) {
    SmallVector<StringRef> cells;
    line.split(cells, '\t');
    if (cells.size() == 4 && cells[0].starts_with("-"))
      options.push_back(
          {cells[0].str(), cells[1].str(), cells[2].str(), cells[3].str()});
  }
  return options;
}

std::string ppcc::commandsWith(StringRef option) {
  std::vector<std::string> names;
  for (const Command &command : commands())
    for (const OptionText &one : optionsOf(command.run))
      if (llvm::is_contained(llvm::split(one.names, ','), option))
        names.push_back("`ppcc " + command.name.str() + "`");
  return names.empty() ? ""
                       : llvm::join(names, ", ") +
                             (names.size() == 1 ? " has it" : " have it");
}
