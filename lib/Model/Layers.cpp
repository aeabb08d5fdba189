#include "Layers.h"
#include "ppcc/Basic/Diagnostics/Sema.h"
#include "ppcc/IR/HeadChecks.h"

using namespace ppcc;
using namespace ppcc::sema;

bool LayerFacts::hasChain(StringRef mnemonic) const {
  return llvm::any_of(chains, [&](const ast::ChainStmt *chain) {
    return chain->action.text == mnemonic;
  });
}

std::map<KindId, Time> LayerFacts::times() const {
  std::map<KindId, Time> times;
  for (const auto &[key, time] : costs)
    if (std::get<Cost>(key) == Cost::Action)
      times[std::get<KindId>(key)] = time;
  return times;
}

namespace {

constexpr int64_t maxLayers = NodeGraphs::maxNodes;
constexpr uint64_t maxPlaced = 4 * maxLayers; ///< In all cuts.

/// The layers of a part, in a row.
struct SequenceLayer : PlacedLayer {
  bool countsTowardShare; ///< Counts in an even cut; the others ride along.
};
using Sequence = std::vector<SequenceLayer>;

struct ModelPartitioner {
  const Section &model;
  const LayoutOverride &layout;
  const InstantiationContext &context;
  Evaluator &evaluator = context.evaluator;
  DiagnosticEngine &diags = context.diags;
  Head &head = context.head;

  std::optional<ModelPartition> run() {
    size_t before = diags.errorCount();
    Evaluator::Frame frame(evaluator, model.numLocals);
    for (const ast::NamedItem *item : model.layers)
      partition.layers.push_back(factsOf(*item));
    for (const auto &[item, slot] : model.settings)
      if (CostSetting found = *findSetting(*item, head.kinds);
          found.what == Cost::Node)
        nodeCosts[{Cost::Node, found.kind, item->node.text}] =
            evaluateCost(*item, context);
    isNumbered.resize(model.layers.size());
    for (const PartDecl &part : model.parts)
      sequences.push_back(sequenceOf(part));
    for (const ast::PatternItem *pattern : model.patterns)
      numberEach(pattern->body);
    for (const Pipe &pipe : head.pipes) {
      if (diags.errorCount() != before)
        return std::nullopt;
      auto alike =
          llvm::find_if(partition.partitions, [&](const PipePartition &other) {
            return other.stages.size() == pipe.numStages();
          });
      partition.ofPipe.push_back(alike - partition.partitions.begin());
      if (alike != partition.partitions.end())
        continue;
      if (uint64_t placed = (partition.partitions.size() + 1) * total;
          placed > maxPlaced) {
        evaluator.refuse<diag::TooManyNodes>(model.item->range, placed,
                                             maxPlaced);
        return std::nullopt;
      }
      partition.partitions.push_back(partitionInto(pipe.numStages()));
    }
    if (diags.errorCount() != before)
      return std::nullopt;
    number();
    addSums();
    return std::move(partition);
  }

  PipePartition partitionInto(uint32_t numStages) {
    size_t before = diags.errorCount();
    PipePartition made;
    made.stages.resize(numStages);
    bool hasLetters = !head.stageLayers.empty() && !model.layers.empty();
    hasLetters ? byLetters(made) : byParts(made);
    if (diags.errorCount() == before)
      for (size_t part = 0; part != model.parts.size(); ++part)
        addBetween(part, made);
    return made;
  }

  // ---- Facts ----

  LayerFacts factsOf(const ast::NamedItem &item) {
    LayerFacts facts;
    evaluator.clearFailed();
    evaluator.walk(item.body, [&](const ast::Stmt *stmt) {
      if (auto *chain = dyn_cast<ast::ChainStmt>(stmt)) {
        facts.chains.push_back(chain);
      } else if (auto *tensors = dyn_cast<ast::TensorsItem>(stmt)) {
        facts.gives = evaluateTensors(*tensors, evaluator);
        facts.clause = tensors;
      } else {
        auto *setting = cast<ast::SettingItem>(stmt);
        CostSetting found = *findSetting(*setting, head.kinds);
        facts.costs[{found.what, found.kind, setting->node.text}] =
            evaluateCost(*setting, context);
      }
      return !evaluator.failed();
    });
    for (const auto &[kind, time] : facts.times())
      if (facts.hasChain(head.kinds[kind].mnemonic))
        diags.report<diag::LayerHasNodes>(item.names.front().range,
                                          item.names.front().text,
                                          head.kinds[kind].mnemonic);
    return facts;
  }

