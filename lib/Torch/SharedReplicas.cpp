#include "SharedReplicas.h"

#include "StageState.h"

#include "ppcc/Runtime/Error.h"
#include "ppcc/Runtime/Rows.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <tuple>

using namespace ppcc::rt;

namespace {

/// Type, shape and values of a weight. Equal weights with different beginnings
/// train, but to nothing.
std::string describe(const at::Tensor &weight) {
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

/// Calls `tell` with each action of the rank's list that sums gradients.
template <class Tell>
void forEachSum(const TorchStage &stage, uint32_t rank, Tell tell) {
  visitFlatRows(stage.program().ranks[rank], [&](const Row &row) {
    if (stage.own().actions[row.kind].role == ActionRole::ReducesGradients)
      tell(row);
  });
}

/// Whether what a row names is there: the engine refuses others.
bool isWhole(const Program &program, const Row &row) {
  if (row.kind >= program.kinds.size || row.pipe >= program.pipes.size ||
      row.site >= program.sites.size)
    return false;
  uint32_t numStages = program.pipes[row.pipe].numStages();
  const Kind &kind = program.kinds[row.kind];
  return row.stage < numStages &&
         (row.peer < numStages || (kind.runsOnStage() && !kind.isMove()));
}

/// The rank at the other end of a row.
uint32_t peerOf(const Program &program, uint32_t rank, const Row &row) {
  const ArrayView<uint32_t> &hosts = program.pipes[row.pipe].rankOfStage;
  return hosts[row.stage] == rank ? hosts[row.peer] : hosts[row.stage];
}

/// What two ranks do with each other between two steps.
struct Traffic {
  int64_t surplus = 0; ///< Of what is sent.
  Row sent, received;  ///< The last.
};

/// What the actions of a program sum together: places of one replica, or the
/// same stage of all.
class ReductionGroups {
public:
  explicit ReductionGroups(const TorchStage &stage) : program(stage.program()) {
    for (uint32_t rank = 0; rank != program.numRanks; ++rank)
      forEachSum(stage, rank, [&](const Row &row) {
        rows.insert({row.kind, row.pipe, row.stage});
      });
  }

  /// Whether one action sums what the two places have; on one rank none is
  /// needed.
  bool connect(StageReplica a, StageReplica b) const {
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

  bool connects(const Summed &row, StageReplica a, StageReplica b) const {
    const Kind &kind = program.kinds[row.kind];
    bool sameReplica = a.rank / program.numRanks == b.rank / program.numRanks;
    auto both = [&](auto test) { return sameReplica && test(a) && test(b); };
    switch (kind.collective) {
    case Collective::None:
    case Collective::To: // It moves something, and sums nothing.
    case Collective::From:
      return false;
    case Collective::All:
      return sameReplica;
    case Collective::Replicas:
      return both([&](StageReplica place) { return place.stage == row.stage; });
    case Collective::Stages:
      return both([&](StageReplica place) {
        return place.pipe == row.pipe &&
               namesStage(kind.stages, program.pipes[place.pipe].numStages(),
                          place.stage);
      });
    case Collective::Outside:
      return a.pipe == row.pipe && b.pipe == row.pipe && a.stage == row.stage &&
             b.stage == row.stage;
    }
    return false;
  }

  const Program &program;
  std::set<Summed> rows;
};

/// A place that no chain of meetings connects with the first; null when there
/// is none.
const StageReplica *findUnconnected(const ReductionGroups &meetings,
                                    const std::vector<StageReplica> &places) {
  std::vector<const StageReplica *> reached{&places.front()}, rest;
  for (size_t i = 1; i < places.size(); ++i)
    rest.push_back(&places[i]);
  for (size_t next = 0; next != reached.size(); ++next)
    std::erase_if(rest, [&](const StageReplica *place) {
      bool isNew = meetings.connect(*reached[next], *place);
      if (isNew)
        reached.push_back(place);
      return isNew;
    });
  return rest.empty() ? nullptr : rest.front();
}

} // namespace

std::string ppcc::rt::describeWeights(const TorchStage &stage) {
  std::ostringstream text;
  for (const auto &[key, module] : stage.modules())
    for (const Parameter &parameter : module.parameters)
      text << int(key.first) << ' ' << key.second << ' ' << parameter.name
           << '\n'
           << describe(parameter.value) << '\n';
  return text.str();
}

SharedReplicas
ppcc::rt::findSharedReplicas(const std::vector<std::string> &described) {
  struct Found {
    StageReplica place;
    std::string description;
  };
  std::map<std::string, std::vector<Found>> all;
  for (uint32_t rank = 0; rank != described.size(); ++rank) {
    std::istringstream in(described[rank]);
    unsigned pipe, stage;
    std::string name, description;
    while (in >> pipe >> stage && in.get() && std::getline(in, name) &&
           std::getline(in, description))
      all[name].push_back(
          {{rank, static_cast<uint8_t>(pipe), static_cast<uint16_t>(stage)},
           description});
  }
  SharedReplicas result;
  for (const auto &[name, found] : all) {
    const Found &first = found.front();
    std::set<StageReplica> places;
    for (const Found &other : found) {
      if (other.description != first.description)
        throw Error(
            concat("the weight `", name, "` is ", first.description,
                   " on rank ", first.place.rank, " and ", other.description,
                   " on rank ", other.place.rank,
                   ": stages that share a weight must begin with the same"));
      places.insert(other.place);
    }
    if (found.size() != 1)
      result[name].assign(places.begin(), places.end());
  }
  return result;
}

std::map<std::pair<uint8_t, uint16_t>, uint64_t>
ppcc::rt::countReductions(const TorchStage &stage) {
  std::map<std::pair<uint8_t, uint16_t>, uint64_t> counts;
  if (stage.own().has(ActionRole::ReducesGradients))
    forEachSum(stage, stage.rank(),
               [&](const Row &row) { ++counts[{row.pipe, row.stage}]; });
  return counts;
}

void ppcc::rt::checkReductions(const TorchStage &stage,
                               const SharedReplicas &places) {
  if (!stage.own().has(ActionRole::Steps) || places.empty())
    return;
  ReductionGroups meetings(stage);
  auto text = [&](const StageReplica &place) {
    return concat("stage ", place.stage, " of pipe `",
                  stage.program().pipes[place.pipe].name, "` on rank ",
                  place.rank);
  };
  for (const auto &[name, all] : places)
    if (const StageReplica *other = findUnconnected(meetings, all))
      throw Error("the program moves the weight `" + name + "`, which " +
                  text(all.front()) + " and " + text(*other) +
                  " share, but has no action that sums their gradients "
                  "before: reduce_embedding, reduce_replicas and reduce_grads "
                  "of std.pp are such");
}

void ppcc::rt::checkStepIsBarrier(const TorchStage &stage) {
  if (!stage.own().has(ActionRole::Steps))
    return;
  const Program &program = stage.program();
  auto fail = [&](uint32_t rank, const Row &row) {
    throw Error(rank, actionName(program, row), locationOf(program, row.site),
                "stands after STEP, which waits for all ranks, as the norm of "
                "all gradients is asked for, but the other end of it stands "
                "ahead: do it before, or set no maxNorm and no scale");
  };
  // By the number of steps ahead, and who sends to whom.
  std::map<std::tuple<uint64_t, uint32_t, uint32_t>, Traffic> traffic;
  struct Seen {
    uint64_t numSteps;
    uint32_t rank;
    Row row;
  };
  std::map<uint8_t, Seen> together; // By kind.
  std::optional<uint64_t> stepsOfFirst;
  for (uint32_t rank = 0; rank != program.numRanks; ++rank) {
    uint64_t numSteps = 0;
    visitFlatRows(program.ranks[rank], [&](const Row &row) {
      if (!isWhole(program, row))
        return;
      const Kind &kind = program.kinds[row.kind];
      if (stage.own().actions[row.kind].role == ActionRole::Steps) {
        ++numSteps;
      } else if (!kind.runsOnStage() || kind.isMove()) {
        uint32_t other = peerOf(program, rank, row);
        bool sends = kind.kindClass == KindClass::Send ||
                     kind.collective == Collective::To;
        Traffic &found =
            traffic[{numSteps, sends ? rank : other, sends ? other : rank}];
        (sends ? found.sent : found.received) = row;
        found.surplus += sends ? 1 : -1;
      } else if (kind.collective != Collective::None &&
                 kind.collective != Collective::Outside) {
        const Seen &first =
            together.try_emplace(row.kind, Seen{numSteps, rank, row})
                .first->second;
        if (first.numSteps < numSteps)
          fail(rank, row);
        if (first.numSteps > numSteps)
          fail(first.rank, first.row);
      }
    });
    if (numSteps != stepsOfFirst.value_or(numSteps))
      throw Error(concat("rank ", rank, " has STEP ", numSteps,
                         " times and rank 0 ", *stepsOfFirst,
                         " times, but each waits for that of all ranks"));
    stepsOfFirst = numSteps;
  }
  for (const auto &[pair, found] : traffic)
    if (const auto &[numSteps, from, to] = pair;
        numSteps != 0 && found.surplus != 0)
      fail(found.surplus > 0 ? from : to,
           found.surplus > 0 ? found.sent : found.received);
}
