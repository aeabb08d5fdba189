// `ppcc diff`: where two programs first differ.
#include "Options.h"
#include "ppcc/Driver/Output.h"
#include "ppcc/Emit/Writer.h"
#include "ppcc/IR/Location.h"
#include "ppcc/Support/Printable.h"

using namespace ppcc;

namespace {

struct DiffOptions : Options {
  std::string inputs[2];
  bool asJson = false;
};

void declare(OptionParser &parser, DiffOptions &options) {
  parser.positional("A", options.inputs[0],
                    "A schedule or program: a file, or a name of the library",
                    true);
  parser.positional("B", options.inputs[1], "Another one", true);
  parser.choice("--format", "The format of the differences",
                {{"text", false}, {"json", true}}, options.asJson);
  addOutput(parser, options.output);
  parser.formatByExtension(options.output);
  addCompileOptions(parser, options);
  addErrorOptions(parser, options.console);
}

/// An action as both programs name it, whatever their pipes are called: these
/// go by their first microbatch.
struct ActionKey {
  std::string_view mnemonic;
  uint32_t pipe, stage, microbatch, peer;
  bool joined, isMessage;
  auto operator<=>(const ActionKey &) const = default;
};

ActionKey actionKeyAt(const Program &program, ActionId row) {
  Action action = program[row];
  const KindInfo &kind = program.kinds()[action.kind];
  return {kind.mnemonic,
          kind.scope == KindScope::Rank // Of no pipe.
              ? 0
              : program.pipe(action.pipe).firstMicrobatch,
          action.stage.value,
          action.microbatch,
          action.peer.value,
          action.joined,
          !kind.isCompute()};
}

/// What a declared action means, by the names of others.
std::string meaningOf(const Program &program, const KindInfo &kind) {
  auto nameOf = [&](KindId other) {
    return StringRef(program.kinds()[other].mnemonic);
  };
  std::vector<std::string> rules;
  for (const KindRule &rule : kind.rules)
    for (KindId other : rule.kinds)
      rules.push_back(
          fmt::format("{}{}", rule.isBefore ? '<' : '>', nameOf(other)));
  llvm::sort(rules);
  return fmt::format("{} {} {} {} {} {} {} {} {}", int(kind.scope),
                     program.kinds().lanes()[kind.lane], kind.isRequired,
                     kind.restores ? nameOf(*kind.restores) : "", kind.inFlight,
                     int(kind.collective), kind.outside,
                     fmt::join(kind.stages, ","), fmt::join(rules, " "));
}

struct Difference {
  const Program *programs[2];
  StringRef names[2];
  bool haveHeads; ///< Both are of formats that say all of a program.
  SourceManager &sources;
  raw_ostream &out;

  /// Whether the programs do the same work, in whatever order.
  bool print() {
    const Program &a = *programs[0], &b = *programs[1];
    if (a.ranksBegun() != b.ranksBegun()) {
      out << fmt::format("`{}` has {} ranks, `{}` has {}\n",
                         printable(names[0]), a.ranksBegun(),
                         printable(names[1]), b.ranksBegun());
      return false;
    }
    std::vector<RankDifference> ranks = find();
    uint32_t different = llvm::count_if(ranks, [](const RankDifference &rank) {
      return !rank.differsInOrderOnly;
    });
    std::string head = headDifference();
    for (const auto &[rank, first, differsInOrderOnly, _] : ranks)
      out << fmt::format("rank {}, action {}: {} and {}{}\n", rank.value, first,
                         printable(text(0, rank, first)),
                         printable(text(1, rank, first)),
                         differsInOrderOnly ? " (another order)" : "");
    if (different)
      out << fmt::format("{} of {} ranks do different work\n", different,
                         a.ranksBegun());
    else if (!head.empty())
      out << head << '\n';
    else if (!ranks.empty())
      out << fmt::format(
          "the same work; {} of {} ranks have it in another order{}\n",
          ranks.size(), a.ranksBegun(),
          std::ranges::all_of(ranks, &RankDifference::differsInMessagesOnly)
              ? ", of messages alone"
              : "");
    else
      out << fmt::format("equal: {} on {} ranks\n", counts(a), a.ranksBegun());
    return different == 0 && head.empty();
  }

