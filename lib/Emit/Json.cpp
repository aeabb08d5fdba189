// Writes the program as JSON, as docs/program-format.md describes it.
#include "Emitters.h"
#include "ppcc/Analysis/Analyses.h"
#include "ppcc/Analysis/Report/PeakUsage.h"
#include "ppcc/IR/Calls.h"
#include "ppcc/IR/Loops.h"
#include "ppcc/Proof/ParametricProgram.h"
#include "ppcc/Proof/TemplateJson.h"

#include "llvm/Support/Regex.h"

using namespace ppcc;

namespace {

/// The keys of a program.
namespace key {
#define HEAD_DERIVED(Item, Json) constexpr StringRef Item = Json;
#define HEAD(Item, Json, Need, Of) HEAD_DERIVED(Item, Json)
#define HEAD_JSON(Item, Json, Need, Of) HEAD_DERIVED(Item, Json)
#define HEAD_ROWS(Item, Json, Need) HEAD_DERIVED(Item, Json)
#include "ppcc/IR/Head.def"
} // namespace key

/// Whether the value of a parameter is written as it stands: a number as JSON
/// writes it, or a boolean.
bool isJsonLiteral(const ProgramParam &param) {
  if (param.type == "bool")
    return param.value == "true" || param.value == "false";
  static const llvm::Regex number(
      "^-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][-+]?[0-9]+)?$");
  return (param.type == "int" || param.type == "float") &&
         number.match(param.value);
}

/// The last version of the format.
constexpr int64_t latestVersion = 3;

struct JsonEmitter {
  const Program &program;
  Writer &writer;

  /// What has a head: one program; families, of which it says only what all
  /// programs have in common; a text, where readers need not have all keys.
  enum Form : uint8_t { One, Families, Text } form = One;

  void head(JsonFields &fields) {
    if (form != Text) {
      fields(key::Format, "ppcc.program");
      fields(key::Version, form == One ? version() : latestVersion);
      fields(key::Compiler, "ppcc " PPCC_VERSION);
    }
    fields(key::Schedule, program.name());
    if (form != Families && says(program.params())) {
      fields.key(key::Params);
      writer.object(
          [&](JsonFields &params) { putParams(params, program.params()); });
    }
    fields(key::Ranks, program.numRanks());
    fields(key::Backward, program.hasBackward());
    if (form == One)
      putDigest(fields);
    if (program.calls() != CallStyle::None)
      fields(key::Calls, callStyleNames()[size_t(program.calls())]);
    if (form != Families)
      facts(fields);
    if (!program.stageLayers().empty())
      fields.values(key::Layout, program.stageLayers());
    if (auto units = program.units().words(); !units.empty())
      fields.values(key::Units, units);
    if (!program.costs().settings.empty()) {
      fields.key(key::Costs);
      putCosts(writer, program, {.between = form == Text ? ",\n" : ", "});
    }
    auto kinds = program.kinds().rows();
    if (form == Text && program.nodes().empty()) // Which name them by number.
      kinds = program.kinds().declaredRows();
    if (says(kinds))
      objects(fields, key::Kinds, kinds,
              [&](JsonFields &ofKind, const KindInfo &info) {
                kind(ofKind, info);
              });
    if (!program.nodes().empty()) {
      fields.key(key::Nodes);
      putNodes(writer, program.nodes());
    }
    if (form == One)
      fields.values(key::Phases, program.phases());
    objects(fields, key::Pipes, program.pipes(),
            [&](JsonFields &ofPipe, const Pipe &info) { pipe(ofPipe, info); });
    if (says(program.files()))
      fields.list(key::Files, program.files(),
                  [&](const SiteFile &file) { writer.json(file.name); });
    if (form == One)
      rows(fields);
    else if (form == Text && program.sites().size() > 1)
      sites(fields);
  }

  template <class Range> bool says(const Range &range) const {
    return form != Text || !range.empty();
  }

  /// A list of objects; in a text each stands on a line of its own.
  template <class Range, class Put>
  void objects(JsonFields &fields, StringRef name, const Range &range,
               Put put) {
    if (form != Text)
      return fields.objects(name, range, put);
    onLines(fields, name, range, [&](const auto &item) {
      writer.object([&](JsonFields &of) { put(of, item); });
    });
  }

