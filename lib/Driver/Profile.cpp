// ppcc-profile: traces in, a file of costs or a model out.
#include "Console.h"
#include "MessageTimes.h"
#include "ppcc/Basic/Diagnostics/Simulation.h"
#include "ppcc/Driver/CommandLine.h"
#include "ppcc/Driver/Driver.h"
#include "ppcc/Driver/Output.h"
#include "ppcc/IR/Program.h"
#include "ppcc/Import/TraceFile.h"
#include "ppcc/Support/Suggest.h"

#include "llvm/Support/Regex.h"

using namespace ppcc;

namespace {

struct ProfileOptions {
  std::vector<std::string> inputs;
  std::string output = "-", match = "^([0-9]+)([A-Z]+)[0-9]+$";
  std::string groups = "stage,kind";
  int stageGroup = 1, kindGroup = 2; ///< 0 where there is none.
  StringMap<std::string> kindNames;
  Time unit = 1'000; ///< Microseconds.
  bool asModel = false;
  ConsoleOptions console;
};

void declare(OptionParser &parser, ProfileOptions &options) {
  parser.positional("TRACE", options.inputs,
                    "Traces in Chrome's JSON, one or more a rank");
  addOutput(parser, options.output);
  parser.value("--match", "REGEX", options.match,
               "Events whose names match this extended regular expression; "
               "without it such as 3F12");
  parser.value("--groups", "NAME,...", options.groups,
               "What the groups of the expression are, in order: stage, "
               "kind, or anything else to pass over; stage,kind without it");
  parser.repeated("--kind", "NAME=MNEMONIC",
                  "The action that a name of the kind stands for: Forward=F",
                  [&](const std::string &text) -> std::string {
                    auto [name, mnemonic] = StringRef(text).rsplit('=');
                    options.kindNames[name] = mnemonic.str();
                    return name.empty() || name.size() == text.size()
                               ? "`" + text +
                                     "` is not of the form NAME=MNEMONIC"
                               : "";
                  });
  parser.choice("--unit", "The unit of time of the costs",
                {{"us", 1}, {"ms", 1'000}, {"s", 1'000'000}}, options.unit);
  parser.choice("--emit",
                "The output: costs, for `ppcc --costs`, or model, a model and "
                "a cluster in the language",
                {{"costs", false}, {"model", true}}, options.asModel);
  addMaxErrors(parser, options.console.maxErrors);
}

/// What is wrong with the expression and its groups; finds the groups.
std::string checkMatch(ProfileOptions &options) {
  std::string error;
  llvm::Regex regex(options.match);
  if (!regex.isValid(error))
    return "--match: `" + options.match + "`: " + error;
  options.stageGroup = options.kindGroup = 0;
  int group = 0;
  for (StringRef name : llvm::split(options.groups, ',')) {
    ++group;
    if (name == "stage")
      options.stageGroup = group;
    else if (name == "kind")
      options.kindGroup = group;
  }
  if (!options.kindGroup)
    return "--groups: one of them must be `kind`";
  unsigned last = std::max(options.stageGroup, options.kindGroup);
  if (last > regex.getNumMatches())
    return fmt::format("--groups: `{}` has {} groups", options.match,
                       regex.getNumMatches());
  return "";
}

/// The durations of events by what they are.
class Profile {
public:
  Profile(const ProfileOptions &options, DiagnosticEngine &diags)
      : options(options), diags(diags), regex(options.match) {}

  void add(const TraceEvent &event) {
    messages.add(event);
    SmallVector<StringRef, 8> groups;
    if (diags.saturated() || !regex.match(event.name, &groups))
      return;
    StringRef name = groups[options.kindGroup];
    auto renamed = options.kindNames.find(name);
    StringRef mnemonic =
        renamed == options.kindNames.end() ? name : StringRef(renamed->second);
    auto kind = kinds.find(mnemonic);
    if (!kind || !kinds[*kind].isCompute())
      return reportKind(event, mnemonic);
    uint32_t stage = 0;
    if (options.stageGroup &&
        (groups[options.stageGroup].getAsInteger(10, stage) ||
         stage >= Program::maxStages))
      return diags.refuse<diag::TraceShape>(
          event.place, "stage",
          fmt::format("a number below {}", Program::maxStages));
    times[*kind][stage].push_back(event.duration);
  }

  /// Whether there are times, and of each kind for every stage up to the last.
  bool isComplete() {
    if (times.empty())
      return diags.report<diag::TraceNoEvent>({}, options.match);
    for (const auto &[kind, stages] : times) {
      uint32_t last = stages.rbegin()->first;
      for (uint32_t stage = 0; stage != last; ++stage)
        if (!stages.count(stage))
          return diags.report<diag::TraceNoStage>({}, kinds[kind].mnemonic,
                                                  stage, last);
    }
    return true;
  }

  void print(raw_ostream &out) {
    return options.asModel ? printModel(out) : printCosts(out);
  }

private:
  /// Each stage that was measured is a layer, so that others can be cut from
  /// them.
  void printModel(raw_ostream &out) {
    out << "// What was measured, by the medians.\nmodel measured() {\n";
    std::vector<std::string> layers;
    for (uint32_t stage = 0; stage != numStages(); ++stage) {
      layers.push_back(fmt::format("stage_{}", stage));
      out << (options.stageGroup ? "  layer " + layers.back() + " {" : " ");
      for (auto &[kind, stages] : times)
        if (auto found = stages.find(stage); found != stages.end())
          out << " cost " << kinds[kind].mnemonic << " = "
              << cost::format(median(found->second)) << ';';
      out << (options.stageGroup ? " }\n" : "\n");
    }
    if (options.stageGroup)
      out << "  layers " << llvm::join(layers, ", ") << ";\n";
    out << "}\n";
    std::vector<Time> all = latencies();
    if (all.empty())
      return;
    out << "cluster measured() {\n  latency stage s = ";
    for (uint32_t stage = 0; stage != all.size(); ++stage)
      if (stage + 1 == all.size())
        out << cost::format(all[stage]) << ";\n}\n";
      else if (all[stage] != all[stage + 1])
        out << fmt::format("s < {} ? {} : ", stage + 1,
                           cost::format(all[stage]));
  }

  void printCosts(raw_ostream &out) {
    std::vector<std::string> rows;
    for (auto &[kind, stages] : times) {
      std::vector<std::string> texts;
      for (auto &[stage, all] : stages)
        texts.push_back(cost::format(median(all)));
      std::string list = llvm::join(texts, ", ");
      rows.push_back(fmt::format("    \"{}\": {}", kinds[kind].mnemonic,
                                 options.stageGroup ? "[" + list + "]" : list));
    }
    out << "{\n  \"cost\": {\n" << llvm::join(rows, ",\n") << "\n  }";
    std::vector<Time> all = latencies();
    if (!all.empty())
      out << ",\n  \"latency\": ["
          << llvm::join(llvm::map_range(all, cost::format), ", ") << ']';
    out << "\n}\n";
  }

  uint32_t numStages() const {
    uint32_t number = 0;
    for (const auto &[kind, stages] : times)
      number = std::max(number, stages.rbegin()->first + 1);
    return number;
  }

  /// Of messages, by stage; none where no message was measured.
  std::vector<Time> latencies() {
    auto found = messages.byStage();
    if (found.empty() || !options.stageGroup)
      return {};
    std::vector<Time> result(std::max(numStages(), found.rbegin()->first + 1));
    for (auto &[stage, all] : found)
      result[stage] = median(all);
    return result;
  }

  void reportKind(const TraceEvent &event, StringRef mnemonic) {
    if (unknown.try_emplace(mnemonic).second)
      diags.report<diag::TraceNoKind>(
          event.place, mnemonic,
          didYouMean(mnemonic, kinds.computeMnemonics()));
  }

  /// In the unit that is asked for; of an even number the mean of the two in
  /// the middle.
  Time median(std::vector<Time> &all) const {
    llvm::sort(all);
    __int128 twice = __int128(all[(all.size() - 1) / 2]) + all[all.size() / 2];
    __int128 parts = 2 * __int128(options.unit);
    return static_cast<Time>((twice + parts / 2) / parts);
  }

  const ProfileOptions &options;
  DiagnosticEngine &diags;
  llvm::Regex regex;
  KindTable kinds;
  MessageTimes messages;
  std::map<KindId, std::map<uint32_t, std::vector<Time>>> times;
  StringMap<char> unknown;
};

} // namespace

int ppcc::runProfile(const Invocation &call) {
  ProfileOptions options;
  OptionParser parser(
      call, "ppcc-profile",
      "Takes the times of actions from the traces of a "
      "profiler, and writes them as a file for `ppcc --costs`, or "
      "as a model");
  parser.version();
  declare(parser, options);
  if (std::optional<int> code = parser.parse())
    return *code;
  if (std::string wrong = checkMatch(options); !wrong.empty())
    return parser.usageError(wrong);

  auto session = consoleSession(call, options.console);
  SourceManager &sources = session->sources;
  DiagnosticEngine &diags = session->diags;
  sources.maxBytes = size_t(2) << 30;
  Profile profile(options, diags);
  for (const std::string &input : options.inputs)
    if (auto file = session->open(input))
      readTrace(*file, sources, diags,
                [&](const TraceEvent &event) { profile.add(event); });
  if (diags.hasErrors() || !profile.isComplete())
    return Errors;
  return writeOutput(options.output, call.out, *session,
                     [&](raw_ostream &s) { profile.print(s); });
}
