// Writes the program as C++ data for the engine, see docs/runtime.md.
#include "Emitters.h"
#include "FlatFacts.h"
#include "Writer.h"
#include "ppcc/Analysis/Activations.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace ppcc;
using llvm::StringRef;

namespace {

/// The layout that include/ppcc/Runtime/Program.h has; the file that is written
/// refuses to compile with another.
constexpr uint32_t abiNumber = 3;
/// Compilers take a second for 10^5 structs, and a third of that for as many
/// rows in a string.
constexpr size_t maxReadableRows = 50'000;
constexpr unsigned rowsPerLine = 8, numbersPerLine = 16;

/// What cannot be the name of a variable: the keywords of C++20, and what is
/// taken by compilers, the standard headers and the file itself.
constexpr StringRef keywords =
    " NULL alignas alignof and and_eq asm auto bitand bitor bool break case"
    " catch char char16_t char32_t char8_t class co_await co_return co_yield compl"
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
  CppEmitter(const Program &program, llvm::raw_ostream &out)
      : program(program), facts(program), writer(out),
        packs(program.size() > maxReadableRows) {}

  void emit(StringRef symbol) {
    head();
    kinds();
    pipes();
    texts("phases", program.phases());
    texts("files", llvm::map_range(program.files(), [](const SiteFile &file) {
            return StringRef(file.name);
          }));
    sites();
    for (RankId rank : program.ranks())
      rows(rank);
    ranks();
    preconnect();
    put("\nconstexpr Program program = {");
    numbers({abiNumber, program.numRanks()});
    put(", ");
    literal(program.name());
    put(program.hasBackward() ? ", true, kinds, " : ", false, kinds, ");
    put(program.pipes().empty() ? "{}, " : "pipes, ");
    put("phases, ");
    put(program.files().empty() ? "{}, " : "files, ");
    put("sites, ");
    put(program.ranksBegun() == 0 ? "{}, " : "ranks, ");
    put(program.preconnect().empty() ? "{}" : "preconnect");
    // The data has a namespace of its own, so that the symbol can be any.
    put("};\n\n} // namespace ppcc_data\n\nextern \"C\" {\nextern const "
        "ppcc::rt::Program ");
    put(symbol);
    put(";\n}\nconst ppcc::rt::Program ");
    put(symbol);
    put(" = ppcc_data::program;\n");
  }

private:
  void put(StringRef text) { writer.put(text); }
  void number(uint64_t value) { writer.number(static_cast<int64_t>(value)); }
  void numbers(std::initializer_list<int64_t> values) {
    for (const int64_t &value : values) {
      if (&value != values.begin())
        put(", ");
      writer.number(value);
    }
  }

  /// A byte of a string literal. An octal escape takes up to three digits: it
  /// has all of them unless what comes next is known to be no digit. A question
  /// mark might begin a trigraph.
  void escaped(unsigned char byte, bool beforeNoDigit = false) {
    if (llvm::isPrint(byte) && byte != '"' && byte != '\\' && byte != '?') {
      writer.put(static_cast<char>(byte));
      return;
    }
    writer.put('\\');
    for (int shift : {6, 3, 0})
      if (shift == 0 || !beforeNoDigit || byte >> shift != 0)
        writer.put(static_cast<char>('0' + (byte >> shift & 7)));
  }
  void literal(StringRef text) {
    writer.put('"');
    for (char c : text)
      escaped(static_cast<unsigned char>(c));
    writer.put('"');
  }

  void begin(StringRef type, StringRef name,
             std::optional<uint32_t> index = std::nullopt) {
    put("constexpr ");
    put(type);
    put(type.ends_with("*") ? "" : " ");
    put(name);
    if (index)
      number(*index);
    put("[] = {\n");
  }
  void end() { put("};\n"); }

  void head() {
    put("// The program of a pipeline schedule, as data. Written by "
        "ppcc " PPCC_VERSION ".\n#include \"ppcc/Runtime/Program.h\"\n\n"
        "static_assert(ppcc::rt::abiNumber == ");
    number(abiNumber);
    put(", \"compile the schedule again, with the ppcc of these "
        "headers\");\n");
    if (packs)
      put("#ifdef __GNUC__\n"
          "#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n"
          "#endif\n");
    put("\nnamespace ppcc_data {\n\nusing namespace ppcc::rt;\n\n");
  }