  void preconnect(JsonFields &fields, ArrayRef<RankPair> pairs) {
    if (says(pairs))
      fields.list(key::Preconnect, pairs, [&](RankPair pair) {
        writer.numbers({pair.low.value, pair.high.value});
      });
  }
  void sites(JsonFields &fields) {
    auto put = [&](const Site &site) {
      bool known = &site != &program.sites().front();
      writer.numbers({known ? int64_t(site.file) : -1, site.line, site.column,
                      site.caller.value});
    };
    form == Text ? onLines(fields, key::Sites, program.sites(), put)
                 : fields.list(key::Sites, program.sites(), put);
  }

  void facts(JsonFields &fields) {
    if (says(program.provenUnder()))
      fields.values(key::Proven, program.provenUnder());
    preconnect(fields, program.preconnect());
    if (form == Text)
      return;
    putBuffers(fields);
    putPeakActivations(fields);
    putEdgeBuffers(fields);
  }

  // ---- What follows from the rest ----

  void putDerived(JsonFields &fields, StringRef key) {
#define HEAD_DERIVED(Item, Json)                                               \
  if (key == Json)                                                             \
    put##Item(fields);
#include "ppcc/IR/Head.def"
  }
  void putDigest(JsonFields &fields) { fields(key::Digest, digestOf(program)); }
  void putBuffers(JsonFields &fields) {
    putCounts(fields, key::Buffers, peakUsage(program).buffers);
  }
  void putPeakActivations(JsonFields &fields) {
    putCounts(fields, key::PeakActivations, peakUsage(program).activations);
  }
  void putCounts(JsonFields &fields, StringRef key, ArrayRef<uint32_t> counts) {
    fields.key(key);
    writer.list(counts, [&](uint32_t number) { writer.put(number); });
  }
  /// Of each edge on which something is received: the receive's kind, pipe,
  /// stage and peer, and the buffers.
  void putEdgeBuffers(JsonFields &fields) {
    fields.list(
        key::EdgeBuffers, peakUsage(program).byEdge, [&](const auto &edge) {
          auto kind = program.kinds().find(KindClass::Recv, edge.slotBit);
          assert(kind && "every slot that moves has its messages");
          writer.numbers({kind->value, edge.pipe.value, edge.to.value,
                          edge.from.value, edge.peak});
        });
  }
  void putWaits(JsonFields &fields) {
    ArrayRef<ActionId> waits = Analyses(program).buffers().waits();
    onLines(fields, key::Waits, program.ranks(),
            [&](RankId rank) { waits = putWaits(rank, waits); });
  }

  // ---- Rows, and what they refer to ----

  void rows(JsonFields &fields) {
    sites(fields);
    fields.values(key::Columns, proof::familyColumns().take_front(8));
    onLines(fields, key::Actions, program.ranks(),
            [&](RankId rank) { actions(rank); });
    if (program.loops().empty()) {
      putWaits(fields);
    } else {
      onLines(fields, key::Loops, program.ranks(),
              [&](RankId rank) { loops(rank); });
    }
    writer.put('\n');
  }

