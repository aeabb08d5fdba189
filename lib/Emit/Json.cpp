// Writes the program as JSON, as docs/program-format.md describes it.
#include "Costs.h"
#include "Emitters.h"
#include "FlatFacts.h"
#include "JsonNodes.h"
#include "JsonParams.h"
#include "Writer.h"
#include "ppcc/Analysis/Activations.h"

#include "ppcc/IR/Calls.h"

#include "llvm/ADT/STLExtras.h"

using namespace ppcc;
using llvm::StringRef;

namespace {

class JsonEmitter {
public:
  JsonEmitter(const Program &program, llvm::raw_ostream &out)
      : program(program), facts(program), buffers(facts.buffers), writer(out) {}

  void emit() {
    writer.put("{\n\"format\": \"ppcc.program\"");
    key("version");
    writer.number(version());
    writer.put(",\n\"compiler\": \"ppcc " PPCC_VERSION "\"");
    key("schedule");
    string(program.name());
    key("params");
    params();
    key("ranks");
    writer.number(program.numRanks());
    key("backward");
    writer.put(program.hasBackward() ? "true" : "false");
    if (program.calls() != CallStyle::None) {
      key("calls");
      string(callStyleNames()[size_t(program.calls())]);
    }
    key("transports");
    list(program.provenUnder(), [&](StringRef name) { string(name); });
    key("preconnect");
    list(program.preconnect(),
         [&](RankPair pair) { numbers({pair.low.value, pair.high.value}); });
    key("buffers");
    byRank([&](RankId rank) { return buffers.mostOf(rank); });
    key("peak_activations");
    byRank([&](RankId rank) { return peakActivations(facts.program, rank); });
    key("edge_buffers");
    edgeBuffers();
    if (!program.stageLayers().empty()) {
      key("layout");
      list(program.stageLayers(), [&](StringRef layers) { string(layers); });
    }
    if (!program.costs().empty()) {
      key("costs");
      putCosts(writer, program);
    }
    key("kinds");
    list(program.kinds().rows(), [&](const KindInfo &info) {
      writer.put("{\"letters\": ");
      string(info.letters);
      writer.put(", \"class\": ");
      string(kindClassName(info.kindClass));
      if (info.isDeclared())
        declaration(info);
      writer.put('}');
    });
    if (!program.nodes().empty()) {
      key("nodes");
      putNodes(writer, program);
    }
    key("phases");
    list(program.phases(), [&](StringRef phase) { string(phase); });
    key("pipes");
    list(program.pipes(), [&](const Pipe &info) { pipe(info); });
    key("files");
    list(program.files(), [&](const SiteFile &file) { string(file.name); });
    key("sites");
    list(program.sites(), [&](const Site &site) {
      bool known = &site != &program.sites().front();
      numbers({known ? int64_t(site.file) : -1, site.line, site.column,
               site.caller.value});
    });
    key("columns");
    writer.put("[\"kind\", \"pipe\", \"stage\", \"microbatch\", \"peer\", "
               "\"phase\", \"group\", \"site\"]");
    key("actions");
    writer.put('[');
    for (uint32_t rank = 0; rank != program.ranksBegun(); ++rank) {
      writer.put(rank == 0 ? "\n" : ",\n");
      actions(RankId(rank));
    }
    writer.put("\n]");
    if (program.loops().empty())
      waits();
    else
      loops();
    writer.put("\n}\n");
  }

private:
  void waits() {
    key("waits");
    writer.put('[');
    llvm::ArrayRef<ActionId> waits = buffers.waits();
    for (uint32_t rank = 0; rank != program.ranksBegun(); ++rank) {
      writer.put(rank == 0 ? "\n" : ",\n");
      waits = putWaits(RankId(rank), waits);
    }
    writer.put("\n]");
  }

