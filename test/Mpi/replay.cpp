// Replays the actions of a program on MPI with blocking sends, one process a
// rank.
//
//   mpirun -np P replay FILE [SECONDS]
//
// FILE is what --emit=actions writes. A send is MPI_Ssend, a receive MPI_Recv,
// all with one tag; compute actions do nothing. A message says what it carries;
// when that is not what the receiver expects, the run ends with status 3. A
// rank that makes no progress for SECONDS (2) says where it is and waits on.
#include <mpi.h>

#include <cctype>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace {

enum Exit { BadInput = 2, WrongMessage = 3 };

/// One action, `0F3` or `0SEND_F3>7`.
struct Cell {
  std::string text, letters;
  int stage = 0, microbatch = 0, peer = 0;

  bool sends() const { return letters.rfind("SEND_", 0) == 0; }
  bool receives() const { return letters.rfind("RECV_", 0) == 0; }
  bool isMessage() const { return sends() || receives(); }
};

/// What a message holds: stage from, stage to, microbatch, last letter of the
/// kind.
using Label = std::vector<int>;

Label labelOf(const Cell &cell) {
  int from = cell.sends() ? cell.stage : cell.peer;
  int to = cell.sends() ? cell.peer : cell.stage;
  return {from, to, cell.microbatch, cell.letters.back()};
}

/// Actions that start together.
using Item = std::vector<Cell>;
using Rank = std::vector<Item>;

[[noreturn]] void fail(const std::string &what, int status) {
  std::fprintf(stderr, "replay: %s\n", what.c_str());
  MPI_Abort(MPI_COMM_WORLD, status);
  std::abort();
}

Cell parseCell(const std::string &text) {
  Cell cell;
  cell.text = text;
  std::istringstream in(text);
  in >> cell.stage;
  while (in.peek() == '_' || std::isalpha(in.peek()))
    cell.letters += static_cast<char>(in.get());
  if (!(in >> cell.microbatch) || cell.letters.empty())
    fail("`" + text + "` is not an action", BadInput);
  bool upward = cell.sends() == (cell.letters.back() == 'F');
  cell.peer = cell.stage + (upward ? 1 : -1);
  if (char mark; in >> mark && !(in >> cell.peer))
    fail("`" + text + "` is not an action", BadInput);
  return cell;
}

Item parseItem(std::string text) {
  if (text.front() == '(')
    text = text.substr(1, text.find(')') - 1);
  Item item;
  std::istringstream members(text);
  for (std::string member; std::getline(members, member, ';');)
    item.push_back(parseCell(member));
  return item;
}

std::vector<Rank> parseProgram(const char *path) {
  std::ifstream file(path);
  std::vector<Rank> ranks;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line.substr(line.find(':') + 1));
    ranks.emplace_back();
    for (std::string word; words >> word;)
      ranks.back().push_back(parseItem(word));
  }
  return ranks;
}

/// From a stage and a microbatch to the rank that works on them. The stage
/// alone would not do: pipes have places of their own.
std::map<std::pair<int, int>, int> homes(const std::vector<Rank> &ranks) {
  std::map<std::pair<int, int>, int> result;
  for (size_t rank = 0; rank != ranks.size(); ++rank)
    for (const Item &item : ranks[rank])
      for (const Cell &cell : item)
        if (!cell.isMessage())
          result[{cell.stage, cell.microbatch}] = static_cast<int>(rank);
  return result;
}

// For the handler of SIGALRM, which may do no more than write.
char stuckText[256];
unsigned timeout = 2;

void reportStuck(int) {
  ssize_t written = write(STDOUT_FILENO, stuckText, std::strlen(stuckText));
  static_cast<void>(written);
}

class Player {
public:
  Player(const std::vector<Rank> &ranks, int rank)
      : home(homes(ranks)), rank(rank) {}

  void play(const Rank &items) {
    for (const Item &item : items) {
      std::snprintf(stuckText, sizeof stuckText, "rank %d is stuck in %s\n",
                    rank, item.front().text.c_str());
      alarm(timeout);
      if (item.size() == 1)
        playAlone(item.front());
      else
        playTogether(item);
    }
    alarm(0);
  }

private:
  int peerOf(const Cell &cell) const {
    auto found = home.find({cell.peer, cell.microbatch});
    if (found == home.end())
      fail("nobody is at the other end of `" + cell.text + "`", BadInput);
    return found->second;
  }

  void playAlone(const Cell &cell) const {
    if (!cell.isMessage())
      return;
    Label label = labelOf(cell);
    int count = static_cast<int>(label.size());
    if (cell.sends()) {
      MPI_Ssend(label.data(), count, MPI_INT, peerOf(cell), 0, MPI_COMM_WORLD);
      return;
    }
    Label got(label.size());
    MPI_Recv(got.data(), count, MPI_INT, peerOf(cell), 0, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    check(cell, got);
  }

  void playTogether(const Item &item) const {
    std::vector<Label> labels;
    std::vector<MPI_Request> requests;
    for (const Cell &cell : item)
      labels.push_back(labelOf(cell));
    for (size_t i = 0; i != item.size(); ++i) {
      if (!item[i].isMessage())
        continue;
      requests.emplace_back();
      int count = static_cast<int>(labels[i].size()), peer = peerOf(item[i]);
      if (item[i].sends())
        MPI_Issend(labels[i].data(), count, MPI_INT, peer, 0, MPI_COMM_WORLD,
                   &requests.back());
      else
        MPI_Irecv(labels[i].data(), count, MPI_INT, peer, 0, MPI_COMM_WORLD,
                  &requests.back());
    }
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(),
                MPI_STATUSES_IGNORE);
    for (size_t i = 0; i != item.size(); ++i)
      if (item[i].receives())
        check(item[i], labels[i]);
  }

  void check(const Cell &cell, const Label &got) const {
    Label label = labelOf(cell);
    if (got == label)
      return;
    fail("rank " + std::to_string(rank) + " gets " + std::to_string(got[0]) +
             "SEND_" + static_cast<char>(got[3]) + std::to_string(got[2]) +
             " in " + cell.text,
         WrongMessage);
  }

  std::map<std::pair<int, int>, int> home;
  int rank;
};

} // namespace

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc < 2)
    fail("usage: replay FILE [SECONDS]", BadInput);
  if (argc > 2)
    timeout = static_cast<unsigned>(std::atoi(argv[2]));
  std::vector<Rank> ranks = parseProgram(argv[1]);
  if (static_cast<int>(ranks.size()) != size)
    fail("the program has " + std::to_string(ranks.size()) + " ranks, MPI " +
             std::to_string(size),
         BadInput);
  std::signal(SIGALRM, reportStuck);
  MPI_Barrier(MPI_COMM_WORLD);
  Player(ranks, rank).play(ranks[rank]);
  MPI_Finalize();
  if (rank == 0)
    std::puts("all ranks have ended");
}