  // ---- Sequences ----

  Sequence sequenceOf(const PartDecl &part) {
    Sequence sequence;
    add(part.runs, false, part, sequence);
    total += sequence.size();
    auto countsTowardShare = [](const SequenceLayer &layer) {
      return layer.countsTowardShare;
    };
    if (llvm::none_of(sequence, countsTowardShare))
      for (SequenceLayer &layer : sequence)
        layer.countsTowardShare = true;
    return sequence;
  }

  /// Adds the layers of `runs`, which stand in a group with a count or not.
  void add(ArrayRef<LayerRun> runs, bool isCounted, const PartDecl &part,
           Sequence &to) {
    for (const LayerRun &run : runs) {
      bool counts = isCounted || run.count;
      size_t begin = to.size();
      if (run.group.empty()) {
        bool countsTowardShare =
            part.counted.empty() ? counts
                                 : llvm::is_contained(part.counted, run.layer);
        to.push_back({{run.layer}, countsTowardShare});
        isNumbered[run.layer] = isNumbered[run.layer] || counts;
      } else {
        add(run.group, counts, part, to);
      }
      repeat(run, begin, to);
    }
  }

  /// Makes what stands after `begin` be there as often as a run says.
  void repeat(const LayerRun &run, size_t begin, Sequence &to) {
    size_t size = to.size() - begin;
    int64_t count = 1;
    evaluator.clearFailed();
    if (run.count)
      count = evaluator.evalInRange(run.count, "the number of layers", 0,
                                    (maxLayers - int64_t(total + begin)) /
                                        std::max<int64_t>(size, 1));
    to.resize(begin + size * count);
    for (size_t i = begin + size; i < to.size(); ++i)
      to[i] = to[i - size];
  }

  // ---- Numbers ----

  void numberEach(ast::Body body) {
    for (const ast::Stmt *stmt : body) {
      if (auto *each = dyn_cast<ast::NamedItem>(stmt))
        for (const ast::Identifier &name : each->names)
          for (auto [i, layer] : llvm::enumerate(model.layers))
            isNumbered[i] = isNumbered[i] || firstName(layer) == name.text;
      forEachBody(stmt, [&](ast::Body inner) { numberEach(inner); });
    }
  }

  /// Layers have numbers where there may be several of them in a stage: those
  /// with a count, those of `each`, and those that a stage has twice.
  void number() {
    for (PipePartition &made : partition.partitions)
      for (const auto &stage : made.stages) {
        llvm::DenseSet<uint32_t> seen;
        for (PlacedLayer layer : stage)
          if (!seen.insert(layer.layer).second)
            isNumbered[layer.layer] = true;
      }
    for (PipePartition &made : partition.partitions)
      for (auto &stage : made.stages)
        for (PlacedLayer &layer : stage)
          layer.isNumbered = isNumbered[layer.layer];
  }

  // ---- By letters ----

  /// Cuts where a layout says; its layers are those of the sequence.
  void byLetters(PipePartition &made) {
    std::vector<PlacedLayer> all;
    std::vector<size_t> endOfPart;
    for (const Sequence &sequence : sequences) {
      llvm::append_range(all, sequence);
      endOfPart.push_back(all.size());
    }
    size_t next = 0, part = 0;
    std::map<char, unsigned> counts;
    for (StringRef letters : head.stageLayers)
      for (char letter : letters)
        ++counts[letter];
    made.firstStage.push_back(0);
    for (auto [stage, letters] : llvm::enumerate(head.stageLayers)) {
      for (char letter : letters) {
        auto layer = layerOf(letter);
        if (!layer)
          return;
        while (part + 1 < endOfPart.size() && next == endOfPart[part]) {
          made.firstStage.push_back(stage);
          ++part;
        }
        if (sequences.empty()) {
          made.stages[stage].push_back({*layer});
          isNumbered[*layer] = isNumbered[*layer] || counts[letter] > 1;
          continue;
        }
        if (next == all.size() || all[next].layer != *layer)
          return diags.refuse<diag::LayoutDiffers>(
              locationOfLayout(&model, layout), next, nameOf(*layer),
              next == all.size() ? "nothing" : nameOf(all[next].layer));
        made.stages[stage].push_back(all[next++]);
      }
    }
    if (next != all.size())
      diags.report<diag::LayoutDiffers>(locationOfLayout(&model, layout), next,
                                        "nothing", nameOf(all[next].layer));
    made.firstStage.push_back(made.stages.size());
  }

