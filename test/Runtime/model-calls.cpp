// Tries the model of CUDA and NCCL with programs of a few calls:
//
//   ppcc-test-cuda-model faults FILE   the correct programs of the file are
//   right, and
//                            each with a fault is reported, in the words that
//                            the file says
//   ppcc-test-cuda-model mutate N      N random programs of one rank, each
//   correct and
//                            with one wait less: a report comes where a search
//                            of all paths finds a race, and only there
#include "Model.h"

#include <array>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <thread>
#include <utility>

namespace {

using Call = std::vector<std::string>;
using Calls = std::vector<Call>;

constexpr size_t bytes = 64;

Call wordsOf(const std::string &text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}
Calls callsOf(const std::string &text) {
  Calls calls;
  std::istringstream in(text);
  for (std::string call; std::getline(in, call, ';');)
    calls.push_back(wordsOf(call));
  return calls;
}

/// Makes the calls of one rank. Streams, events and memory are known by name;
/// the communicators are A and B, which block, N, which does not and which
/// `init` makes, and those that `split` makes.
class Host {
public:
  Host(int rank, int ranks, const ncclUniqueId (&ids)[3])
      : rank(rank), ranks(ranks), id(ids[2]) {
    model::attachRank(rank, ranks);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    for (int i = 0; i != 2; ++i)
      ncclCommInitRankConfig(&comms[i ? "B" : "A"], ranks, ids[i], rank,
                             &config);
  }
  ~Host() {
    for (auto &[name, stream] : streams)
      cudaStreamSynchronize(stream);
    for (auto &[name, stream] : streams)
      if (!destroyed.contains(name))
        cudaStreamDestroy(stream);
    model::detachRank();
  }

  void make(const Call &call) {
    const std::string &verb = call[0];
    auto buffer = [&](size_t i) { return buffers[call.at(i)]; };
    auto last = [&] { return stream(call.back()); };
    auto comm = [&](size_t i) { return comms.at(call.at(i)); };
    // down X [PINNED] STREAM, up X [PINNED] STREAM
    auto page = [&] { return call.size() == 4 ? buffer(2) : pages; };
    auto number = [&](size_t i) { return std::stoi(call.at(i)); };
    auto size = [&](size_t i) {
      return call.size() > i + 1 ? size_t(number(i)) : bytes;
    };
    if (verb == "alloc")
      cudaMallocAsync(&buffers[call[1]], bytes, last());
    else if (verb == "free")
      cudaFreeAsync(buffer(1), last());
    else if (verb == "malloc")
      cudaMalloc(&buffers[call[1]], bytes);
    else if (verb == "hostfree")
      cudaFree(buffer(1));
    else if (verb == "write")
      kernel({}, {buffer(1)}, last());
    else if (verb == "read")
      kernel({buffer(1)}, {}, last());
    else if (verb == "make")
      kernel({buffer(1)}, {buffer(2)}, last());
    else if (verb == "record")
      cudaEventRecord(event(call[1]), last());
    else if (verb == "wait")
      cudaStreamWaitEvent(last(), event(call[1]), 0);
    else if (verb == "query")
      while (cudaEventQuery(event(call[1])) == cudaErrorNotReady)
        std::this_thread::yield();
    else if (verb == "sync")
      cudaStreamSynchronize(last());
    else if (verb == "destroy")
      destroyed.insert(call[1]), cudaStreamDestroy(last());
    else if (verb == "down")
      cudaMemcpyAsync(page(), buffer(1), bytes, cudaMemcpyDeviceToHost, last());
    else if (verb == "up")
      cudaMemcpyAsync(buffer(1), page(), bytes, cudaMemcpyHostToDevice, last());
    else if (verb == "pin")
      cudaMallocHost(&buffers[call[1]], bytes);
    else if (verb == "unpin")
      cudaFreeHost(buffer(1));
    else if (verb == "look")
      model::recordAccess(buffer(1), bytes, false);
    else if (verb == "capture")
      cudaStreamBeginCapture(last(), cudaStreamCaptureModeThreadLocal);
    else if (verb == "captured")
      cudaStreamEndCapture(last(), &graph);
    else if (verb == "launch")
      cudaGraphLaunch(graph, last());
    else if (verb == "scatter") // scatter ALL OWN COMM STREAM
      ncclReduceScatter(buffer(1), buffer(2), bytes / 2 / sizeof(double),
                        ncclFloat64, ncclSum, comm(3), last());
    else if (verb == "send") // send BUFFER PEER COMM [SIZE] STREAM
      ncclSend(buffer(1), size(4), ncclInt8, number(2), comm(3), last());
    else if (verb == "recv")
      ncclRecv(buffer(1), size(4), ncclInt8, number(2), comm(3), last());
    else if (verb == "gather") // gather OWN ALL COMM [SIZE] STREAM
      ncclAllGather(buffer(1), buffer(2), size(4) / 2, ncclInt8, comm(3),
                    last());
    else if (verb == "init") { // init COMM
      ncclConfig_t config{.blocking = 0};
      ncclCommInitRankConfig(&comms[call[1]], ranks, id, rank, &config);
    } else if (verb == "split") { // split COMM NEW
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      ncclCommSplit(comm(1), 0, rank, &comms[call[2]], &config);
    } else if (verb == "ready") { // ready COMM
      ncclResult_t state = ncclInProgress;
      while (state == ncclInProgress) {
        ncclCommGetAsyncError(comm(1), &state);
        std::this_thread::yield();
      }
    } else if (verb == "count") { // count COMM
      int count;
      ncclCommCount(comm(1), &count);
    } else if (verb == "group")
      ncclGroupStart();
    else if (verb == "end")
      ncclGroupEnd();
    else
      throw std::runtime_error("no call " + verb);
  }

private:
  void kernel(std::vector<void *> reads, std::vector<void *> writes,
              cudaStream_t stream) {
    model::kernel(stream, [=] {
      for (void *data : reads)
        model::recordAccess(data, bytes, false);
      for (void *data : writes)
        model::recordAccess(data, bytes, true);
      return true;
    });
  }
  cudaStream_t stream(const std::string &name) {
    cudaStream_t &found = streams[name];
    if (!found)
      cudaStreamCreateWithFlags(&found, cudaStreamNonBlocking);
    return found;
  }
  cudaEvent_t event(const std::string &name) {
    cudaEvent_t &found = events[name];
    if (!found)
      cudaEventCreateWithFlags(&found, cudaEventDisableTiming);
    return found;
  }

