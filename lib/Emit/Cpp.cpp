// Writes the program as C++ data for the engine, see docs/runtime.md.
#include "Emitters.h"
#include "Writer.h"
#include "ppcc/Analysis/FlatFacts.h"
#include "ppcc/Emit/Digest.h"
#include "ppcc/IR/Loops.h"
#include "ppcc/Runtime/Program.h"

using namespace ppcc;

namespace {

/// Compilers take a second for 10^5 structs, and a third of that for as many
/// rows in a string.
constexpr size_t maxReadableRows = 50'000;
constexpr unsigned rowsPerLine = 8, numbersPerLine = 16;

/// What cannot be the name of a variable: the keywords of C++20, and what is
/// taken by compilers, the standard headers and the file itself.
constexpr StringRef keywords =
    " NULL alignas alignof and and_eq asm auto bitand bitor bool break case"
    " catch char char16_t char32_t char8_t class co_await co_return co_yield "
    "compl"
    " concept const const_cast consteval constexpr constinit continue"
    " decltype default delete do double dynamic_cast else enum explicit"
    " export extern false float for friend goto if inline int linux long"
    " main mutable namespace new noexcept not not_eq nullptr operator or or_eq"
    " ppcc ppcc_data private protected public register reinterpret_cast"
    " requires return short signed sizeof static static_assert static_cast std"
    " struct switch template this thread_local throw true try typedef typeid"
    " typename union unix unsigned using virtual void volatile wchar_t while"
    " xor xor_eq ";

bool isWordChar(char c) { return llvm::isAlnum(c) || c == '_'; }

class CppEmitter {
public:
  CppEmitter(const Program &program, raw_ostream &out,
             const EmitOptions &options)
      : program(program), facts(flatFacts(program)), options(options),
        writer(out), packs(program.size() > maxReadableRows) {}

  void emit() {
    std::string symbol = options.cppSymbol.empty() ? cppSymbol(program.name())
                                                   : options.cppSymbol;
    head();
    kinds();
    for (PipeId id : program.pipeIds())
      arraysOf(program.pipe(id), id.value);
    table("Pipe", "pipes", program.pipeIds(), [&](PipeId id) { pipe(id); });
    table("const char *", "phases", program.phases(),
          [&](StringRef name) { literal(name); });
    table("const char *", "files", program.files(),
          [&](const SiteFile &file) { literal(file.name); });
    put("// File, line, column, the site of the call around it.\n");
    table("Site", "sites", program.sites(), [&](const Site &site) {
      bool known = &site != &program.sites().front();
      braces({known ? int64_t(site.file) : -1, site.line, site.column,
              site.caller.value});
    });
    for (RankId rank : program.ranks())
      rows(rank);
    put(program.ranksBegun() == 0 ? "" : "\n");
    table("RankProgram", "ranks", program.ranks(),
          [&](RankId rank) { rankProgram(rank); });
    table(
        "RankPair", "preconnect", program.preconnect(),
        [&](RankPair pair) { braces({pair.low.value, pair.high.value}); },
        rowsPerLine);
    table("const char *", "transports", program.provenUnder(),
          [&](const std::string &transport) { literal(transport); });
    put("\nconstexpr Program program = {");
    numbers({rt::abiNumber, program.numRanks()});
    put(", ");
    literal(program.name());
    // The data has a namespace of its own, so that the symbol can be any.
    put(program.hasBackward() ? ", true, kinds, " : ", false, kinds, ",
        program.pipes().empty() ? "{}, " : "pipes, ", "phases, ",
        program.files().empty() ? "{}, " : "files, ", "sites, ",
        program.ranksBegun() == 0 ? "{}, " : "ranks, ",
        program.preconnect().empty() ? "{}, " : "preconnect, ");
    if (flatSize(program) <= options.mostDigested)
      literal(digestOf(program));
    else
      put("nullptr");
    put(program.provenUnder().empty() ? "" : ", transports");
    put("};\n\n} // namespace ppcc_data\n\nextern \"C\" {\nextern const "
        "ppcc::rt::Program ",
        symbol, ";\n}\nconst ppcc::rt::Program ", symbol,
        " = ppcc_data::program;\n");
  }

private:
  template <class... Parts> void put(const Parts &...parts) {
    writer.put(parts...);
  }
  void numbers(std::initializer_list<int64_t> values) {
    StringRef before;
    for (int64_t value : values)
      put(std::exchange(before, ", "), value);
  }
  void braces(std::initializer_list<int64_t> values) {
    put('{');
    numbers(values);
    put('}');
  }

  /// A byte of a string literal. An octal escape takes up to three digits: it
  /// has all of them unless what comes next is known to be no digit. A question
  /// mark might begin a trigraph.
  void escaped(unsigned char byte, bool beforeNoDigit = false) {
    if (llvm::isPrint(byte) && byte != '"' && byte != '\\' && byte != '?')
      return put(static_cast<char>(byte));
    put('\\');
    for (int shift : {6, 3, 0})
      if (shift == 0 || !beforeNoDigit || byte >> shift != 0)
        put(static_cast<char>('0' + (byte >> shift & 7)));
  }
  void literal(StringRef text) {
    put('"');
    for (char c : text)
      escaped(static_cast<unsigned char>(c));
    put('"');
  }

