// Costs that stand above those of a program.
#include "ppcc/Basic/Diagnostics/Instance.h"
#include "ppcc/Basic/Diagnostics/Simulation.h"
#include "ppcc/Compiler/Compiler.h"
#include "ppcc/Import/Importer.h"
#include "ppcc/Support/Suggest.h"

#include "llvm/Support/SaveAndRestore.h"

using namespace ppcc;

namespace {

// ---- What `--cost` takes ----

/// What a name stands for: `F`, `latency`, `static`, `cost.F.mlp`, where
/// `cost` may be left out.
std::optional<CostSetting> findNamed(StringRef name, const KindTable &kinds) {
  auto [item, subject] = name.split('.');
  auto found = findCost(item, subject, kinds);
  if (!found)
    found = findCost("cost", name, kinds);
  // There is no list here.
  return found &&
                 rowOf(found->what).granularity != CostGranularity::Microbatches
             ? std::move(found)
             : std::nullopt;
}

/// All that there is, for suggestions.
std::vector<std::string> costNames(const KindTable &kinds) {
  std::vector<std::string> names;
  for (StringRef item : costItems()) {
    auto subjects = costSubjects(item, kinds);
    if (subjects.empty())
      names.push_back(item.str());
    for (StringRef subject : subjects)
      names.push_back((item == "cost" ? "" : item.str() + ".") + subject.str());
  }
  llvm::erase_if(
      names, [&](const std::string &name) { return !findNamed(name, kinds); });
  return names;
}

/// The numbers of a value: one, or a list by stage or rank as in `1,2,3`;
/// nothing where one of them is none.
std::vector<int64_t> numbersIn(const CostRow &row, StringRef value) {
  std::vector<int64_t> numbers;
  bool isOne = row.granularity == CostGranularity::One;
  for (StringRef text : llvm::split(value, isOne ? '\0' : ',')) {
    auto number = row.number.parse(text);
    if (!number)
      return {};
    numbers.push_back(*number);
  }
  return numbers;
}

/// Adds `NAME=VALUE` to the costs, or to those of parts of actions.
void addCost(StringRef text, SourceManager &sources, DiagnosticEngine &diags,
             Program &program, std::vector<CostSetting> &parts) {
  auto [name, value] = text.split('=');
  auto setting = findNamed(name, program.kinds());
  if (!setting) {
    std::vector<std::string> names = costNames(program.kinds());
    std::string meant = didYouMean(name, namesIn(names));
    return diags.refuse<diag::CostsUnknown>(
        Location("--cost"), "cost", name,
        meant.empty() ? "; expected one of " + listed(namesIn(names)) : meant);
  }
  const CostRow &row = rowOf(setting->what);
  setting->values = numbersIn(row, value);
  if (setting->values.empty())
    return diags.refuse<diag::CostsShape>(Location("--cost"), name,
                                          row.number.description);
  if (setting->values.size() > 1) { // As in a file of costs.
    std::string subject = subjectOf(*setting, program.kinds());
    std::string list = subject.empty()
                           ? fmt::format("[{}]", value)
                           : fmt::format("{{\"{}\": [{}]}}", subject, value);
    uint32_t file =
        sources.add("--cost", llvm::MemoryBuffer::getMemBufferCopy(fmt::format(
                                  "{{\"{}\": {}}}", row.item, list)));
    readCosts(sources.text(file), file, sources, diags, program.editHead());
    return;
  }
  (row.isOfNode() ? parts : program.editHead().costs.settings)
      .push_back(std::move(*setting));
}

// ---- Costs of parts of actions ----

/// The costs by layer, such as `F.t`, as costs by stage: of each, the sum over
/// its layers.
void addLayerCosts(ArrayRef<CostSetting> settings, DiagnosticEngine &diags,
                   Program &program) {
  if (settings.empty())
    return;
  if (program.stageLayers().empty()) {
    if (!llvm::all_equal(llvm::map_range(program.pipes(), [](const Pipe &pipe) {
          return pipe.numStages();
        })))
      return diags.refuse<diag::CostsShape>(
          Location("--cost"), "--cost KIND.LAYER",
          "said in the model, where pipes have different numbers of stages");
    return diags.refuse<diag::NoLayout>(Location("--cost"),
                                        "--cost KIND.LAYER");
  }
  std::map<KindId, std::map<char, Time>> times;
  for (const CostSetting &setting : settings) {
    times.try_emplace(setting.kind);
    std::string all = llvm::join(program.stageLayers(), "|");
    if (!StringRef(all).contains(setting.node))
      diags.report<diag::LayoutMissingLayer>(Location("--cost"), all,
                                             setting.node);
  }
  for (const CostSetting &setting : settings)
    times[setting.kind][setting.node[0]] = setting.values.front();
  // Of a time by stage the part of each layer is not known.
  for (const auto &[kind, ofLayer] : times)
    for (char layer : llvm::join(program.stageLayers(), ""))
      if (!ofLayer.count(layer) &&
          llvm::any_of(program.costs().of(Cost::Action),
                       [&, of = kind](const CostSetting &setting) {
                         return setting.kind == of;
                       }))
        return diags.refuse<diag::CostsShape>(
            Location("--cost"),
            fmt::format("{}.{}", program.kinds()[kind].mnemonic, layer),
            "given, too: what the other layers take by the model is replaced");
  for (const auto &[kind, ofLayer] : times)
    for (PipeId pipe : program.pipeIds()) {
      CostSetting &setting = program.editHead().costs.settings.emplace_back(
          CostSetting{Cost::Action, kind, "", pipe, {}});
      for (StringRef layers : program.stageLayers()) {
        decimal::Sum time = 0;
        for (char layer : layers)
          if (auto found = ofLayer.find(layer); found != ofLayer.end())
            time += found->second;
        if (time > cost::max)
          return diags.refuse<diag::CostTooLarge>(
              Location("--cost"), static_cast<double>(time) / cost::unit,
              cost::max / cost::unit);
        setting.values.push_back(static_cast<Time>(time));
      }
    }
}

/// The costs of `F.mlp` or `F.t`: of nodes where the program has such, else of
/// layers of the layout.
void addPartCosts(ArrayRef<CostSetting> settings, DiagnosticEngine &diags,
                  Program &program) {
  const std::vector<std::string> &nodes = program.nodes().names;
  std::vector<CostSetting> layers;
  for (const CostSetting &setting : settings)
    if (llvm::is_contained(nodes, setting.node))
      program.editHead().costs.settings.push_back(setting);
    else if (setting.node.size() == 1 && llvm::isAlpha(setting.node[0]) &&
             !program.hasNodeCosts())
      layers.push_back(setting);
    else
      diags.report<diag::CostsUnknown>(
          Location("--cost"), "node", setting.node,
          didYouMean(setting.node, namesIn(nodes)));
  addLayerCosts(layers, diags, program);
}

/// Gives each stage its part of what a rank takes for a microbatch, and each
/// slice of a microbatch its part of that. Layers, and what is given by stage,
/// are those of a stage already.
void scaleCostsPerRank(DiagnosticEngine &diags, Program &program) {
  bool isShared =
      !program.stageLayers().empty() || !program.nodes().empty() ||
      llvm::any_of(program.costs().settings, [](const CostSetting &setting) {
        return setting.values.size() > 1 && rowOf(setting.what).isByStage();
      });
  auto shareOf = [&](const Pipe &pipe) {
    return isShared
               ? scaling::unit
               : static_cast<int64_t>(decimal::Sum(scaling::unit) *
                                      program.numRanks() / pipe.numStages());
  };
  std::vector<int64_t> shares, slices;
  for (const Pipe &pipe : program.pipes()) {
    slices.insert(slices.end(), pipe.numMicrobatches,
                  scaling::unit / pipe.slices);
    shares.insert(shares.end(), pipe.numMicrobatches,
                  shareOf(pipe) / pipe.slices);
  }
  auto isWhole = [](int64_t share) { return share == scaling::unit; };
  if (llvm::all_of(shares, isWhole))
    return;
  bool hasSlices = !llvm::all_of(slices, isWhole);
  std::vector<CostSetting> settings;
  auto add = [&](Cost what, CostSetting setting) {
    setting.what = what;
    for (auto [value, share] :
         llvm::zip(setting.values, what == Cost::ScaleBytes ? slices : shares))
      value = scaling::apply(value, share, scaling::max);
    settings.push_back(std::move(setting));
  };
  auto isOfWholeStage = [&](const CostSetting &setting) {
    return setting.isPerKind() &&
           program.kinds()[setting.kind].scope == KindScope::Stage &&
           (setting.what == Cost::Action || setting.what == Cost::Memory);
  };
  constexpr Cost scales[] = {Cost::ScaleTime, Cost::ScaleMemory,
                             Cost::ScaleBytes};
  std::vector<int64_t> same(shares.size(), scaling::unit);
  for (Cost what : ArrayRef(scales).drop_back(!hasSlices))
    add(what, {what, KindId(), "", {}, same});
  for (const CostSetting &setting : program.costs().settings)
    if (setting.what == Cost::Scale) { // All three.
      for (Cost what : scales)
        add(what, setting);
    } else if (setting.what == Cost::Overlap ||
               setting.what == Cost::StaticMemory ||
               isOfWholeStage(setting)) { // Of no microbatch.
      auto shareHere = [&](const Pipe &pipe) {
        return shareOf(pipe) /
               (setting.what == Cost::Overlap ? pipe.slices : 1);
      };
      if (!setting.pipe &&
          !llvm::all_equal(llvm::map_range(program.pipes(), shareHere))) {
        StringRef item = rowOf(setting.what).item;
        std::string subject = subjectOf(setting, program.kinds());
        diags.report<diag::CostsShape>(
            Location("--work=rank"),
            subject.empty() ? item.str() : item.str() + " " + subject,
            "of each pipe, where these have different numbers of stages");
      }
      int64_t share =
          shareHere(program.pipes()[setting.pipe.value_or(PipeId(0)).value]);
      settings.push_back(setting);
      int64_t limit = rowOf(setting.what).number.scale.max;
      for (int64_t &value : settings.back().values)
        value = value < 0 ? -scaling::apply(-value, share, limit)
                          : scaling::apply(value, share, limit);
    } else if (llvm::is_contained({Cost::ScaleTime, Cost::ScaleMemory,
                                   Cost::ScaleBytes, Cost::ScaleAction},
                                  setting.what)) {
      add(setting.what, setting);
    } else {
      settings.push_back(setting);
    }
  program.editHead().costs.settings = std::move(settings);
}

} // namespace