  int rank, ranks;
  ncclUniqueId id; ///< Of N.
  std::map<std::string, ncclComm_t> comms;
  std::map<std::string, cudaStream_t> streams;
  std::map<std::string, cudaEvent_t> events;
  std::map<std::string, void *> buffers;
  std::set<std::string> destroyed;
  char pages[bytes];
  cudaGraph_t graph = nullptr;
};

/// Runs the lists of all ranks; what is reported, in one text.
std::string run(const std::vector<Calls> &ranks) {
  ncclUniqueId ids[3];
  for (ncclUniqueId &id : ids)
    ncclGetUniqueId(&id);
  {
    std::vector<std::jthread> hosts;
    for (size_t rank = 0; rank != ranks.size(); ++rank)
      hosts.emplace_back([&, rank] {
        Host host(int(rank), int(ranks.size()), ids);
        for (const Call &call : ranks[rank]) {
          std::string place;
          for (const std::string &word : call)
            place += (place.empty() ? "" : " ") + word;
          model::setPlace(place);
          host.make(call);
        }
      });
  }
  std::string text;
  for (const std::string &report : model::takeReports())
    text += (text.empty() ? "" : "\n") + report;
  return text;
}

/// `drop K`, `swap K` (with the next), `set K CALL`, `add K CALL` (in front of
/// it); the first is 1.
void damage(Calls &calls, const std::string &edit) {
  Call words = wordsOf(edit);
  auto at = calls.begin() + std::stoi(words.at(1)) - 1;
  Call call(words.begin() + 2, words.end());
  if (words[0] == "drop")
    calls.erase(at);
  else if (words[0] == "swap")
    std::swap(at[0], at[1]);
  else if (words[0] == "set")
    *at = call;
  else
    calls.insert(at, call);
}

int tryFaults(const char *name) {
  std::ifstream file(name);
  std::vector<Calls> base;
  std::string program;
  int good = 0, found = 0, wrong = 0;
  bool isTried = true;
  auto tryBase = [&] {
    if (std::exchange(isTried, true))
      return;
    std::string text = run(base);
    good += text.empty();
    wrong += !text.empty();
    if (!text.empty())
      std::cout << program << ": " << text << "\n";
  };
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#')
      continue;
    if (line.starts_with("program ")) {
      tryBase();
      base.clear();
      program = line;
      isTried = false;
    } else if (size_t bar = line.find(" | "); bar == std::string::npos) {
      base.push_back(callsOf(line.substr(2)));
    } else { // RANK EDIT [, RANK EDIT] | WORDS
      tryBase();
      std::vector<Calls> damaged = base;
      std::istringstream edits(line.substr(0, bar));
      for (std::string edit; std::getline(edits, edit, ',');) {
        edit.erase(0, edit.find_first_not_of(' '));
        damage(damaged.at(size_t(edit[0] - '0')), edit.substr(2));
      }
      std::string text = run(damaged);
      if (std::regex_search(text, std::regex(line.substr(bar + 3)))) {
        ++found;
        continue;
      }
      ++wrong;
      std::cout << program << ", " << line << "\n  got: " << text << "\n";
    }
  }
  tryBase();
  std::cout << good << " programs are right, " << found << " faults are found, "
            << wrong << " are not as they should be\n";
  return wrong != 0;
}