  // ---- Arrays ----

  static std::string named(StringRef name, uint32_t number) {
    return (name + Twine(number)).str();
  }
  void begin(StringRef type, StringRef name) {
    put("constexpr ", type, type.ends_with("*") ? "" : " ", name, "[] = {\n");
  }
  void end() { put("};\n"); }
  /// An array of what `item` writes; none without items, which C++ has not.
  template <class Range, class Item>
  void table(StringRef type, StringRef name, const Range &range, Item item,
             unsigned perLine = 1) {
    if (range.begin() == range.end())
      return;
    begin(type, name);
    unsigned inLine = 0;
    for (const auto &value : range) {
      put(inLine == 0 ? "    " : " ");
      item(value);
      inLine = (inLine + 1) % perLine;
      put(inLine == 0 ? ",\n" : ",");
    }
    put(inLine == 0 ? "" : "\n");
    end();
  }
  /// `, NAMEi`, or an empty list.
  void listOf(StringRef name, uint32_t i, bool isEmpty) {
    if (isEmpty)
      put(", {}");
    else
      put(", ", name, i);
  }

  void head() {
    put("// The program of a pipeline schedule, as data. Written by "
        "ppcc " PPCC_VERSION ".\n#include \"ppcc/Runtime/Program.h\"\n\n"
        "static_assert(ppcc::rt::abiNumber == ",
        rt::abiNumber,
        ", \"compile the schedule again, with the ppcc of these "
        "headers\");\n",
        packs ? "#ifdef __GNUC__\n"
                "#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n"
                "#endif\n"
              : "",
        "\nnamespace ppcc_data {\n\nusing namespace ppcc::rt;\n\n");
  }

  void kinds() {
    const KindTable &kinds = program.kinds();
    for (KindId id : kinds.ids())
      table("int32_t", named("meeting", id.value), kinds[id].stages,
            [&](int32_t stage) { put(stage); });
    table("Kind", "kinds", kinds.ids(), [&](KindId id) {
      static constexpr StringRef classes[] = {"Compute", "Send", "Recv",
                                              "Declared"};
      const KindInfo &kind = kinds[id];
      put('{');
      literal(kind.letters);
      put(", KindClass::", classes[size_t(kind.kindClass)], ", ", kind.defines,
          ", ", kind.needs);
      if (kind.isDeclared())
        declaration(id, kind);
      put('}');
    });
  }
  /// What the engine has to know of a declared kind.
  void declaration(KindId id, const KindInfo &kind) {
    static constexpr StringRef meetings[] = {
        "None", "All", "Replicas", "Stages", "Outside", "To", "From"};
    put(", ", kind.restores ? program.kinds()[*kind.restores].defines : 0,
        ", Meeting::", meetings[size_t(kind.meeting)]);
    if (!kind.stages.empty())
      put(", meeting", id);
  }

  void arraysOf(const Pipe &pipe, uint32_t i) {
    auto id = [&](auto id) { put(id); };
    table("uint32_t", named("rankOfStage", i), pipe.rankOfStage, id,
          numbersPerLine);
    table("SkipEdge", named("skipEdges", i), pipe.skipEdges,
          [&](auto edge) { braces({edge.first.value, edge.second.value}); });
    table("uint16_t", named("gaps", i), pipe.gaps, id);
    tensors(pipe, i);
  }

  void pipe(PipeId id) {
    const Pipe &pipe = program.pipe(id);
    put('{');
    literal(pipe.name);
    put(", ", pipe.firstMicrobatch, ", ", pipe.numMicrobatches);
    listOf("rankOfStage", id.value, pipe.rankOfStage.empty());
    listOf("skipEdges", id.value, pipe.skipEdges.empty());
    if (!pipe.gaps.empty() || pipe.slices != 1 || !pipe.tensors.empty()) {
      listOf("gaps", id.value, pipe.gaps.empty());
      put(", ", pipe.slices);
      listOf("edgeTensors", id.value, pipe.tensors.empty());
    }
    put('}');
  }

  /// The sizes of all tensors, the tensors of each edge, the edges.
  void tensors(const Pipe &pipe, uint32_t i) {
    uint32_t nextDims = numDims, nextList = numLists;
    for (const EdgeTensors &edge : pipe.tensors)
      for (const Tensor &tensor : edge.tensors)
        if (!tensor.dims.empty())
          table("int64_t", named("dims", numDims++), tensor.dims,
                [&](int64_t dim) { put(dim); });
    for (const EdgeTensors &edge : pipe.tensors)
      if (!edge.tensors.empty())
        table("Tensor", named("tensors", numLists++), edge.tensors,
              [&](const Tensor &tensor) {
                put('{');
                literal(tensor.name);
                put(", ");
                literal(elementTypeName(tensor.type));
                listOf("dims", nextDims, tensor.dims.empty());
                nextDims += !tensor.dims.empty();
                put('}');
              });
    table("EdgeTensors", named("edgeTensors", i), pipe.tensors,
          [&](const EdgeTensors &edge) {
            put('{', edge.from, ", ", edge.to,
                edge.needsShapes() ? ", true" : ", false");
            listOf("tensors", nextList, edge.tensors.empty());
            nextList += !edge.tensors.empty();
            put('}');
          });
  }