  std::string nameOf(uint32_t layer) const {
    return fmt::format("`{}`", model.layers[layer]->names.front().text);
  }

  std::optional<uint32_t> layerOf(char letter) {
    if (auto *found = findBy(model.layers, StringRef(&letter, 1), firstName))
      return found - model.layers.data();
    return diags.report<diag::LayoutUnknown>(locationOfLayout(&model, layout),
                                             StringRef(&letter, 1));
  }

  // ---- Evenly, or by cost ----

  void byParts(PipePartition &made) {
    std::vector<uint32_t> counts = stagesOfParts(made.stages.size());
    uint32_t first = 0;
    for (auto [part, count] : llvm::enumerate(counts)) {
      made.firstStage.push_back(first);
      MutableArrayRef stages(made.stages.data() + first, count);
      isByCost(part) ? byCost(sequences[part], stages)
                     : partitionEvenly(sequences[part], stages);
      first += count;
    }
    made.firstStage.push_back(first);
  }

  bool isByCost(size_t part) const {
    return layout.isByCost.value_or(model.parts[part].isByCost);
  }

  /// What a stage of a part should have as much of as one of another: cost if
  /// all are cut by cost, else layers.
  std::vector<__int128> shares() const {
    bool byCost = true;
    for (size_t part = 0; part != sequences.size(); ++part)
      byCost &= isByCost(part);
    std::vector<__int128> result;
    for (const Sequence &sequence : sequences) {
      __int128 &sum = result.emplace_back(0);
      for (PlacedLayer layer : sequence)
        sum += byCost ? weightOf(layer.layer) : 1;
      sum = std::max<__int128>(sum, 1);
    }
    return result;
  }

  /// Shares the stages out among the parts that do not say how many they have;
  /// each has one at least.
  std::vector<uint32_t> stagesOfParts(int64_t stages) {
    int64_t parts = model.parts.size();
    std::vector<uint32_t> counts(parts, 1);
    if (parts == 1 && !model.parts.front().stages)
      return {uint32_t(stages)};
    int64_t left = stages;
    std::vector<size_t> open;
    for (auto [i, part] : llvm::enumerate(model.parts)) {
      if (part.stages) {
        evaluator.clearFailed();
        counts[i] = evaluator.evalInRange(part.stages->count,
                                          "the number of stages", 1, stages);
      } else {
        open.push_back(i);
      }
      left -= counts[i];
    }
    if (left < 0 || (open.empty() && left != 0)) {
      diags.report<diag::PartStages>(model.parts.back().range, stages - left,
                                     stages);
      return {};
    }
    std::vector<__int128> share = shares();
    for (; left > 0; --left) {
      auto few = [&](size_t a, size_t b) {
        auto isFull = [&](size_t part) { // Of stages of one layer.
          return counts[part] >= sequences[part].size();
        };
        if (isFull(a) != isFull(b))
          return isFull(b);
        return share[a] * counts[b] > share[b] * counts[a];
      };
      ++counts[*std::min_element(open.begin(), open.end(), few)];
    }
    return counts;
  }

