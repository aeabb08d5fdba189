#include "ppcc/Support/Subprocess.h"

#include "llvm/Support/Compiler.h"
#include "llvm/Support/ErrorHandling.h"

#include <csignal>
#include <fcntl.h>
#include <new>
#include <stdexcept>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace ppcc;

/// The exit status of work that ran out of memory.
static constexpr int outOfMemoryStatus = 75;

#if LLVM_ADDRESS_SANITIZER_BUILD
extern "C" int __sanitizer_install_malloc_and_free_hooks(
    void (*)(const volatile void *, size_t), void (*)(const volatile void *));
extern "C" size_t __sanitizer_get_current_allocated_bytes();

/// AddressSanitizer reserves more than the limit, and asks no handler of new.
static void checkMemoryLimit() {
  __sanitizer_install_malloc_and_free_hooks(
      [](const volatile void *, size_t) {
        if (__sanitizer_get_current_allocated_bytes() > Subprocess::maxBytes)
          _exit(outOfMemoryStatus);
      },
      [](const volatile void *) {});
}
#else
static void checkMemoryLimit() {
  rlimit memory{Subprocess::maxBytes, Subprocess::maxBytes};
  setrlimit(RLIMIT_DATA, &memory);
}
#endif

/// Limits this process, and what it does when it has no memory left.
static void limitResources(unsigned seconds) {
  rlimit processor{seconds, seconds};
  setrlimit(RLIMIT_CPU, &processor);
  checkMemoryLimit();
  std::signal(SIGALRM, SIG_DFL);
  alarm(4 * seconds); // For what waits and does nothing.
  std::set_new_handler([] { _exit(outOfMemoryStatus); });
  llvm::remove_bad_alloc_error_handler();
  llvm::install_bad_alloc_error_handler(
      [](void *, const char *, bool) { _exit(outOfMemoryStatus); });
}

bool Subprocess::start(unsigned seconds,
                       function_ref<void(raw_ostream &)> work) {
  stop();
  output.clear();
  this->seconds = seconds;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return false;
  process = fork();
  if (process == 0) {
    // The streams of whoever asks are not ours.
    int nothing = open("/dev/null", O_RDWR);
    for (int stream : {STDIN_FILENO, STDOUT_FILENO})
      dup2(nothing, stream);
    limitResources(seconds);
    llvm::raw_fd_ostream out(ends[1], /*shouldClose=*/false);
    try {
      work(out);
      out.flush();
    } catch (const std::bad_alloc &) { // Of a size that is none.
      _exit(outOfMemoryStatus);
    } catch (const std::length_error &) {
      _exit(outOfMemoryStatus);
    }
    _exit(0);
  }
  close(ends[1]);
  pipeEnd = ends[0];
  fcntl(pipeEnd, F_SETFL, O_NONBLOCK);
  if (process < 0)
    end();
  return isRunning();
}

bool Subprocess::read() {
  char buffer[1 << 16];
  ssize_t count;
  while ((count = ::read(pipeEnd, buffer, sizeof buffer)) > 0 &&
         output.size() < maxOutput)
    output.append(buffer, count);
  if (count < 0 && (errno == EINTR || errno == EAGAIN))
    return false;
  if (count > 0)
    stop();
  else
    end();
  if (count > 0)
    outcome = Outcome::OutOfMemory;
  return true;
}

void Subprocess::stop() {
  if (isRunning())
    kill(process, SIGKILL);
  end();
}

void Subprocess::end() {
  int status = 0;
  bool hasEnded = process > 0 && waitpid(process, &status, 0) == process;
  int signal = hasEnded && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  int code = hasEnded && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  bool timedOut = signal == SIGXCPU || signal == SIGKILL || signal == SIGALRM;
  outcome = code == 0                   ? Outcome::Succeeded
            : code == outOfMemoryStatus ? Outcome::OutOfMemory
            : timedOut                  ? Outcome::TimedOut
                                        : Outcome::Crashed;
  process = 0;
  if (pipeEnd >= 0)
    close(std::exchange(pipeEnd, -1));
}

std::string Subprocess::errorText() const {
  switch (outcome) {
  case Outcome::Succeeded:
    return "";
  case Outcome::TimedOut:
    return fmt::format("compilation timed out after {} s; `ppcc check` has no "
                       "such limit",
                       seconds);
  case Outcome::OutOfMemory:
    return fmt::format("compilation needs more than {} GiB of memory; `ppcc "
                       "check` has no such limit",
                       maxBytes >> 30);
  case Outcome::Crashed:
    return "the compiler crashed: this is a bug in it";
  }
  return "";
}
