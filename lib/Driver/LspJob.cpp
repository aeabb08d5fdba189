#include "LspJob.h"

#include <csignal>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace ppcc::lsp;

bool Job::start(unsigned seconds, function_ref<void(raw_ostream &)> work) {
  stop();
  said.clear();
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return false;
  process = fork();
  if (process == 0) {
    // The editor's streams are not ours.
    int nothing = open("/dev/null", O_RDWR);
    for (int stream : {STDIN_FILENO, STDOUT_FILENO})
      dup2(nothing, stream);
    rlimit limit{seconds, seconds};
    setrlimit(RLIMIT_CPU, &limit);
    llvm::raw_fd_ostream out(ends[1], /*shouldClose=*/false);
    work(out);
    out.flush();
    _exit(0);
  }
  close(ends[1]);
  pipeEnd = ends[0];
  if (process < 0)
    end();
  return isRunning();
}

bool Job::read() {
  char buffer[1 << 16];
  ssize_t count = ::read(pipeEnd, buffer, sizeof buffer);
  if (count > 0)
    said.append(buffer, count);
  if (count > 0 || (count < 0 && errno == EINTR))
    return false;
  end();
  return true;
}

void Job::stop() {
  if (isRunning())
    kill(process, SIGKILL);
  end();
}

void Job::end() {
  int status = 0;
  bool hasEnded = process > 0 && waitpid(process, &status, 0) == process;
  isGood = hasEnded && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  isTooLong = hasEnded && WIFSIGNALED(status) &&
              (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL);
  process = 0;
  if (pipeEnd >= 0)
    close(std::exchange(pipeEnd, -1));
}