  /// The same as JSON.
  bool printJson() {
    bool isComparable = programs[0]->ranksBegun() == programs[1]->ranksBegun();
    std::string head;
    std::vector<RankDifference> ranks;
    if (isComparable) {
      head = headDifference();
      ranks = find();
    }
    bool isSame = isComparable && head.empty() &&
                  llvm::all_of(ranks, [](const RankDifference &rank) {
                    return rank.differsInOrderOnly;
                  });
    auto put = [&](JsonFields &fields) {
      fields("format", "ppcc.diff");
      fields("version", 1);
      fields("equal", isSame && ranks.empty());
      fields("same_work", isSame);
      fields.values("ranks",
                    llvm::map_range(programs, [](const Program *program) {
                      return program->ranksBegun();
                    }));
      fields("head", head.empty() ? std::nullopt : std::optional(head));
      fields.objects("differences", ranks,
                     [&](JsonFields &of, const RankDifference &difference) {
                       auto [rank, first, differsInOrderOnly, _] = difference;
                       of("rank", rank);
                       of("action", first);
                       of("a", text(0, rank, first));
                       of("b", text(1, rank, first));
                       of("only_order", differsInOrderOnly);
                     });
    };
    Writer writer(out);
    writer.object(put, indentedJson);
    writer.put('\n');
    return isSame;
  }

  /// Where the lists of a rank first differ.
  struct RankDifference {
    RankId rank;
    uint32_t action;
    bool differsInOrderOnly;    ///< The same actions in another order,
    bool differsInMessagesOnly; ///< compute actions in the same.
  };
  /// By rank, where it differs.
  std::vector<RankDifference> find() const {
    std::vector<RankDifference> ranks;
    for (RankId rank : programs[0]->ranks()) {
      std::vector<ActionKey> keys[] = {actionKeysOf(*programs[0], rank),
                                       actionKeysOf(*programs[1], rank)};
      if (keys[0] == keys[1])
        continue;
      uint32_t first =
          std::ranges::mismatch(keys[0], keys[1]).in1 - keys[0].begin();
      // Both programs are verified, so what is in another order does not depend
      // on each other.
      bool hasSameItems = sortedItems(keys[0]) == sortedItems(keys[1]);
      for (std::vector<ActionKey> &of : keys)
        llvm::erase_if(of, [](const ActionKey &key) { return key.isMessage; });
      ranks.push_back({rank, first, hasSameItems, keys[0] == keys[1]});
    }
    return ranks;
  }

  /// What the same rows would do otherwise: how stages read each other, or what
  /// an action means. Empty for nothing.
  std::string headDifference() const {
    auto [a, b] = programs;
    if (a->hasBackward() != b->hasBackward())
      return fmt::format("only `{}` has a backward pass",
                         printable(names[a->hasBackward() ? 0 : 1]));
    if (a->pipes().size() != b->pipes().size())
      return fmt::format("`{}` has {} pipes, `{}` has {}", printable(names[0]),
                         a->pipes().size(), printable(names[1]),
                         b->pipes().size());
    std::map<uint32_t, const Pipe *> others; // By their first microbatch.
    for (const Pipe &pipe : b->pipes())
      others[pipe.firstMicrobatch] = &pipe;
    for (const Pipe &pipe : a->pipes()) {
      auto found = others.find(pipe.firstMicrobatch);
      const Pipe *other = found == others.end() ? nullptr : found->second;
      StringRef what =
          !other || pipe.numMicrobatches != other->numMicrobatches
              ? "microbatches"
          : pipe.rankOfStage != other->rankOfStage ? "placements of stages"
          : pipe.skipEdges != other->skipEdges || pipe.gaps != other->gaps
              ? "edges"
          : pipe.slices != other->slices && haveHeads ? "slices"
          : pipe.tensors != other->tensors && !pipe.tensors.empty() &&
                  !other->tensors.empty() // Some formats do not say them.
              ? "tensors"
              : "";
      if (!what.empty())
        return fmt::format("pipes have different {}: `{}` of `{}`{}", what,
                           printable(pipe.name), printable(names[0]),
                           other ? fmt::format(", `{}` of `{}`",
                                               printable(other->name),
                                               printable(names[1]))
                                 : "");
    }
    if (a->stageLayers() != b->stageLayers() && !a->stageLayers().empty() &&
        !b->stageLayers().empty()) // Nor these.
      return fmt::format("stages have different layers: `{}` in `{}`, `{}` in "
                         "`{}`",
                         llvm::join(a->stageLayers(), "|"), printable(names[0]),
                         llvm::join(b->stageLayers(), "|"),
                         printable(names[1]));
    if (haveHeads && a->preconnect() != b->preconnect())
      return fmt::format("`{}` and `{}` connect ranks in different orders",
                         printable(names[0]), printable(names[1]));
    for (const KindInfo &kind : a->kinds().rows())
      if (auto other = b->kinds().find(kind.mnemonic);
          other && kind.isDeclared() &&
          meaningOf(*a, kind) != meaningOf(*b, b->kinds()[*other]))
        return fmt::format("`{}` is declared differently in `{}` and `{}`",
                           kind.mnemonic, printable(names[0]),
                           printable(names[1]));
    return "";
  }