  void kinds() {
    for (auto [i, kind] : llvm::enumerate(program.kinds().rows())) {
      if (kind.stages.empty())
        continue;
      begin("int32_t", "meeting", i);
      for (int32_t stage : kind.stages) {
        put("    ");
        numbers({stage});
        put(",\n");
      }
      end();
    }
    begin("Kind", "kinds");
    for (auto [i, kind] : llvm::enumerate(program.kinds().rows())) {
      put("    {");
      literal(kind.letters);
      static constexpr StringRef classes[] = {"Compute", "Send", "Recv",
                                              "Declared"};
      put(", KindClass::");
      put(classes[size_t(kind.kindClass)]);
      put(", ");
      numbers({kind.defines, kind.needs});
      if (kind.isDeclared())
        declaration(i, kind);
      put("},\n");
    }
    end();
  }
  /// What the engine has to know of a declared kind.
  void declaration(size_t number, const KindInfo &kind) {
    static constexpr StringRef meetings[] = {"None", "All", "Replicas",
                                             "Stages", "Outside"};
    put(", ");
    this->number(kind.restores ? program.kinds()[*kind.restores].defines : 0);
    put(", Meeting::");
    put(meetings[size_t(kind.meeting)]);
    if (kind.stages.empty())
      return;
    put(", meeting");
    this->number(number);
  }

  void pipes() {
    for (auto [i, pipe] : llvm::enumerate(program.pipes())) {
      begin("uint32_t", "rankOfStage", i);
      for (auto [stage, rank] : llvm::enumerate(pipe.rankOfStage)) {
        put(stage % numbersPerLine == 0 ? "    " : " ");
        number(rank.value);
        put((stage + 1) % numbersPerLine == 0 ? ",\n" : ",");
      }
      put(pipe.numStages() % numbersPerLine == 0 ? "" : "\n");
      end();
      skipEdges(i, pipe);
      gaps(i, pipe);
      tensors(i, pipe);
    }
    if (program.pipes().empty())
      return;
    begin("Pipe", "pipes");
    for (auto [i, pipe] : llvm::enumerate(program.pipes())) {
      put("    {");
      literal(pipe.name);
      put(", ");
      numbers({pipe.firstMicrobatch, pipe.numMicrobatches});
      put(", rankOfStage");
      number(i);
      listOf("skipEdges", i, pipe.skipEdges.empty());
      if (!pipe.gaps.empty() || pipe.slices != 1 || !pipe.tensors.empty()) {
        listOf("gaps", i, pipe.gaps.empty());
        put(", ");
        number(pipe.slices);
        listOf("edgeTensors", i, pipe.tensors.empty());
      }
      put("},\n");
    }
    end();
  }

  /// `, NAMEi`, or an empty list.
  void listOf(StringRef name, uint64_t i, bool isEmpty) {
    if (isEmpty)
      return put(", {}");
    put(", ");
    put(name);
    number(i);
  }

  void skipEdges(uint32_t i, const Pipe &pipe) {
    if (pipe.skipEdges.empty())
      return;
    begin("SkipEdge", "skipEdges", i);
    for (auto [from, to] : pipe.skipEdges) {
      put("    {");
      numbers({from.value, to.value});
      put("},\n");
    }
    end();
  }

  void gaps(uint32_t i, const Pipe &pipe) {
    if (pipe.gaps.empty())
      return;
    begin("uint16_t", "gaps", i);
    for (StageId gap : pipe.gaps) {
      put("    ");
      number(gap.value);
      put(",\n");
    }
    end();
  }

  /// The sizes of all tensors, the tensors of each edge, the edges.
  void tensors(uint32_t i, const Pipe &pipe) {
    if (pipe.tensors.empty())
      return;
    uint32_t firstDims = numDims, firstLists = numLists;
    for (const EdgeTensors &edge : pipe.tensors)
      for (const Tensor &tensor : edge.tensors)
        dims(tensor);
    for (const EdgeTensors &edge : pipe.tensors)
      firstDims = tensorList(edge, firstDims);
    begin("EdgeTensors", "edgeTensors", i);
    for (const EdgeTensors &edge : pipe.tensors) {
      put("    {");
      numbers({edge.from.value, edge.to.value});
      put(edge.needsShapes() ? ", true" : ", false");
      listOf("tensors", firstLists, edge.tensors.empty());
      firstLists += !edge.tensors.empty();
      put("},\n");
    }
    end();
  }

