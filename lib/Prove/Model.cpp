#include "Evidence.h"

#include "ppcc/Analysis/Report/MemoryCurve.h"

using namespace ppcc;
using proof::Costs;

static_assert(proof::timeUnit == cost::unit &&
              proof::timeUnit == scaling::unit);
static_assert(proof::memoryUnit == amount::unit);
static_assert(proof::noPeer == Action::noPeer &&
              proof::noMicrobatch == Action::noMicrobatch);

static bool isScale(Cost what) {
  return rowOf(what).granularity == CostGranularity::Microbatches;
}

namespace {

class ModelBuilder {
public:
  ModelBuilder(const Program &sample, const proof::Template &family)
      : sample(sample), unscaled(withoutScales(sample)), family(family),
        durations(unscaled), scales(sample),
        model(std::make_shared<proof::Model>()), costs(model->costs),
        occurs(sample.kinds().size()) {
    static_cast<Topology &>(*model) = sample.head();
    for (Pipe &pipe : model->pipes)
      pipe.tensors.clear();
    for (const auto &rows : family.ranks)
      for (const proof::Row &row : rows)
        occurs.set(row.kind.value);
  }

  std::shared_ptr<const proof::Model> build() {
    bool scalesTime = llvm::any_of(sample.costs().settings, [](auto &setting) {
      return isScale(setting.what) && setting.what != Cost::ScaleMemory &&
             setting.what != Cost::ScaleBytes;
    });
    bool scalesBytes = sample.costs().hasMessageTimes() &&
                       sample.costs().has({Cost::Scale, Cost::ScaleBytes});
    // Of other programs the checker knows no times.
    if (!durations.hasHookOffsets() && !scalesBytes &&
        !(scalesTime && !sample.nodes().empty())) {
      addTimes(scalesTime);
      addGroups();
      addLinks();
    }
    addMemory();
    return model;
  }

private:
  static Program withoutScales(Program program) {
    if (hasScales(program.costs()))
      llvm::erase_if(
          program.editHead().costs.settings,
          [](const CostSetting &setting) { return isScale(setting.what); });
    return program;
  }

  /// One value where all are the same.
  static Costs::Values values(Costs::Values list) {
    if (llvm::all_equal(list))
      list.resize(std::min<size_t>(list.size(), 1));
    return list;
  }
  /// By stage, pipe after pipe.
  Costs::Values byStage(auto of, KindId kind) const {
    Costs::Values list;
    for (PipeId pipe : unscaled.pipeIds())
      for (StageId stage : unscaled.pipe(pipe).stages())
        list.push_back(
            of(Action{kind, pipe, stage, unscaled.pipe(pipe).firstMicrobatch}));
    return values(std::move(list));
  }
  /// The kinds of actions that compute, as far as there are some.
  template <class Visit> void forEachKind(Visit visit) const {
    for (KindId kind : unscaled.kinds().ids())
      if (occurs.test(kind.value) && unscaled.kinds()[kind].isCompute())
        visit(kind);
  }
  /// By microbatch, pipe after pipe.
  Costs::Values byMicrobatch(auto of) const {
    Costs::Values list;
    for (PipeId id : sample.pipeIds())
      for (uint32_t i = 0; i != sample.pipe(id).numMicrobatches; ++i)
        list.push_back(of(id, sample.pipe(id).firstMicrobatch + i));
    return list;
  }

  void addTimes(bool isScaled) {
    forEachKind([&](KindId kind) {
      costs.times[kind.value] = byStage(
          [&](const Action &action) { return durations.of(action); }, kind);
      if (!isScaled)
        return;
      auto factors = byMicrobatch([&](PipeId pipe, uint32_t microbatch) {
        return scales.timeFactor({kind, pipe, StageId(), microbatch});
      });
      if (llvm::any_of(factors, [](int64_t f) { return f != scaling::unit; }))
        costs.timeScales[kind.value] = std::move(factors);
    });
  }

  void addGroups() {
    if (const CostSetting *group = sample.costs().group()) {
      costs.group = group->what == Cost::GroupSum   ? Costs::Group::Sum
                    : group->what == Cost::GroupMax ? Costs::Group::Max
                                                    : Costs::Group::Fixed;
      costs.factor = group->values.front();
    }
    if (sample.nodes().empty())
      return;
    // Their nodes may take turns.
    for (const auto &rows : family.ranks)
      for (size_t begin = 0, end; begin != rows.size(); begin = end) {
        std::vector<Costs::Member> members;
        Rows group;
        group.beginRank();
        for (end = begin;
             end == begin || (end != rows.size() && rows[end].joined); ++end) {
          const proof::Row &row = rows[end];
          members.push_back({row.kind.value, row.pipe.value, row.stage.value});
          Action action{row.kind, row.pipe, row.stage,
                        unscaled.pipe(row.pipe).firstMicrobatch};
          action.joined = row.joined;
          group.append(action);
        }
        if (members.size() == 1 || costs.groups.count(members))
          continue;
        Program alone = unscaled.withRows(std::move(group));
        costs.groups[members] = durations.of(
            alone, ActionId(0), ActionId(static_cast<uint32_t>(alone.size())));
      }
  }

  void addLinks() {
    forEachEdge(unscaled.pipes(), [&](PipeId pipe, StageId from, StageId to) {
      if (unscaled.rankOfStage(pipe, from) == unscaled.rankOfStage(pipe, to))
        return;
      Time time =
          durations.ofEdge(pipe, from, to, unscaled.pipe(pipe).firstMicrobatch);
      if (time != 0)
        costs.links[{pipe.value, from.value, to.value}] = time;
    });
  }

  void addMemory() {
    MemoryModel memory(unscaled);
    forEachKind([&](KindId kind) {
      bool makesWeights = unscaled.kinds()[kind].defines & slot::WeightGrad;
      auto amounts = byStage(
          [&](const Action &action) {
            return memory.freesRemainder(action) ? Costs::remainder
                                                 : memory.of(action);
          },
          kind);
      if (makesWeights ? amounts != Costs::Values{Costs::remainder}
                       : amounts != Costs::Values{0})
        costs.memory[kind.value] = std::move(amounts);
    });
    if (const CostSetting *scale =
            sample.costs().last({Cost::Scale, Cost::ScaleMemory}))
      costs.memoryScales = scale->values;
    for (RankId rank : firstIds<RankId>(unscaled.numRanks())) {
      costs.staticMemory.push_back(static_cast<Amount>(
          std::min<decimal::Sum>(memory.staticOf(rank), amount::max)));
      if (auto limit = memory.limitOf(rank))
        costs.limits.push_back(*limit);
    }
    costs.staticMemory = values(std::move(costs.staticMemory));
    costs.limits = values(std::move(costs.limits));
  }

  const Program &sample;
  const Program unscaled; ///< Without what microbatches take more than others.
  const proof::Template &family;
  const Durations durations;
  const MicrobatchScales scales;
  std::shared_ptr<proof::Model> model;
  Costs &costs;
  BitVector occurs; ///< By kind.
};

} // namespace

std::shared_ptr<const proof::Model>
ppcc::modelOf(const Program &sample, const proof::Template &family) {
  return ModelBuilder(sample, family).build();
}