  /// A list with a line for each item.
  template <class Range, class Put>
  void onLines(JsonFields &fields, StringRef name, const Range &items,
               Put put) {
    fields.key(name);
    writer.put('[');
    StringRef before = "\n";
    for (const auto &item : items) {
      writer.put(std::exchange(before, ",\n"));
      put(item);
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
           std::optional<KindId> KindInfo::*kind) {
    if (info.*kind)
      fields(name, program.kinds()[*(info.*kind)].mnemonic);
  }
  /// A flag or a count.
  template <std::integral Value>
  void put(JsonFields &fields, StringRef name, const KindInfo &info,
           Value KindInfo::*value) {
    if (info.*value)
      fields(name, info.*value);
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

void ppcc::putParams(JsonFields &fields, ArrayRef<ProgramParam> params) {
  for (const ProgramParam &param : params)
    if (isJsonLiteral(param))
      fields.raw(param.name, param.value);
    else
      fields(param.name, param.value);
}

void ppcc::putUnits(JsonFields &fields, const Units &units) {
  if (!units.ofTime.empty())
    fields("time_unit", units.ofTime);
  if (units.inBytes)
    fields("memory_unit", "bytes");
}

void ppcc::putSynthesized(JsonFields &fields, const SynthesizedOrder &order) {
  if (!order.makespan)
    return fields("synthesis_refused", order.refusal);
  fields.raw("synthesized", cost::format(*order.makespan));
  fields.raw("synthesis_gap", cost::format(order.gap));
}

void ppcc::emitJson(const Program &program, raw_ostream &out, EmitContext &) {
  Writer writer(out);
  JsonEmitter emitter{program, writer};
  writer.object([&](JsonFields &fields) { emitter.head(fields); },
                {.between = ",\n"}, "{\n");
  writer.put('\n');
}

void ppcc::putTextHead(Writer &writer, const Program &program) {
  JsonEmitter emitter{program, writer, JsonEmitter::Text};
  auto put = [&](JsonFields &fields) {
    emitter.head(fields);
    writer.put('\n');
  };
  writer.object(put, {.between = ",\n"}, "program {\n");
  writer.put('\n');
}

std::string ppcc::derivedJson(const Program &program, StringRef key) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  {
    Writer writer(stream);
    JsonFields fields(writer, {.colon = ""});
    JsonEmitter{program, writer}.putDerived(fields, key);
  }
  return text.substr(key.size() + 2); // After the key in its quotes.
}

/// The programs of a range, as far as they differ from those of others.
static void putFamily(JsonFields &fields, const proof::ProgramRange &range,
                      StringRef free, Writer &writer) {
  fields("modulus", range.modulus);
  fields("residue", range.residue);
  fields("from", range.from);
  fields.raw("to", range.to ? std::to_string(*range.to) : "null");
  fields("verdict", range.verdict);
  if (!range.programs)
    return fields("reason", range.reason);
  const proof::ResidueFamily &family = *range.programs;
  JsonEmitter emitter{family.head, writer};
  fields.object(key::Params, [&](JsonFields &params) {
    for (auto [i, param] : llvm::enumerate(family.head.params()))
      if (auto growth = family.paramFormula(i); param.name == free)
        continue;
      else if (growth)
        params.numbers(param.name, {growth->c, growth->n});
      else
        putParams(params, param);
  });
  fields.values(key::Phases, family.head.phases());
  emitter.sites(fields);
  emitter.preconnect(fields, family.preconnect);
  fields.list("microbatches", family.withMessages.pipes,
              [&](const proof::MicrobatchRange &range) {
                writer.numbers({range.first.c, range.first.n, range.count.c,
                                range.count.n});
              });
  std::string rows;
  llvm::raw_string_ostream stream(rows);
  proof::writeRows(stream, family.withMessages);
  fields.raw(key::Actions, rows);
}

void ppcc::emitFamilies(const proof::ParametricProgram &families,
                        raw_ostream &out) {
  auto last = llvm::find_if(llvm::reverse(families.ranges),
                            [](const proof::ProgramRange &range) {
                              return range.programs != nullptr;
                            });
  Program sample = last->programs->head;
  for (Pipe &pipe : sample.editHead().pipes)
    pipe.firstMicrobatch = pipe.numMicrobatches = 0;
  Writer writer(out);
  JsonEmitter emitter{sample, writer, JsonEmitter::Families};
  auto put = [&](JsonFields &fields) {
    emitter.head(fields);
    fields.list("parameters", sample.params(),
                [&](const ProgramParam &param) { writer.json(param.name); });
    fields("for", families.free);
    fields.values("transports", families.transports);
    fields.values(key::Columns, proof::familyColumns());
    emitter.onLines(fields, "families", families.ranges,
                    [&](const auto &range) {
                      writer.object(
                          [&](JsonFields &fields) {
                            putFamily(fields, range, families.free, writer);
                          },
                          {.between = ",", .colon = ":", .lists = ","});
                    });
    writer.put('\n');
  };
  writer.object(put, {.between = ",\n"}, "{\n");
  writer.put('\n');
}