  // ---- Ranks ----

  void rows(RankId rank) {
    if (program.size(rank) == 0)
      return;
    if (packs)
      packedRows(rank);
    else
      readableRows(rank);
    segments(rank);
  }

  /// What stands in a loop and what stands between loops, in turn.
  void segments(RankId rank) {
    put("// First row, rows, how often they run, what each time adds to the "
        "microbatches.\n");
    std::vector<Loop> segments;
    ActionId next = program.begin(rank);
    auto add = [&](ActionId end, uint32_t count, int32_t advance) {
      if (next != end)
        segments.push_back({next, end, count, advance});
      next = end;
    };
    for (const Loop &loop : loopsOf(program, rank)) {
      add(loop.begin, 1, 0);
      add(loop.end, loop.count, loop.advance);
    }
    add(program.end(rank), 1, 0);
    table("Segment", named("segments", rank.value), segments,
          [&](const Loop &part) {
            braces({part.begin.value - program.begin(rank).value,
                    part.end.value - part.begin.value, part.count,
                    part.advance});
          });
  }

  void readableRows(RankId rank) {
    put("\n// Rank ", rank,
        ": kind, pipe, stage, microbatch, peer, phase, site.\n");
    begin("Row", named("rows", rank.value));
    for (ActionId row : program.rows(rank)) {
      Action action = program[row];
      put("    {");
      numbers({action.kind.value, action.pipe.value, action.stage.value,
               action.microbatch});
      put(", ");
      if (action.hasPeer())
        put(action.peer);
      else
        put("Row::noPeer");
      put(action.joined ? ", Row::joinedBit | " : ", ", action.phase, ", ",
          action.site, "},");
      // Nothing but letters may stand in a comment.
      if (llvm::all_of(program.kindOf(action).letters, isWordChar)) {
        put(" // ");
        writer.cell(program, action);
      }
      put('\n');
    }
    end();
  }

  void packedRows(RankId rank) {
    begin("char", named("packed", rank.value));
    unsigned inLine = 0;
    for (ActionId row : program.rows(rank)) {
      put(inLine == 0 ? "    \"" : "");
      packed(program[row]);
      inLine = (inLine + 1) % rowsPerLine;
      put(inLine == 0 ? "\"\n" : "");
    }
    put(inLine == 0 ? "" : "\"\n");
    end();
  }

  /// The row as RankProgram::row() of the runtime reads it.
  void packed(const Action &action) {
    constexpr uint32_t joinedBit = 0x8000;
    unsigned char bytes[16];
    unsigned char *at = bytes;
    auto littleEndian = [&](uint32_t value, unsigned count) {
      for (unsigned i = 0; i != count; ++i)
        *at++ = static_cast<unsigned char>(value >> (8 * i));
    };
    littleEndian(action.kind.value, 1);
    littleEndian(action.pipe.value, 1);
    littleEndian(action.stage.value, 2);
    littleEndian(action.microbatch, 4);
    littleEndian(action.peer.value, 2);
    littleEndian(action.phase.value | (action.joined ? joinedBit : 0), 2);
    littleEndian(action.site.value, 4);
    assert(at == std::end(bytes) && "a row has 16 bytes");
    for (unsigned char *byte = bytes; byte != at; ++byte)
      escaped(*byte, byte + 1 != at && !llvm::isDigit(byte[1]));
  }

  void rankProgram(RankId rank) {
    if (program.size(rank) == 0)
      return put("{}");
    if (packs)
      put("{{}, {packed", rank, ", ", program.size(rank) * 16, '}');
    else
      put("{rows", rank, ", {}");
    put(", segments", rank, ", ", facts.buffers[rank.value], ", ",
        facts.activations[rank.value], '}');
  }

  const Program &program;
  const FlatFacts &facts;
  const EmitOptions &options;
  Writer writer;
  bool packs;
  uint32_t numDims = 0, numLists = 0; ///< Of tensors, written so far.
};

} // namespace

bool ppcc::isCppSymbol(StringRef text) {
  return !text.empty() && llvm::isAlpha(text.front()) &&
         llvm::all_of(text, isWordChar) && !text.contains("__") &&
         !text.ends_with("_t") && !text.ends_with("_MAX") &&
         !text.ends_with("_MIN") &&
         !keywords.contains((" " + text + " ").str());
}

std::string ppcc::cppSymbol(StringRef name) {
  std::string symbol = "ppcc_";
  for (char c : name)
    if (llvm::isAlnum(c))
      symbol += c;
    else if (symbol.back() != '_')
      symbol += '_';
  return symbol;
}

void ppcc::emitCpp(const Program &program, raw_ostream &out,
                   EmitContext &context) {
  CppEmitter(program, out, context.options).emit();
}