  void dims(const Tensor &tensor) {
    if (tensor.dims.empty())
      return;
    begin("int64_t", "dims", numDims++);
    for (int64_t dim : tensor.dims) {
      put("    ");
      writer.number(dim);
      put(",\n");
    }
    end();
  }

  /// Gives the number of the next list of sizes.
  uint32_t tensorList(const EdgeTensors &edge, uint32_t nextDims) {
    if (edge.tensors.empty())
      return nextDims;
    begin("Tensor", "tensors", numLists++);
    for (const Tensor &tensor : edge.tensors) {
      put("    {");
      literal(tensor.name);
      put(", ");
      literal(elementTypeName(tensor.type));
      listOf("dims", nextDims, tensor.dims.empty());
      nextDims += !tensor.dims.empty();
      put("},\n");
    }
    end();
    return nextDims;
  }

  template <class Range> void texts(StringRef name, const Range &range) {
    if (range.begin() == range.end())
      return;
    begin("const char *", name);
    for (StringRef text : range) {
      put("    ");
      literal(text);
      put(",\n");
    }
    end();
  }

  void sites() {
    put("// File, line, column, the site of the call around it.\n");
    begin("Site", "sites");
    for (const Site &site : program.sites()) {
      bool known = &site != &program.sites().front();
      put("    {");
      numbers({known ? int64_t(site.file) : -1, site.line, site.column,
               site.caller.value});
      put("},\n");
    }
    end();
  }

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
    begin("Segment", "segments", rank.value);
    ActionId next = program.begin(rank);
    auto segment = [&](ActionId end, uint32_t count, int32_t advance) {
      if (next == end)
        return;
      put("    {");
      numbers({next.value - program.begin(rank).value, end.value - next.value,
               count, advance});
      put("},\n");
      next = end;
    };
    for (const Loop &loop : loopsOf(program, rank)) {
      segment(loop.begin, 1, 0);
      segment(loop.end, loop.count, loop.advance);
    }
    segment(program.end(rank), 1, 0);
    end();
  }

  void readableRows(RankId rank) {
    put("\n// Rank ");
    number(rank.value);
    put(": kind, pipe, stage, microbatch, peer, phase, site.\n");
    begin("Row", "rows", rank.value);
    for (ActionId row : program.rows(rank)) {
      Action action = program[row];
      put("    {");
      numbers({action.kind.value, action.pipe.value, action.stage.value,
               action.microbatch});
      put(", ");
      if (action.hasPeer())
        number(action.peer.value);
      else
        put("Row::noPeer");
      put(action.joined ? ", Row::joinedBit | " : ", ");
      numbers({action.phase.value, action.site.value});
      put("},");
      // Nothing but letters may stand in a comment.
      if (llvm::all_of(program.kindOf(action).letters, isWordChar)) {
        put(" // ");
        writer.cell(program, action);
      }
      put("\n");
    }
    end();
  }

  void packedRows(RankId rank) {
    begin("char", "packed", rank.value);
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

  void ranks() {
    if (program.ranksBegun() == 0)
      return;
    put("\n");
    begin("RankProgram", "ranks");
    for (RankId rank : program.ranks()) {
      if (program.size(rank) == 0) {
        put("    {},\n");
        continue;
      }
      put(packs ? "    {{}, {packed" : "    {rows");
      number(rank.value);
      if (packs) {
        put(", ");
        number(program.size(rank) * 16);
        put("}");
      } else {
        put(", {}");
      }
      put(", segments");
      number(rank.value);
      put(", ");
      numbers(
          {facts.buffers.mostOf(rank), peakActivations(facts.program, rank)});
      put("},\n");
    }
    end();
  }

  void preconnect() {
    if (program.preconnect().empty())
      return;
    begin("RankPair", "preconnect");
    for (auto [i, pair] : llvm::enumerate(program.preconnect())) {
      put(i % rowsPerLine == 0 ? "    {" : " {");
      numbers({pair.low.value, pair.high.value});
      put((i + 1) % rowsPerLine == 0 ? "},\n" : "},");
    }
    put(program.preconnect().size() % rowsPerLine == 0 ? "" : "\n");
    end();
  }

  const Program &program;
  FlatFacts facts;
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

bool ppcc::emitCpp(const Program &program, llvm::raw_ostream &out,
                   EmitContext &context) {
  const std::string &symbol = context.options.cppSymbol;
  CppEmitter(program, out)
      .emit(symbol.empty() ? cppSymbol(program.name()) : symbol);
  return true;
}
