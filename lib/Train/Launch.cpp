#include "Launch.h"

#include "ppcc/Runtime/Error.h"

#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

using namespace ppcc;
using Clock = std::chrono::steady_clock;

namespace {

constexpr auto grace = std::chrono::seconds(2);

/// What the child does; it does not return.
[[noreturn]] void runChild(const Worker &worker, int file, pid_t parent) {
  // Nobody would read what it tells.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent)
    _exit(1);
  Reporter reporter(file);
  try {
    worker.work(reporter);
    reporter.send(Done());
  } catch (const rt::PeerError &error) {
    reporter.send(Failure{error.what(), false});
  } catch (const std::exception &error) {
    reporter.send(Failure{error.what(), true});
  }
  _exit(0);
}

class Workers {
public:
  explicit Workers(std::span<const Worker> workers) : workers(workers) {}
  ~Workers() {
    for (Child &child : children)
      kill(child);
  }

  void start() {
    pid_t parent = getpid();
    for (const Worker &worker : workers) {
      int ends[2];
      if (pipe2(ends, O_CLOEXEC) != 0)
        return fail(std::string("cannot make a pipe: ") + strerror(errno));
      pid_t pid = fork();
      if (pid == 0) {
        for (const Child &other : children)
          close(other.file);
        close(ends[0]);
        runChild(worker, ends[1], parent);
      }
      close(ends[1]);
      if (pid < 0) {
        close(ends[0]);
        return fail(std::string("cannot start a process: ") + strerror(errno));
      }
      children.push_back({pid, ends[0], {}});
    }
  }

  /// Waits for messages; false when all workers have ended.
  bool receiveMessages(
      const std::function<void(size_t, const WorkerMessage &)> &tell) {
    std::vector<pollfd> polled; // Those that have ended are passed over.
    bool areAllOver = true;
    for (const Child &child : children) {
      polled.push_back({child.file, POLLIN, 0});
      areAllOver &= child.file < 0;
    }
    if (areAllOver)
      return false;
    int ready = poll(polled.data(), polled.size(), timeout());
    if (ready == 0) {
      for (Child &child : children)
        kill(child);
      return false;
    }
    for (size_t i = 0; ready > 0 && i != polled.size(); ++i)
      if (polled[i].revents != 0)
        read(i, tell);
    return true;
  }

  std::optional<std::string> failure() const {
    return ownFailure ? ownFailure : anyFailure;
  }

private:
  struct Child {
    pid_t pid;
    int file; ///< -1 when it has ended.
    MessageReader reader;
    bool isDone = false, hasFailed = false;
  };

  void read(size_t number,
            const std::function<void(size_t, const WorkerMessage &)> &tell) {
    Child &child = children[number];
    char buffer[1 << 16];
    ssize_t count = ::read(child.file, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR)
      return;
    if (count <= 0)
      return end(number);
    child.reader.add(buffer, static_cast<size_t>(count));
    WorkerMessage message;
    while (child.reader.next(message)) {
      if (std::holds_alternative<Done>(message)) {
        child.isDone = true;
      } else if (auto *failure = std::get_if<Failure>(&message)) {
        child.hasFailed = true;
        fail(failure->text, failure->isRootCause);
      } else {
        tell(number, message);
      }
    }
  }

  /// The worker has closed its pipe.
  void end(size_t number) {
    Child &child = children[number];
    close(std::exchange(child.file, -1));
    int status = 0;
    waitpid(child.pid, &status, 0);
    if (child.isDone || child.hasFailed)
      return;
    std::string how =
        WIFSIGNALED(status)
            ? std::string("was killed: ") + strsignal(WTERMSIG(status))
            : "ended with exit code " + std::to_string(WEXITSTATUS(status));
    // What the others say of it is less than this.
    ownFailure.reset();
    fail("the process of " + workers[number].name + " " + how);
  }

  static void kill(Child &child) {
    if (child.file < 0)
      return;
    ::kill(child.pid, SIGKILL);
    close(std::exchange(child.file, -1));
    waitpid(child.pid, nullptr, 0);
  }

  void fail(std::string text, bool isRootCause = true) {
    if (!deadline)
      deadline = Clock::now() + grace;
    std::optional<std::string> &failure = isRootCause ? ownFailure : anyFailure;
    if (!failure)
      failure = std::move(text);
  }

  int timeout() const {
    if (!deadline)
      return -1;
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        *deadline - Clock::now());
    return std::max(0, static_cast<int>(left.count()));
  }

  std::span<const Worker> workers;
  std::vector<Child> children;
  std::optional<std::string> ownFailure, anyFailure;
  std::optional<Clock::time_point> deadline; ///< Set by the first failure.
};

} // namespace

std::optional<std::string> ppcc::runWorkers(
    std::span<const Worker> workers,
    const std::function<void(size_t, const WorkerMessage &)> &hear) {
  Workers all(workers);
  all.start();
  while (all.receiveMessages(hear))
    ;
  return all.failure();
}