  /// Of each rank: the first row, counted on the rank, the rows, how often they
  /// run, and what each time adds to their microbatches.
  void loops() {
    key("loops");
    writer.put('[');
    for (uint32_t rank = 0; rank != program.ranksBegun(); ++rank) {
      writer.put(rank == 0 ? "\n[" : ",\n[");
      uint32_t begin = program.begin(RankId(rank)).value;
      bool first = true;
      for (const Loop &loop : loopsOf(program, RankId(rank))) {
        if (!first)
          writer.put(',');
        first = false;
        numbers({loop.begin.value - begin, loop.end.value - loop.begin.value,
                 loop.count, loop.advance});
      }
      writer.put(']');
    }
    writer.put("\n]");
  }

  void key(StringRef name) {
    writer.put(",\n\"");
    writer.put(name);
    writer.put("\": ");
  }

  void string(StringRef text) { writer.json(text); }

  template <class Range, class Put> void list(const Range &range, Put put) {
    writer.put('[');
    bool first = true;
    for (const auto &item : range) {
      if (!first)
        writer.put(", ");
      first = false;
      put(item);
    }
    writer.put(']');
  }

  void numbers(std::initializer_list<int64_t> row) {
    char before = '[';
    for (int64_t number : row) {
      writer.put(before);
      writer.number(number);
      before = ',';
    }
    writer.put(']');
  }

  /// A number for each rank.
  template <class Number> void byRank(Number number) {
    writer.put('[');
    for (uint32_t rank = 0; rank != program.ranksBegun(); ++rank) {
      if (rank != 0)
        writer.put(',');
      writer.number(number(RankId(rank)));
    }
    writer.put(']');
  }

  void params() {
    writer.put('{');
    for (const ProgramParam &param : program.params()) {
      if (&param != &program.params().front())
        writer.put(", ");
      string(param.name);
      writer.put(": ");
      if (isJsonLiteral(param))
        writer.put(param.value);
      else
        string(param.value);
    }
    writer.put('}');
  }

  /// What a declared kind has beside its letters and class.
  void declaration(const KindInfo &info) {
    auto names = [&](const std::vector<KindId> &kinds) {
      list(kinds, [&](KindId kind) { string(program.kinds()[kind].letters); });
    };
    auto rules = [&](StringRef name, bool isBefore) {
      writer.put(", \"");
      writer.put(name);
      writer.put("\": ");
      list(llvm::make_filter_range(
               info.rules,
               [&](const KindRule &rule) { return rule.isBefore == isBefore; }),
           [&](const KindRule &rule) { names(rule.kinds); });
    };
    writer.put(", \"per\": ");
    string(kindScopeNames()[size_t(info.scope)]);
    writer.put(", \"lane\": ");
    string(program.kinds().lanes()[info.lane]);
    rules("after", false);
    rules("before", true);
    if (info.isRequired)
      writer.put(", \"required\": true");
    if (info.restores) {
      writer.put(", \"restores\": ");
      string(program.kinds()[*info.restores].letters);
    }
    if (info.inFlight) {
      writer.put(", \"in_flight\": ");
      writer.number(info.inFlight);
    }
    if (info.meeting == Meeting::None)
      return;
    writer.put(", \"collective\": ");
    if (info.meeting == Meeting::Stages)
      list(info.stages, [&](int32_t stage) { writer.number(stage); });
    else
      string(info.meeting == Meeting::Outside
                 ? "outside " + info.outside
                 : meetingName(info.meeting).str());
  }

  /// Readers of an older form would go wrong with loops, and with gaps.
  int64_t version() const {
    for (const Pipe &pipe : program.pipes())
      if (!pipe.gaps.empty())
        return 3;
    return program.loops().empty() ? 1 : 2;
  }