  void partitionEvenly(const Sequence &sequence,
                       MutableArrayRef<std::vector<PlacedLayer>> stages) {
    size_t stage = 0, here = 0, seen = 0;
    size_t dealt = llvm::count_if(sequence, [](const SequenceLayer &layer) {
      return layer.countsTowardShare;
    });
    auto quota = [&](size_t s) {
      return dealt / stages.size() + (s < dealt % stages.size());
    };
    for (const SequenceLayer &layer : sequence) {
      if (layer.countsTowardShare)
        for (; here == quota(stage); here = 0)
          ++stage;
      here += layer.countsTowardShare;
      seen += layer.countsTowardShare;
      // What rides along after the last one that counts ends the model.
      bool isEnd = !layer.countsTowardShare && seen == dealt;
      stages[isEnd ? stages.size() - 1 : stage].push_back(layer);
    }
  }

  /// Of all its actions; of a B and its halves the B alone, or the halves.
  __int128 weightOf(uint32_t layer) const {
    const LayerFacts &facts = partition.layers[layer];
    std::map<KindId, __int128> times;
    for (auto [kind, time] : facts.times())
      times[kind] = time;
    for (const ast::ChainStmt *chain : facts.chains)
      for (const ast::GraphLink &link : chain->links) {
        KindId kind = *head.kinds.find(chain->action.text),
               part = link.part.text.empty() ? kind
                                             : *head.kinds.find(link.part.text);
        if (link.lane.text.empty())
          continue;
        // What the model says of all layers stands above.
        LayerFacts::Key key{Cost::Node, part, link.name.text};
        const std::map<LayerFacts::Key, int64_t> &costs =
            nodeCosts.count(key) ? nodeCosts : facts.costs;
        if (auto time = costs.find(key); time != costs.end())
          times[kind] += time->second;
      }
    // Where a B is given, its I and W are given again.
    __int128 sum = 0;
    for (const auto &[kind, time] : times) {
      uint8_t slots = head.kinds[kind].defines;
      bool isTold = llvm::any_of(times, [&](const auto &other) {
        uint8_t more = head.kinds[other.first].defines;
        return more != slots && (more & slots) == slots;
      });
      sum += slots != 0 && isTold ? 0 : time;
    }
    return sum;
  }

  /// Makes the longest stage as short as can be.
  void byCost(const Sequence &sequence,
              MutableArrayRef<std::vector<PlacedLayer>> stages) {
    std::vector<__int128> ofLayer;
    for (uint32_t layer = 0; layer != model.layers.size(); ++layer)
      ofLayer.push_back(weightOf(layer));
    __int128 low = 0, high = 0;
    for (PlacedLayer layer : sequence) {
      low = std::max(low, ofLayer[layer.layer]);
      high += ofLayer[layer.layer];
    }
    auto needs = [&](__int128 limit) {
      size_t count = 1;
      __int128 sum = 0;
      for (PlacedLayer layer : sequence) {
        if (sum + ofLayer[layer.layer] > limit) {
          ++count;
          sum = 0;
        }
        sum += ofLayer[layer.layer];
      }
      return count;
    };
    while (low < high) {
      __int128 middle = low + (high - low) / 2;
      if (needs(middle) <= stages.size())
        high = middle;
      else
        low = middle + 1;
    }
    size_t stage = 0, left = sequence.size();
    __int128 sum = 0;
    for (PlacedLayer layer : sequence) {
      bool isFull = sum + ofLayer[layer.layer] > low;
      bool isNeeded = left == stages.size() - stage - 1; // One for each.
      if (!stages[stage].empty() && (isFull || isNeeded) &&
          stage + 1 != stages.size()) {
        ++stage;
        sum = 0;
      }
      sum += ofLayer[layer.layer];
      stages[stage].push_back(layer);
      --left;
    }
  }

  /// Adds what stands where a part is cut.
  void addBetween(size_t part, PipePartition &made) {
    const PartDecl &decl = model.parts[part];
    if (!decl.leave || !decl.enter)
      return;
    for (uint32_t s = made.firstStage[part] + 1; s < made.firstStage[part + 1];
         ++s) {
      made.stages[s - 1].push_back({*decl.leave});
      made.stages[s].insert(made.stages[s].begin(), {*decl.enter});
    }
  }

  // ---- What follows from a cut ----

