// Writes the costs of a program as docs/costs.schema.json describes them.
#include "Costs.h"

#include <map>

using namespace ppcc;
using llvm::StringRef;

namespace {

using Format = std::string (*)(int64_t);

std::string formatAmount(Amount value) { return amount::format(value); }

/// What the settings of one thing come to: the last for all pipes, and what
/// pipes have of their own since.
struct Values {
  std::vector<int64_t> all;
  std::map<PipeId, std::vector<int64_t>> byPipe;

  void set(std::optional<PipeId> pipe, const std::vector<int64_t> &values) {
    if (pipe) {
      byPipe[*pipe] = values;
      return;
    }
    byPipe.clear();
    all = values;
  }
};

class CostsWriter {
public:
  CostsWriter(Writer &writer, const Program &program)
      : writer(writer), program(program) {}

  void put() {
    const CostModel &costs = program.costs();
    writer.put('{');
    times();
    if (costs.overlap || costs.hasOwnRule()) {
      key("overlap");
      overlap();
    }
    latency();
    stages("bandwidth", costs.bandwidths, formatAmount);
    stages("bytes", costs.bytes, formatAmount);
    kinds("memory", costs.memory, formatAmount);
    stages("static", costs.staticMemory, formatAmount);
    if (!costs.memoryLimits.empty()) {
      key("limit");
      values(costs.memoryLimits, formatAmount);
    }
    if (!costs.scales.empty())
      scales();
    writer.put('}');
  }

private:
  void key(StringRef name) {
    if (!std::exchange(isFirst, false))
      writer.put(", ");
    string(name);
    writer.put(": ");
  }

  void string(StringRef text) { writer.json(text); }

  void overlap() {
    const CostModel &costs = program.costs();
    if (costs.overlap)
      return writer.put(cost::format(*costs.overlap));
    writer.put(costs.groupRule == GroupRule::Max ? "{\"max\": " : "{\"sum\": ");
    writer.put(cost::format(costs.groupFactor));
    writer.put('}');
  }

  void latency() {
    const CostModel &costs = program.costs();
    Values all;
    if (costs.latency)
      all.set({}, {*costs.latency});
    else if (!costs.latencies.empty())
      all.set({}, {0});
    for (const StageSetting &setting : costs.latencies)
      all.set(setting.pipe, setting.values);
    put("latency", all, cost::format);
  }

  void stages(StringRef name, const std::vector<StageSetting> &settings,
              Format format) {
    Values all;
    for (const StageSetting &setting : settings)
      all.set(setting.pipe, setting.values);
    put(name, all, format);
  }

  /// Of actions, and of nodes.
  void times() {
    const CostModel &costs = program.costs();
    if (costs.actions.empty() && costs.nodes.empty())
      return;
    std::map<std::string, Time> nodes;
    for (const NodeCost &setting : costs.nodes)
      nodes[program.kinds()[setting.part].letters + "." + setting.name] =
          setting.time;
    key("cost");
    writer.put('{');
    isFirst = true;
    putKinds(costs.actions, cost::format);
    for (const auto &[name, time] : nodes) {
      key(name);
      writer.put(cost::format(time));
    }
    writer.put('}');
    isFirst = false;
  }

  /// What the scales come to: each overrides those before it.
  void scales() {
    using Of = MicrobatchScale::Of;
    std::map<Of, const MicrobatchScale *> whole;
    std::map<KindId, const MicrobatchScale *> kinds;
    for (const MicrobatchScale &scale : program.costs().scales) {
      if (scale.kind) {
        kinds[*scale.kind] = &scale;
        continue;
      }
      for (Of of : {Of::Time, Of::Memory, Of::Bytes})
        if (scale.of == of || scale.of == Of::All)
          whole[of] = &scale;
      if (scale.of == Of::All || scale.of == Of::Time)
        kinds.clear();
    }
    key("scale");
    writer.put('{');
    isFirst = true;
    auto put = [&](StringRef name, const MicrobatchScale &scale) {
      key(name);
      list(scale.factors, scaling::format);
    };
    for (auto [of, scale] : whole)
      put(scaling::names()[size_t(of)], *scale);
    for (auto [kind, scale] : kinds)
      put(program.kinds()[kind].letters, *scale);
    writer.put('}');
    isFirst = false;
  }

  void kinds(StringRef name, const std::vector<CostSetting> &settings,
             Format format) {
    if (settings.empty())
      return;
    key(name);
    writer.put('{');
    isFirst = true;
    putKinds(settings, format);
    writer.put('}');
    isFirst = false;
  }

  void putKinds(const std::vector<CostSetting> &settings, Format format) {
    std::map<KindId, Values> kinds;
    for (const CostSetting &setting : settings)
      kinds[setting.kind].set(setting.pipe, setting.times);
    for (const auto &[kind, all] : kinds)
      put(program.kinds()[kind].letters, all, format);
  }

  void put(StringRef name, const Values &all, Format format) {
    if (all.all.empty() && all.byPipe.empty())
      return;
    key(name);
    if (all.byPipe.empty())
      return values(all.all, format);
    writer.put('{');
    bool first = true;
    for (uint32_t pipe = 0; pipe != program.pipes().size(); ++pipe) {
      auto own = all.byPipe.find(PipeId(pipe));
      const auto &shown = own == all.byPipe.end() ? all.all : own->second;
      if (shown.empty())
        continue;
      if (!std::exchange(first, false))
        writer.put(", ");
      string(program.pipes()[pipe].name);
      writer.put(": ");
      values(shown, format);
    }
    writer.put('}');
  }

  void values(const std::vector<int64_t> &values, Format format) {
    if (values.size() == 1)
      return writer.put(format(values.front()));
    list(values, format);
  }

  void list(const std::vector<int64_t> &values, Format format) {
    if (values.empty())
      return writer.put("[]");
    char before = '[';
    for (int64_t value : values) {
      writer.put(before);
      writer.put(format(value));
      before = ',';
    }
    writer.put(']');
  }

  Writer &writer;
  const Program &program;
  bool isFirst = true;
};

} // namespace

void ppcc::putCosts(Writer &writer, const Program &program) {
  CostsWriter(writer, program).put();
}
