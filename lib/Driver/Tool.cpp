// What the programs have in common around their work.
#include "ppcc/Basic/Source.h"
#include "ppcc/Driver/Driver.h"

#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"

#include <condition_variable>
#include <mutex>
#include <new>
#include <stdexcept>
#include <thread>
#include <unistd.h>

using namespace ppcc;

static const char *toolName = "ppcc";

/// Ends the run; called where an allocation fails, and so without any.
[[noreturn]] static void endWithoutMemory() {
  constexpr StringRef text =
      ": error: out of memory\n"
      "note: give the schedule fewer ranks or microbatches, or the process "
      "more memory\n";
  for (StringRef part : {StringRef(toolName), text})
    if (write(STDERR_FILENO, part.data(), part.size()) < 0)
      break;
  llvm::sys::RunInterruptHandlers(); // Removes unfinished files.
  _exit(1);
}

namespace {

/// On a terminal says each second, from the second one on, how long the program
/// has been at work, until something is written by one of the streams that are
/// tied to this one, which they flush before they write.
class Working : public llvm::raw_ostream {
public:
  explicit Working(StringRef name) : name(name), ticker([this] { tick(); }) {
    SetBuffered();
    *this << ' '; // So that there is something to flush.
  }
  ~Working() override { flush(); }

private:
  void tick() {
    std::unique_lock lock(mutex);
    for (int seconds = 2;; ++seconds) {
      if (ended.wait_until(lock, start + std::chrono::seconds(seconds),
                           [&] { return isOver; }))
        return;
      put(fmt::format("\r\x1b[K{}: working, {} s", name, seconds));
      isShown = true;
    }
  }
  void end() {
    {
      std::lock_guard lock(mutex);
      isOver = true;
      if (isShown)
        put("\r\x1b[K");
    }
    ended.notify_all();
    ticker.join();
  }
  static void put(StringRef text) {
    (void)!::write(STDERR_FILENO, text.data(), text.size());
  }

  void write_impl(const char *, size_t) override { end(); }
  uint64_t current_pos() const override { return 0; }

  const std::string name;
  const std::chrono::steady_clock::time_point start =
      std::chrono::steady_clock::now();
  std::mutex mutex;
  std::condition_variable ended;
  bool isOver = false, isShown = false;
  std::thread ticker; ///< The last, as it uses the others.
};

void tie(Working *working) {
  llvm::outs().tie(working);
  llvm::errs().tie(working);
}

/// Where nobody types, and no editor reads.
bool isWatched(ArrayRef<const char *> arguments) {
  return isatty(STDERR_FILENO) && arguments.size() > 1 &&
         StringRef(arguments[1]) != "lsp" &&
         !(isatty(STDIN_FILENO) &&
           llvm::is_contained(arguments, StringRef("-")));
}

} // namespace

int ppcc::runTool(int argc, const char *const *argv, ToolMain *tool) {
  if (argc > 0)
    toolName = llvm::sys::path::filename(argv[0]).data();
  std::set_new_handler(endWithoutMemory);
  llvm::install_bad_alloc_error_handler(
      [](void *, const char *, bool) { endWithoutMemory(); });
  std::optional<Working> working;
  if (isWatched({argv, size_t(argc)}))
    tie(&working.emplace(toolName));
  int code = 1;
  try {
    code = tool(
        {{argv, size_t(argc)}, regularFiles(), llvm::outs(), llvm::errs()});
  } catch (const std::bad_alloc &) { // Of a size that is none.
    endWithoutMemory();
  } catch (const std::length_error &) {
    endWithoutMemory();
  }
  llvm::outs().flush();
  if (working)
    tie(nullptr);
  if (std::error_code error = llvm::outs().error()) {
    llvm::outs().clear_error(); // Its destructor would end the process over it.
    llvm::errs() << toolName << ": error: cannot write to standard output: "
                 << error.message() << '\n';
    return 1;
  }
  return code;
}