  void addSums() {
    letters();
    std::set<LayerFacts::Key> given;
    for (const LayerFacts &facts : partition.layers)
      for (const auto &[key, value] : facts.costs)
        if (Cost what = std::get<Cost>(key);
            what != Cost::Node && (what != Cost::StaticMemory || value != 0))
          given.insert(key);
    for (const LayerFacts::Key &key : given)
      addSum(key);
    edges();
  }

  /// The letters of the layers of each stage, where they have letters.
  void letters() {
    auto isLetter = [](const ast::NamedItem *layer) {
      return firstName(layer).size() == 1 && llvm::isAlpha(firstName(layer)[0]);
    };
    if (!head.stageLayers.empty() || partition.partitions.size() != 1 ||
        model.layers.empty() || !llvm::all_of(model.layers, isLetter))
      return;
    for (const auto &stage : partition.partitions.front().stages) {
      std::string &text = head.stageLayers.emplace_back();
      for (PlacedLayer layer : stage)
        text += model.layers[layer.layer]->names.front().text;
    }
  }

  /// Adds the sum over the layers of each stage.
  void addSum(const LayerFacts::Key &key) {
    CostSetting setting{std::get<Cost>(key), std::get<KindId>(key)};
    const CostNumber &number = rowOf(setting.what).number;
    std::vector<int64_t> ofLayer;
    for (const LayerFacts &facts : partition.layers)
      ofLayer.push_back(facts.costs.count(key) ? facts.costs.at(key) : 0);
    std::vector<std::vector<int64_t>> byCut;
    for (const PipePartition &made : partition.partitions) {
      std::vector<int64_t> &values = byCut.emplace_back();
      for (const auto &stage : made.stages) {
        __int128 sum = 0;
        for (PlacedLayer layer : stage)
          sum += ofLayer[layer.layer];
        if (sum > number.scale.max || sum < -__int128(number.scale.max)) {
          std::string name = rowOf(setting.what).item.str(),
                      subject = subjectOf(setting, head.kinds);
          return diags.refuse<diag::StageTooLarge>(
              model.range, subject.empty() ? name : name + " " + subject,
              number.description);
        }
        values.push_back(int64_t(sum));
      }
    }
    bool isOne = llvm::all_of(byCut, [&](const std::vector<int64_t> &values) {
      return llvm::all_equal(values) && values.front() == byCut.front().front();
    });
    if (isOne) {
      setting.values = {byCut.front().front()};
      head.costs.settings.push_back(std::move(setting));
      return;
    }
    for (PipeId pipe : head.pipeIds()) {
      setting.pipe = pipe;
      setting.values = byCut[partition.ofPipe[pipe.value]];
      head.costs.settings.push_back(setting);
    }
  }

  /// Parts are connected where one reads the other.
  void edges() {
    for (PipeId id : head.pipeIds()) {
      Pipe &pipe = head.pipes[id.value];
      const std::vector<uint32_t> &firstStage = partition.of(id).firstStage;
      for (size_t part = 1; part < model.parts.size(); ++part) {
        const std::vector<uint32_t> &reads = model.parts[part].reads;
        StageId first(firstStage[part]);
        if (!llvm::is_contained(reads, part - 1))
          pipe.gaps.push_back(StageId(first.value - 1));
        for (uint32_t other : reads)
          if (other + 1 != part)
            pipe.skipEdges.push_back(
                {StageId(firstStage[other + 1] - 1), first});
      }
      sortEdges(pipe);
    }
  }

  ModelPartition partition{};
  std::map<LayerFacts::Key, int64_t> nodeCosts{}; ///< Of nodes in all layers.
  std::vector<Sequence> sequences{};              ///< By part.
  std::vector<bool> isNumbered{};                 ///< By layer as declared.
  uint64_t total = 0;                             ///< Layers so far.
};

} // namespace

std::optional<ModelPartition>
sema::partitionModel(const Section &model, const LayoutOverride &layout,
                     const InstantiationContext &context) {
  if (model.layers.empty() && model.parts.empty())
    return std::nullopt;
  if (model.parts.empty() && context.head.stageLayers.empty())
    return context.diags.report<diag::MissingItem>(
        model.range, "this model", "`layers`, the sequence of its layers");
  return ModelPartitioner{model, layout, context}.run();
}
