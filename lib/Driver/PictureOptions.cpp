// The options of pictures, and what the terminal adds to them.
#include "PictureOptions.h"

#include "Console.h"

#include "llvm/Support/Process.h"

#include <sys/ioctl.h>
#include <unistd.h>

using namespace ppcc;

static std::string parseTimeRange(StringRef text, PictureOptions &options) {
  auto [first, last] = text.split("..");
  auto from = cost::parse(first), to = cost::parse(last);
  if (!from || !to || *from >= *to)
    return fmt::format("`{}` is no range of times; expected `0..12.5`", text);
  options.times = {*from, *to};
  return "";
}

void ppcc::addPictureOptions(OptionParser &parser, PictureOptions &options) {
  parser.group("Pictures", [&] {
    parser.parsed(
        "--time-range", "Draw only this span of time, such as 0..12.5",
        [&](const std::string &text) { return parseTimeRange(text, options); });
    // First, since what is said besides stands above it.
    parser.choice("--preset",
                  "Width and letters of an svg for a paper of two columns, or "
                  "its page",
                  {"column", "page"}, [&](const std::string &name) {
                    // 85 and 178 mm, and letters of 7 pt, at 96 pixels an inch.
                    options.width = name == "column" ? 321 : 672;
                    options.fontSize = 9;
                  });
    parser.number("--width", options.width, 20, 20000,
                  "Columns of a timeline, pixels of an svg or pdf");
    parser.flag("--arrows", options.arrows,
                "Draw in an svg what goes from rank to rank");
    parser.flag(
        "--memory", options.memory,
        "Draw in an svg or timeline what each rank holds, and its limit");
    parser.value("--title", "TEXT", options.title, "The title of an svg");
    parser.flag("--no-legend", options.hidesLegend,
                "Draw no legend below an svg");
    parser.number("--font-size", options.fontSize, 4, 72,
                  "Pixels of the letters of an svg; 9");
  });
}

/// The columns of the terminal behind `stream`; 0 when there is none.
static uint32_t terminalColumns(const raw_ostream &stream) {
  winsize size;
  int file = &stream == &llvm::outs()   ? STDOUT_FILENO
             : &stream == &llvm::errs() ? STDERR_FILENO
                                        : -1;
  if (file < 0 || !stream.is_displayed() || ioctl(file, TIOCGWINSZ, &size) != 0)
    return 0;
  return size.ws_col;
}

/// Whether the environment asks for UTF-8, by the first of its variables that
/// is set.
static bool localeIsUtf8() {
  for (const char *name : {"LC_ALL", "LC_CTYPE", "LANG"})
    if (auto value = llvm::sys::Process::GetEnv(name); value && !value->empty())
      return StringRef(*value).contains_insensitive("utf-8") ||
             StringRef(*value).contains_insensitive("utf8");
  return false;
}

PictureOptions ppcc::fitted(PictureOptions options, const raw_ostream &stream,
                            StringRef color) {
  options.color = wantsColor(color, stream);
  options.unicode = localeIsUtf8();
  if (options.width == 0)
    options.width = terminalColumns(stream);
  return options;
}