  /// As reports count: a message is one, though it is sent and received.
  static std::string counts(const Program &program) {
    size_t actions = 0, messages = 0;
    for (ActionId row : program.rows()) {
      actions += program.kindOf(row).isCompute();
      messages += program.kindOf(row).isSend();
    }
    return messages == 0
               ? fmt::format("{} actions", actions)
               : fmt::format("{} actions and {} messages", actions, messages);
  }

  static std::vector<ActionKey> actionKeysOf(const Program &program,
                                             RankId rank) {
    std::vector<ActionKey> keys;
    keys.reserve(program.size(rank));
    for (ActionId row : program.rows(rank))
      keys.push_back(actionKeyAt(program, row));
    return keys;
  }

  /// The actions and groups of a rank, in any order.
  static std::vector<std::vector<ActionKey>>
  sortedItems(ArrayRef<ActionKey> keys) {
    std::vector<std::vector<ActionKey>> items;
    for (ActionKey key : keys) {
      if (!std::exchange(key.joined, false))
        items.emplace_back();
      items.back().push_back(key);
    }
    for (std::vector<ActionKey> &item : items)
      llvm::sort(item);
    llvm::sort(items);
    return items;
  }

  /// `0F3` (a.pp:12:3, steady).
  std::string text(size_t side, RankId rank, uint32_t number) {
    const Program &program = *programs[side];
    if (number >= program.size(rank))
      return "the end of `" + names[side].str() + "`";
    ActionId row(program.begin(rank).value + number);
    Action action = program[row];
    std::string where = textOf(locationOf(program, row, sources), sources);
    const std::string &phase = program.phases()[action.phase.value];
    if (!phase.empty())
      where += where.empty() ? phase : ", " + phase;
    bool namesPipe = program.kinds()[action.kind].scope == KindScope::Stage &&
                     program.pipes().size() > 1;
    return fmt::format(
        "`{}`{}{}{}", cell(program, action),
        namesPipe ? fmt::format(" of pipe `{}`", program.pipe(action.pipe).name)
                  : "",
        action.joined ? " in a group" : "",
        where.empty() ? "" : " (" + where + ")");
  }
};

} // namespace

int ppcc::runDiff(const Invocation &call) {
  DiffOptions options;
  OptionParser parser(call, "ppcc diff");
  declare(parser, options);
  if (std::optional<int> code = parser.parse())
    return *code;
  auto session = consoleSession(call, options.console);
  if (!prepareOutputs(StringRef(options.output), call.out, *session))
    return Errors;
  std::optional<Compiled> sides[2];
  ExitCode code = Success;
  bool haveHeads = true;
  std::set<std::string> params;
  options.request.ignoresUnknownParams = true;
  for (size_t side : {0, 1}) {
    takeInput(options.request, options.inputs[side]);
    sides[side] = compile(options.request, *session);
    code = std::max(code, exitCodeOf(*sides[side], call.err));
    if (code != Success)
      continue;
    params.merge(parameterNames(*sides[side], options.request, *session));
    auto input = openInput(options.request, *session);
    haveHeads &= input && (!input->format || input->format->name == "json" ||
                           input->format->name == "ir");
  }
  if (code == Success)
    for (const sema::ParamValue &param : options.request.params)
      code = std::max(code, checkParameter(param.name, params, *session));
  if (code != Success)
    return code;
  bool same = false;
  code = writeOutput(options.output, call.out, *session, [&](raw_ostream &s) {
    Difference difference{{&sides[0]->program, &sides[1]->program},
                          {options.inputs[0], options.inputs[1]},
                          haveHeads,
                          session->sources,
                          s};
    same = options.asJson ? difference.printJson() : difference.print();
  });
  return same ? code : Errors;
}
