// Writes the program as JSON, as docs/program-format.md describes it.
#include "Emitters.h"
#include "JsonParts.h"
#include "Writer.h"
#include "ppcc/Analysis/Analyses.h"
#include "ppcc/Analysis/PeakUsage.h"
#include "ppcc/Emit/Digest.h"

#include "ppcc/IR/Calls.h"
#include "ppcc/IR/Loops.h"

#include "llvm/Support/Regex.h"

using namespace ppcc;

namespace {

/// The keys of a program.
namespace key {
#define HEAD_DERIVED(Item, Json) constexpr StringRef Item = Json;
#define HEAD(Item, Text, Json, Need) HEAD_DERIVED(Item, Json)
#define HEAD_SECTION(Item, Json, Need) HEAD_DERIVED(Item, Json)
#define HEAD_JSON(Item, Json, Need) HEAD_DERIVED(Item, Json)
#include "ppcc/IR/Head.def"
} // namespace key

struct JsonEmitter {
  const Program &program;
  raw_ostream &out;
  Writer writer{out};
  const PeakUsage &facts = peakUsage(program);

  void emit() {
    writer.object([&](JsonFields &fields) { head(fields); }, {.between = ",\n"},
                  "{\n");
    writer.put('\n');
  }

  void head(JsonFields &fields) {
    fields(key::Format, "ppcc.program");
    fields(key::Version, version());
    fields(key::Compiler, "ppcc " PPCC_VERSION);
    fields(key::Schedule, program.name());
    fields.key(key::Params);
    writer.object([&](JsonFields &params) {
      for (const ProgramParam &param : program.params())
        if (isJsonLiteral(param))
          params.raw(param.name, param.value);
        else
          params(param.name, param.value);
    });
    fields(key::Ranks, program.numRanks());
    fields(key::Backward, program.hasBackward());
    fields(key::Digest, digestOf(program));
    if (program.calls() != CallStyle::None)
      fields(key::Calls, callStyleNames()[size_t(program.calls())]);
    fields.values(key::Proven, program.provenUnder());
    fields.list(key::Preconnect, program.preconnect(), [&](RankPair pair) {
      writer.numbers({pair.low.value, pair.high.value});
    });
    auto put = [&](uint32_t number) { writer.put(number); };
    fields.key(key::Buffers);
    writer.list(facts.buffers, put);
    fields.key(key::PeakActivations);
    writer.list(facts.activations, put);
    edgeBuffers(fields);
    if (!program.stageLayers().empty())
      fields.values(key::Layout, program.stageLayers());
    if (!program.costs().settings.empty()) {
      fields.key(key::Costs);
      putCosts(writer, program);
    }
    fields.objects(
        key::Kinds, program.kinds().rows(),
        [&](JsonFields &ofKind, const KindInfo &info) { kind(ofKind, info); });
    if (!program.nodes().empty()) {
      fields.key(key::Nodes);
      putNodes(writer, program.nodes());
    }
    fields.values(key::Phases, program.phases());
    fields.objects(
        key::Pipes, program.pipes(),
        [&](JsonFields &ofPipe, const Pipe &info) { pipe(ofPipe, info); });
    fields.list(key::Files, program.files(),
                [&](const SiteFile &file) { writer.json(file.name); });
    fields.list(key::Sites, program.sites(), [&](const Site &site) {
      bool known = &site != &program.sites().front();
      writer.numbers({known ? int64_t(site.file) : -1, site.line, site.column,
                      site.caller.value});
    });
    static constexpr StringRef columns[] = {"kind",       "pipe", "stage",
                                            "microbatch", "peer", "phase",
                                            "group",      "site"};
    fields.values(key::Columns, columns);
    onLines(fields, key::Actions, [&](RankId rank) { actions(rank); });
    if (program.loops().empty()) {
      ArrayRef<ActionId> waits = Analyses(program).buffers().waits();
      onLines(fields, key::Waits,
              [&](RankId rank) { waits = putWaits(rank, waits); });
    } else {
      onLines(fields, key::Loops, [&](RankId rank) { loops(rank); });
    }
    writer.put('\n');
  }

  /// A list with a line for each rank.
  template <class Put>
  void onLines(JsonFields &fields, StringRef name, Put put) {
    fields.key(name);
    writer.put('[');
    StringRef before = "\n";
    for (RankId rank : program.ranks()) {
      writer.put(std::exchange(before, ",\n"));
      put(rank);
    }
    writer.put("\n]");
  }

  /// Of each: the first row, counted on the rank, the rows, how often they run,
  /// and what each time adds to their microbatches.
  void loops(RankId rank) {
    uint32_t begin = program.begin(rank).value;
    writer.list(loopsOf(program, rank), [&](const Loop &loop) {
      writer.numbers({loop.begin.value - begin,
                      loop.end.value - loop.begin.value, loop.count,
                      loop.advance});
    });
  }

  void kind(JsonFields &fields, const KindInfo &info) {
    fields("mnemonic", info.mnemonic);
    fields("class", kindClassName(info.kindClass));
    if (!info.isDeclared())
      return;
#define KIND(Name, Member) put(fields, Name, info, Member);
#include "ppcc/IR/KindProperties.def"
  }