  void pipe(const Pipe &pipe) {
    writer.put("{\"name\": ");
    string(pipe.name);
    writer.put(", \"microbatches\": ");
    numbers({pipe.firstMicrobatch, pipe.endMicrobatch()});
    writer.put(", \"rank_of_stage\": ");
    list(pipe.rankOfStage, [&](RankId rank) { writer.number(rank.value); });
    writer.put(", \"skip_edges\": ");
    list(pipe.skipEdges, [&](const auto &edge) {
      numbers({edge.first.value, edge.second.value});
    });
    if (!pipe.gaps.empty()) {
      writer.put(", \"gaps\": ");
      list(pipe.gaps, [&](StageId gap) { writer.number(gap.value); });
    }
    if (pipe.slices != 1) {
      writer.put(", \"slices\": ");
      writer.number(pipe.slices);
    }
    if (!pipe.tensors.empty()) {
      writer.put(", \"tensors\": ");
      list(pipe.tensors, [&](const EdgeTensors &edge) { tensors(edge); });
    }
    writer.put('}');
  }

  void tensors(const EdgeTensors &edge) {
    writer.put("{\"edge\": ");
    numbers({edge.from.value, edge.to.value});
    if (edge.needsShapes())
      writer.put(", \"shapes\": \"each\"");
    writer.put(", \"carries\": ");
    list(edge.tensors, [&](const Tensor &tensor) {
      writer.put("{\"name\": ");
      string(tensor.name);
      writer.put(", \"type\": ");
      string(elementTypeName(tensor.type));
      writer.put(", \"dims\": ");
      list(tensor.dims, [&](int64_t dim) { writer.number(dim); });
      writer.put('}');
    });
    writer.put('}');
  }

  void actions(RankId rank) {
    writer.put('[');
    int64_t groups = 0;
    uint32_t end = program.end(rank).value;
    for (uint32_t row = program.begin(rank).value; row != end; ++row) {
      Action action = program[ActionId(row)];
      bool first = row == program.begin(rank).value;
      bool last = row + 1 == end || !program.joined(ActionId(row + 1));
      bool grouped = action.joined || !last;
      if (!first)
        writer.put(',');
      numbers({action.kind.value, action.pipe.value, action.stage.value,
               action.hasMicrobatch() ? int64_t(action.microbatch) : -1,
               action.hasPeer() ? int64_t(action.peer.value) : -1,
               action.phase.value, grouped ? groups : -1, action.site.value});
      groups += grouped && last;
    }
    writer.put(']');
  }

  /// Of each edge on which something is received: the receive's kind, pipe,
  /// stage and peer, and the buffers.
  void edgeBuffers() {
    writer.put('[');
    bool first = true;
    for (auto [i, edge] : llvm::enumerate(buffers.edges().edges())) {
      if (buffers.mostOf(i) == 0)
        continue;
      if (!first)
        writer.put(", ");
      first = false;
      auto kindId = program.kinds().find(KindClass::Recv, edge.slotBit);
      assert(kindId && "every slot that moves has its messages");
      numbers({kindId->value, edge.pipe.value, edge.to.value, edge.from.value,
               buffers.mostOf(i)});
    }
    writer.put(']');
  }

  /// Writes those of one rank, which begin `waits`; the others remain.
  llvm::ArrayRef<ActionId> putWaits(RankId rank,
                                    llvm::ArrayRef<ActionId> waits) {
    uint32_t begin = program.begin(rank).value, end = program.end(rank).value;
    writer.put('[');
    bool first = true;
    for (uint32_t row = begin; row != end; ++row) {
      if (program.kindOf(ActionId(row)).kindClass != KindClass::Recv)
        continue;
      if (!first)
        writer.put(',');
      first = false;
      writer.number(waits.front().value - begin);
      waits = waits.drop_front();
    }
    writer.put(']');
    return waits;
  }

  const Program &program;
  FlatFacts facts;
  const ReceiveBuffers &buffers;
  Writer writer;
};

} // namespace

bool ppcc::emitJson(const Program &program, llvm::raw_ostream &out,
                    EmitContext &context) {
  JsonEmitter(program, out).emit();
  return true;
}