// ---- Mutations ----

/// Whether two calls of one rank conflict on memory with no path between them:
/// along streams, and from records to waits. Shares nothing with the model.
bool hasRace(const Calls &calls) {
  size_t n = calls.size();
  std::vector<std::vector<bool>> reaches(n, std::vector<bool>(n));
  for (size_t i = 0; i != n; ++i) {
    auto comesBehind = [&](size_t j) {
      reaches[j][i] = true;
      for (size_t k = 0; k != j; ++k)
        if (reaches[k][j])
          reaches[k][i] = true;
    };
    for (size_t j = i; j-- != 0;)
      if (calls[j].back() == calls[i].back()) {
        comesBehind(j);
        break;
      }
    for (size_t j = i; calls[i][0] == "wait" && j-- != 0;)
      if (calls[j][0] == "record" && calls[j][1] == calls[i][1]) {
        comesBehind(j);
        break;
      }
  }
  auto touches = [&](size_t i, const std::string &buffer) {
    const std::string &verb = calls[i][0];
    if (verb == "read" || verb == "write" || verb == "alloc" || verb == "free")
      return calls[i][1] == buffer ? (verb == "read" ? 1 : 2) : 0;
    if (verb == "make")
      return calls[i][2] == buffer ? 2 : calls[i][1] == buffer ? 1 : 0;
    return 0;
  };
  for (size_t i = 0; i != n; ++i)
    for (size_t j = 0; j != i; ++j)
      for (const char *buffer : {"x", "y", "z"})
        if (touches(i, buffer) + touches(j, buffer) >= 3 &&
            touches(i, buffer) != 0 && touches(j, buffer) != 0 &&
            !reaches[j][i])
          return true;
  return false;
}

/// Random kernels on four streams, with waits where they are needed, and some
/// where they are not.
Calls randomCalls(std::mt19937 &random) {
  auto pick = [&](auto... words) {
    std::array all = {std::string(words)...};
    return all[random() % all.size()];
  };
  Calls calls;
  int events = 0;
  auto add = [&](Call call) {
    calls.push_back(call);
    // Behind those that it needs.
    while (hasRace(calls)) {
      Call latest = calls.back();
      calls.pop_back();
      std::string other = pick("a", "b", "c", "d");
      std::string event = "e" + std::to_string(events++);
      calls.push_back({"record", event, other});
      calls.push_back({"wait", event, latest.back()});
      calls.push_back(latest);
    }
  };
  for (const char *buffer : {"x", "y", "z"}) {
    add({"alloc", buffer, "a"});
    add({"write", buffer, "a"});
  }
  for (int i = 0; i != 14; ++i) {
    std::string stream = pick("a", "b", "c", "d");
    std::string verb = pick("read", "write", "make", "read");
    std::string from = pick("x", "y", "z");
    if (verb == "make")
      add({verb, from, from == "x" ? "y" : "x", stream});
    else
      add({verb, from, stream});
  }
  for (const char *buffer : {"x", "y", "z"})
    add({"free", buffer, "a"});
  return calls;
}

int mutate(unsigned count) {
  std::mt19937 random(1);
  unsigned good = 0, races = 0, harmless = 0, wrong = 0;
  for (unsigned i = 0; i != count; ++i) {
    Calls calls = randomCalls(random);
    if (run({calls}).empty())
      ++good;
    else
      ++wrong;
    std::vector<size_t> waits;
    for (size_t j = 0; j != calls.size(); ++j)
      if (calls[j][0] == "wait")
        waits.push_back(j);
    if (waits.empty())
      continue;
    calls.erase(calls.begin() + std::ptrdiff_t(waits[random() % waits.size()]));
    bool expected = hasRace(calls), reported = !run({calls}).empty();
    wrong += expected != reported;
    races += expected && reported;
    harmless += !expected && !reported;
  }
  std::cout << good << " programs are right; one wait less: " << races
            << " races are found, " << harmless
            << " changes do no harm; wrong: " << wrong << "\n";
  return wrong != 0;
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 3)
    return 2;
  return std::string(argv[1]) == "mutate" ? mutate(unsigned(std::stoi(argv[2])))
                                          : tryFaults(argv[2]);
}