  void put(JsonFields &fields, StringRef name, const KindInfo &info,
           KindScope KindInfo::*scope) {
    fields(name, kindScopeNames()[size_t(info.*scope)]);
  }
  void put(JsonFields &fields, StringRef name, const KindInfo &info,
           uint8_t KindInfo::*lane) {
    fields(name, program.kinds().lanes()[info.*lane]);
  }
  void put(JsonFields &fields, StringRef name, const KindInfo &info,
           bool KindInfo::*flag) {
    if (info.*flag)
      fields(name, true);
  }
  void put(JsonFields &fields, StringRef name, const KindInfo &info,
           std::optional<KindId> KindInfo::*kind) {
    if (info.*kind)
      fields(name, program.kinds()[*(info.*kind)].mnemonic);
  }
  void put(JsonFields &fields, StringRef name, const KindInfo &info,
           uint32_t KindInfo::*count) {
    if (info.*count)
      fields(name, info.*count);
  }
  void put(JsonFields &fields, StringRef name, const KindInfo &info,
           Collective KindInfo::*collective) {
    if (info.*collective == Collective::Stages)
      fields.values(name, info.stages);
    else if (info.*collective == Collective::Outside)
      fields(name, "outside " + info.outside);
    else if (info.*collective != Collective::None)
      fields(name, collectiveName(info.*collective));
  }
  void put(JsonFields &fields, StringRef name, const KindInfo &info,
           bool isBefore) {
    auto rules = llvm::make_filter_range(info.rules, [&](const KindRule &rule) {
      return rule.isBefore == isBefore;
    });
    auto put = [&](KindId kind) {
      writer.json(program.kinds()[kind].mnemonic);
    };
    fields.list(name, rules, [&](const KindRule &rule) {
      writer.list(rule.kinds, put, ", ");
    });
  }

  /// Readers of an older form would go wrong with loops, and with gaps.
  int64_t version() const {
    for (const Pipe &pipe : program.pipes())
      if (!pipe.gaps.empty())
        return 3;
    return program.loops().empty() ? 1 : 2;
  }

  void pipe(JsonFields &fields, const Pipe &pipe) {
    fields("name", pipe.name);
    fields.numbers("microbatches",
                   {pipe.firstMicrobatch, pipe.endMicrobatch()});
    fields.values("rank_of_stage", pipe.rankOfStage);
    fields.list("skip_edges", pipe.skipEdges, [&](const auto &edge) {
      writer.numbers({edge.first.value, edge.second.value});
    });
    if (!pipe.gaps.empty())
      fields.values("gaps", pipe.gaps);
    if (pipe.slices != 1)
      fields("slices", pipe.slices);
    if (!pipe.tensors.empty())
      fields.objects("tensors", pipe.tensors, tensorsOf);
  }

  static void tensorsOf(JsonFields &fields, const EdgeTensors &edge) {
    fields.numbers("edge", {edge.from.value, edge.to.value});
    if (edge.needsShapes())
      fields("shapes", "each");
    fields.objects("carries", edge.tensors,
                   [&](JsonFields &ofTensor, const Tensor &tensor) {
                     ofTensor("name", tensor.name);
                     ofTensor("type", elementTypeName(tensor.type));
                     ofTensor.values("dims", tensor.dims);
                   });
  }

  void actions(RankId rank) {
    int64_t groups = 0;
    auto inGroup = [&](ActionId row) {
      return row != program.end(rank) && program.joined(row);
    };
    writer.list(program.rows(rank), [&](ActionId row) {
      Action action = program[row];
      bool last = !inGroup(ActionId(row.value + 1));
      bool grouped = action.joined || !last;
      writer.numbers({action.kind.value, action.pipe.value, action.stage.value,
                      action.hasMicrobatch() ? int64_t(action.microbatch) : -1,
                      action.hasPeer() ? int64_t(action.peer.value) : -1,
                      action.phase.value, grouped ? groups : -1,
                      action.site.value});
      groups += grouped && last;
    });
  }

  /// Of each edge on which something is received: the receive's kind, pipe,
  /// stage and peer, and the buffers.
  void edgeBuffers(JsonFields &fields) {
    fields.list("edge_buffers", facts.byEdge, [&](const auto &edge) {
      auto kind = program.kinds().find(KindClass::Recv, edge.slotBit);
      assert(kind && "every slot that moves has its messages");
      writer.numbers({kind->value, edge.pipe.value, edge.to.value,
                      edge.from.value, edge.peak});
    });
  }

  /// Writes those of one rank, which begin `waits`; the others remain.
  ArrayRef<ActionId> putWaits(RankId rank, ArrayRef<ActionId> waits) {
    size_t count = llvm::count_if(program.rows(rank), [&](ActionId row) {
      return program.kindOf(row).isRecv();
    });
    writer.list(waits.take_front(count), [&](ActionId reader) {
      writer.put(reader.value - program.begin(rank).value);
    });
    return waits.drop_front(count);
  }
};

} // namespace

bool ppcc::isJsonLiteral(const ProgramParam &param) {
  if (param.type == "bool")
    return param.value == "true" || param.value == "false";
  static const llvm::Regex number(
      "^-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][-+]?[0-9]+)?$");
  return (param.type == "int" || param.type == "float") &&
         number.match(param.value);
}

void ppcc::emitJson(const Program &program, raw_ostream &out, EmitContext &) {
  JsonEmitter{program, out}.emit();
}
