// Whether the order `late` goes on: it places sends behind the item that makes
// what they send, receives in front of the item that reads, with those that
// its sender sent sooner.
#include "Places.h"

#include "ppcc/Proof/Domain.h"

namespace ppcc::late {
using namespace proof;
namespace {

class Late {
public:
  explicit Late(const Template &program)
      : program(program), head(*program.head) {}

  bool isRight() const {
    for (const auto &rows : program.ranks) {
      for (uint32_t row = 0; row <= rows.size(); ++row)
        if (row == rows.size() || (!isMessage(rows[row]) && !rows[row].joined))
          if (!areBetween(rows, row))
            return false;
    }
    return true;
  }

private:
  /// A row in a turn.
  struct Place {
    uint32_t row;
    Affine turn;
  };

  bool isMessage(const Row &row) const {
    return !head.kinds[row.kind].isCompute();
  }

  /// Whether the messages between an item, or the end of a rank, and the item
  /// before it are what they should be, in each turn.
  bool areBetween(ArrayRef<Row> rows, uint32_t item) const {
    uint32_t window = item == rows.size() ? noWindow : rows[item].window;
    Domain whole{0, program.last, window != noWindow, {}, {0, 1, 0}};
    std::vector<Place> between; // From the last on.
    uint32_t row = item;
    auto collect = [&](uint32_t &row, Affine turn, std::vector<Place> &to) {
      for (; row != 0 && rows[row - 1].window == window &&
             isMessage(rows[row - 1]);
           --row)
        to.push_back({row - 1, turn});
      return row != 0 && rows[row - 1].window == window;
    };
    if (window != noWindow) {
      if (collect(row, ownTurn, between))
        return agree(rows, item, Place{row - 1, ownTurn}, whole, between);
      // In later turns the end of the turn before stands there,
      Domain later = whole;
      later.from = 1;
      later.lo = 1;
      std::vector<Place> again = between;
      uint32_t end = blockEnd(rows, row);
      if (!collect(end, {-1, 0, 1}, again) ||
          (program.last > 0 &&
           !agree(rows, item, Place{end - 1, {-1, 0, 1}}, later, again)))
        return false;
      whole.hi = {}; // in the first what is in front of the window.
    }
    auto turnOf = [&](uint32_t row) {
      return rows[row].window == noWindow ? Affine() : lastTurn;
    };
    for (; row != 0 && isMessage(rows[row - 1]); --row)
      between.push_back({row - 1, turnOf(row - 1)});
    std::optional<Place> before;
    if (row != 0)
      before = Place{row - 1, turnOf(row - 1)};
    return agree(rows, item, before, whole, between);
  }

  Affine microbatchOf(ArrayRef<Row> rows, Place place) const {
    return substitute(rows[place.row].microbatch, place.turn);
  }

  /// Whether messages, from the last on, are the sends of the item `before` and
  /// the receives of another.
  bool agree(ArrayRef<Row> rows, uint32_t item, std::optional<Place> before,
             const Domain &domain, ArrayRef<Place> between) const {
    size_t left = between.size();
    if (before) {
      uint32_t end = before->row + 1;
      while (rows[before->row].joined)
        --before->row;
      for (uint32_t row = before->row; row != end; ++row)
        if (!sendsAre(rows, {row, before->turn}, domain, between, left))
          return false;
    }
    for (uint32_t row = item;
         row != rows.size() && (row == item || rows[row].joined); ++row)
      if (!receivesAre(rows, row, domain, between, left))
        return false;
    return left == 0;
  }

  bool sendsAre(ArrayRef<Row> rows, Place maker, const Domain &domain,
                ArrayRef<Place> between, size_t &left) const {
    const Row &made = rows[maker.row];
    const Pipe &pipe = head.pipes[made.pipe.value];
    const KindInfo &info = head.kinds[made.kind];
    for (uint8_t slotBit : slotsIn(info.isDeclared() ? 0 : info.defines))
      for (StageId reader : readersOf(pipe, made.stage, slotBit)) {
        if (pipe.rankOfStage[reader.value] ==
            pipe.rankOfStage[made.stage.value])
          continue;
        if (left == 0)
          return false;
        Place place = between[--left];
        const Row &sent = rows[place.row];
        const KindInfo &kind = head.kinds[sent.kind];
        if (!kind.isSend() || kind.mainSlot() != slotBit ||
            sent.pipe != made.pipe || sent.stage != made.stage ||
            sent.peer != reader ||
            !isZero(microbatchOf(rows, place) - microbatchOf(rows, maker),
                    domain))
          return false;
      }
    return true;
  }

  /// Whether the next messages are what a row reads, and what was sent by the
  /// same ranks before.
  bool receivesAre(ArrayRef<Row> rows, uint32_t reader, const Domain &domain,
                   ArrayRef<Place> between, size_t &left) const {
    const Row &reads = rows[reader];
    const Pipe &pipe = head.pipes[reads.pipe.value];
    const KindInfo &info = head.kinds[reads.kind];
    for (uint8_t slotBit : slotsIn(info.isDeclared() ? 0 : info.defines))
      for (StageId source : sourcesOf(pipe, reads.stage, slotBit)) {
        RankId from = pipe.rankOfStage[source.value];
        if (from == pipe.rankOfStage[reads.stage.value])
          continue;
        // Up to the message, if it is among them.
        for (size_t i = left; i-- != 0;) {
          const Row &received = rows[between[i].row];
          const KindInfo &kind = head.kinds[received.kind];
          if (!kind.isRecv() ||
              head.rankOfStage(received.pipe, received.peer) != from)
            break;
          if (kind.mainSlot() != slotBit || received.pipe != reads.pipe ||
              received.stage != reads.stage || received.peer != source)
            continue;
          Affine more = microbatchOf(rows, between[i]) - reads.microbatch;
          if (isZero(more, domain)) {
            left = i;
            break;
          }
          if (!atLeast(more, domain, 1) && !atLeast(-1 * more, domain, 1))
            return false;
        }
      }
    return true;
  }

  const Template &program;
  const Topology &head;
};

} // namespace
} // namespace ppcc::late

bool ppcc::stayLate(const proof::Template &program) {
  return late::Late(program).isRight();
}
