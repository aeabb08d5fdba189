#include "Places.h"

#include "ppcc/Runtime/Error.h"
#include "ppcc/Runtime/Rows.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <sstream>

using namespace ppcc::rt;

std::string ppcc::rt::describe(const at::Tensor &weight) {
  at::Tensor values = weight.detach().cpu().contiguous();
  const auto *bytes = static_cast<const uint8_t *>(values.data_ptr());
  uint64_t hash = 0xCBF29CE484222325u; // FNV-1a.
  for (size_t i = 0; i != values.nbytes(); ++i)
    hash = (hash ^ bytes[i]) * 0x100000001B3u;
  std::ostringstream out;
  out << weight.scalar_type() << ' ' << weight.sizes() << ", values "
      << std::hex << hash;
  return out.str();
}

void PlaceFinder::add(Place place, const std::string &name,
                      const std::string &description) {
  all[name].push_back({place, description});
}

Places PlaceFinder::shared() const {
  Places result;
  for (const auto &[name, found] : all) {
    const Found &first = found.front();
    std::set<Place> places;
    for (const Found &other : found) {
      if (other.description != first.description)
        throw Error("the weight `" + name + "` is " + first.description +
                    " on rank " + std::to_string(first.place.rank) + " and " +
                    other.description + " on rank " +
                    std::to_string(other.place.rank) +
                    ": stages that share a weight must begin with the same");
      places.insert(other.place);
    }
    if (found.size() != 1)
      result[name].assign(places.begin(), places.end());
  }
  return result;
}

namespace {

/// Calls `tell` with each row of the rank's list that sums gradients, and how
/// often it runs.
void forEachSum(const TorchStage &stage, uint32_t rank,
                const std::function<void(const Row &, uint32_t)> &tell) {
  const RankProgram &list = stage.program().ranks[rank];
  RowReader rows(list);
  for (const Segment &segment : list.segments)
    for (uint64_t i = 0; i != segment.rows; ++i) {
      Row row = rows[segment.firstRow + i];
      if (stage.roleOf(row.kind) == ActionRole::SumsGradients)
        tell(row, segment.count);
    }
}

bool hasRole(const TorchStage &stage, ActionRole role) {
  for (size_t kind = 0; kind != stage.program().kinds.size; ++kind)
    if (stage.roleOf(static_cast<uint8_t>(kind)) == role)
      return true;
  return false;
}

/// What the actions of a program sum together: places of one replica, or the
/// same stage of all.
class Meetings {
public:
  explicit Meetings(const TorchStage &stage) : program(stage.program()) {
    for (uint32_t rank = 0; rank != program.numRanks; ++rank)
      forEachSum(stage, rank, [&](const Row &row, uint32_t) {
        rows.insert({row.kind, row.pipe, row.stage});
      });
  }

  /// Whether one action sums what the two places have; on one rank none is
  /// needed.
  bool connect(Place a, Place b) const {
    return a.rank == b.rank ||
           std::any_of(rows.begin(), rows.end(),
                       [&](const Summed &row) { return connects(row, a, b); });
  }

private:
  struct Summed {
    uint8_t kind, pipe;
    uint16_t stage;
    auto operator<=>(const Summed &) const = default;
  };

  bool connects(const Summed &row, Place a, Place b) const {
    const Kind &kind = program.kinds[row.kind];
    bool sameReplica = a.rank / program.numRanks == b.rank / program.numRanks;
    auto both = [&](auto test) { return sameReplica && test(a) && test(b); };
    switch (kind.meeting) {
    case Meeting::None:
    case Meeting::To: // It moves something, and sums nothing.
    case Meeting::From:
      return false;
    case Meeting::All:
      return sameReplica;
    case Meeting::Replicas:
      return both([&](Place place) { return place.stage == row.stage; });
    case Meeting::Stages:
      return both([&](Place place) {
        return place.pipe == row.pipe && isNamed(kind, place);
      });
    case Meeting::Outside:
      return a.pipe == row.pipe && b.pipe == row.pipe && a.stage == row.stage &&
             b.stage == row.stage;
    }
    return false;
  }
  bool isNamed(const Kind &kind, Place place) const {
    int32_t count = static_cast<int32_t>(program.pipes[place.pipe].numStages());
    return std::any_of(
        kind.stages.begin(), kind.stages.end(), [&](int32_t stage) {
          return (stage < 0 ? stage + count : stage) == place.stage;
        });
  }

  const Program &program;
  std::set<Summed> rows;
};

/// A place that no chain of meetings connects with the first; null when there
/// is none.
const Place *unconnected(const Meetings &meetings,
                         const std::vector<Place> &places) {
  std::vector<const Place *> reached{&places.front()}, rest;
  for (size_t i = 1; i < places.size(); ++i)
    rest.push_back(&places[i]);
  for (size_t next = 0; next != reached.size(); ++next)
    std::erase_if(rest, [&](const Place *place) {
      bool isNew = meetings.connect(*reached[next], *place);
      if (isNew)
        reached.push_back(place);
      return isNew;
    });
  return rest.empty() ? nullptr : rest.front();
}

} // namespace

std::map<std::pair<uint8_t, uint16_t>, uint64_t>
ppcc::rt::countSums(const TorchStage &stage) {
  std::map<std::pair<uint8_t, uint16_t>, uint64_t> counts;
  if (hasRole(stage, ActionRole::SumsGradients))
    forEachSum(stage, stage.rank(), [&](const Row &row, uint32_t times) {
      counts[{row.pipe, row.stage}] += times;
    });
  return counts;
}

void ppcc::rt::checkSums(const TorchStage &stage, const Places &places) {
  if (!hasRole(stage, ActionRole::Steps) || places.empty())
    return;
  Meetings meetings(stage);
  auto text = [&](const Place &place) {
    return "stage " + std::to_string(place.stage) + " of pipe `" +
           stage.program().pipes[place.pipe].name + "` on rank " +
           std::to_string(place.rank);
  };
  for (const auto &[name, all] : places)
    if (const Place *other = unconnected(meetings, all))
      throw Error("the program moves the weight `" + name + "`, which " +
                  text(all.front()) + " and " + text(*other) +
                  " share, but has no action that sums their gradients "
                  "before: reduce_embedding, reduce_replicas and reduce_grads "
                  "of std.pp are such");
}