// Actions that the program declares are not known yet.
std::string ppcc::checkCost(StringRef text) {
  auto [name, value] = text.split('=');
  if (name.size() == text.size())
    return "`" + text.str() + "` is not of the form NAME=VALUE";
  auto found = findNamed(name, KindTable());
  if (!found || !numbersIn(rowOf(found->what), value).empty())
    return "";
  return fmt::format("`{}` of `{}` must be {}", value, name,
                     rowOf(found->what).number.description);
}

bool ppcc::applyCosts(const CostRequest &request, Session &session,
                      Program &program) {
  SourceManager &sources = session.sources;
  DiagnosticEngine &diags = session.diags;
  size_t errorsBefore = diags.errorCount();
  // Lists by stage are longer than schedules.
  llvm::SaveAndRestore limit(sources.maxBytes, size_t(64) << 20);
  for (const std::string &name : request.files)
    if (auto file = session.open(name))
      readCosts(sources.text(*file), *file, sources, diags, program.editHead());
  std::vector<CostSetting> parts;
  for (const std::string &text : request.settings)
    addCost(text, sources, diags, program, parts);
  addPartCosts(parts, diags, program);
  llvm::erase_if(program.editHead().costs.settings,
                 [](const CostSetting &setting) {
                   return setting.kind == KindTable::prunedKind;
                 });
  if (llvm::any_of(program.costs().settings, [](const CostSetting &setting) {
        return setting.forwardMultiple.has_value();
      }))
    program.editHead().costs.resolveForwardMultiples(program.kinds(),
                                                     program.pipes().size());
  if (request.perRank && program.totalMicrobatches() != 0)
    scaleCostsPerRank(diags, program);
  return diags.errorCount() == errorsBefore;
}
