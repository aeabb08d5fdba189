// Whether the order `late` goes on: it places sends after the item that makes
// what they send, receives before the item that reads, with those that
// its sender sent sooner.
#include "PlacementProof.h"

#include "ppcc/Proof/Domain.h"

namespace ppcc::late {
using namespace proof;
namespace {

class LatePlacementProver {
public:
  explicit LatePlacementProver(const Template &program)
      : program(program), head(*program.head) {}

  bool isPlacementProven() const {
    for (const auto &rows : program.ranks) {
      for (uint32_t row = 0; row <= rows.size(); ++row)
        if (row == rows.size() || (!isMessage(rows[row]) && !rows[row].joined))
          if (!checkMessagesBefore(rows, row))
            return false;
    }
    return true;
  }

private:
  /// A row in an iteration.
  struct RowInIteration {
    uint32_t row;
    Affine iteration;
  };

  bool isMessage(const Row &row) const {
    return !head.kinds[row.kind].isCompute();
  }

  /// Whether the messages between an item, or the end of a rank, and the item
  /// before it are what they should be, in each iteration.
  bool checkMessagesBefore(ArrayRef<Row> rows, uint32_t item) const {
    uint32_t loop = item == rows.size() ? noLoop : rows[item].loop;
    Domain whole{0, program.last, loop != noLoop, {}, {0, 1, 0}};
    std::vector<RowInIteration> between; // From the last on.
    uint32_t row = item;
    auto collect = [&](uint32_t &row, Affine iteration,
                       std::vector<RowInIteration> &to) {
      for (; row != 0 && rows[row - 1].loop == loop && isMessage(rows[row - 1]);
           --row)
        to.push_back({row - 1, iteration});
      return row != 0 && rows[row - 1].loop == loop;
    };
    if (loop != noLoop) {
      if (collect(row, thisIteration, between))
        return matchesPlan(rows, item, RowInIteration{row - 1, thisIteration},
                           whole, between);
      // In later turns the end of the iteration before stands there,
      Domain later = whole;
      later.from = 1;
      later.lo = 1;
      std::vector<RowInIteration> withPrevious = between;
      uint32_t end = blockEnd(rows, row);
      if (!collect(end, {-1, 0, 1}, withPrevious) ||
          (program.last > 0 &&
           !matchesPlan(rows, item, RowInIteration{end - 1, {-1, 0, 1}}, later,
                        withPrevious)))
        return false;
      whole.hi = {}; // in the first what is before the window.
    }
    auto iterationOf = [&](uint32_t row) {
      return rows[row].loop == noLoop ? Affine() : lastIteration;
    };
    for (; row != 0 && isMessage(rows[row - 1]); --row)
      between.push_back({row - 1, iterationOf(row - 1)});
    std::optional<RowInIteration> before;
    if (row != 0)
      before = RowInIteration{row - 1, iterationOf(row - 1)};
    return matchesPlan(rows, item, before, whole, between);
  }

  Affine microbatchOf(ArrayRef<Row> rows, RowInIteration place) const {
    return substitute(rows[place.row].microbatch, place.iteration);
  }

  /// Whether messages, from the last on, are the sends of the item `before` and
  /// the receives of another.
  bool matchesPlan(ArrayRef<Row> rows, uint32_t item,
                   std::optional<RowInIteration> before, const Domain &domain,
                   ArrayRef<RowInIteration> between) const {
    size_t left = between.size();
    if (before) {
      uint32_t end = before->row + 1;
      while (rows[before->row].joined)
        --before->row;
      for (uint32_t row = before->row; row != end; ++row)
        if (!consumeSends(rows, {row, before->iteration}, domain, between,
                          left))
          return false;
    }
    for (uint32_t row = item;
         row != rows.size() && (row == item || rows[row].joined); ++row)
      if (!consumeReceives(rows, row, domain, between, left))
        return false;
    return left == 0;
  }

  bool consumeSends(ArrayRef<Row> rows, RowInIteration producer,
                    const Domain &domain, ArrayRef<RowInIteration> between,
                    size_t &left) const {
    const Row &produced = rows[producer.row];
    const Pipe &pipe = head.pipes[produced.pipe.value];
    const KindInfo &info = head.kinds[produced.kind];
    for (uint8_t slotBit : slotsIn(info.isDeclared() ? 0 : info.defines))
      for (StageId reader : readersOf(pipe, produced.stage, slotBit)) {
        if (pipe.rankOfStage[reader.value] ==
            pipe.rankOfStage[produced.stage.value])
          continue;
        if (left == 0)
          return false;
        RowInIteration place = between[--left];
        const Row &sent = rows[place.row];
        const KindInfo &kind = head.kinds[sent.kind];
        if (!kind.isSend() || kind.mainSlot() != slotBit ||
            sent.pipe != produced.pipe || sent.stage != produced.stage ||
            sent.peer != reader ||
            !isZero(microbatchOf(rows, place) - microbatchOf(rows, producer),
                    domain))
          return false;
      }
    return true;
  }

  /// Whether the next messages are what a row reads, and what was sent by the
  /// same ranks before.
  bool consumeReceives(ArrayRef<Row> rows, uint32_t reader,
                       const Domain &domain, ArrayRef<RowInIteration> between,
                       size_t &left) const {
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
          if (!isAtLeast(more, domain, 1) && !isAtLeast(-1 * more, domain, 1))
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

bool ppcc::isLatePlacementStable(const proof::Template &program) {
  return late::LatePlacementProver(program).isPlacementProven();
}
