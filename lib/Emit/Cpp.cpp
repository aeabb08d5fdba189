// Writes the program as C++ data for the engine, see docs/runtime.md.
#include "Emitters.h"
#include "ppcc/Analysis/Report/PeakUsage.h"
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

/// A byte of a string literal. An octal escape takes up to three digits: it has
/// all of them unless what comes next is known to be no digit. A question mark
/// might begin a trigraph.
void escape(unsigned char byte, std::string &text, bool beforeNoDigit = false) {
  if (llvm::isPrint(byte) && byte != '"' && byte != '\\' && byte != '?') {
    text += static_cast<char>(byte);
    return;
  }
  text += '\\';
  for (int shift : {6, 3, 0})
    if (shift == 0 || !beforeNoDigit || byte >> shift != 0)
      text += static_cast<char>('0' + (byte >> shift & 7));
}

struct CppEmitter {
  const Program &program;
  raw_ostream &out;
  const EmitOptions &options;
  Writer writer{out};
  const PeakUsage &facts = peakUsage(program);
  bool packs = program.size() > maxReadableRows;
  uint32_t numDims = 0, numLists = 0; ///< Of tensors, written so far.

  void emit() {
    head();
    std::string kinds = this->kinds(), pipes = this->pipes();
    auto quote = [&](StringRef text) { put(cppLiteral(text)); };
    std::string phases =
        table("const char *", "phases", program.phases(), quote);
    std::string files = table("const char *", "files", program.files(),
                              [&](const SiteFile &file) { quote(file.name); });
    put("// File, line, column, the site of the call around it.\n");
    std::string sites =
        table("Site", "sites", program.sites(), [&](const Site &site) {
          bool known = &site != &program.sites().front();
          braces({known ? int64_t(site.file) : -1, site.line, site.column,
                  site.caller.value});
        });
    for (RankId rank : program.ranks())
      rows(rank);
    put(program.ranksBegun() == 0 ? "" : "\n");
    std::string ranks = table("RankProgram", "ranks", program.ranks(),
                              [&](RankId rank) { rankProgram(rank); });
    std::string preconnect = table(
        "RankPair", "preconnect", program.preconnect(),
        [&](RankPair pair) { braces({pair.low.value, pair.high.value}); },
        rowsPerLine);
    std::string transports =
        table("const char *", "transports", program.provenUnder(), quote);
    std::string digest = cppLiteral(digestOf(program));
    put("\nconstexpr Program program = {", rt::abiVersion, ", ",
        program.numRanks(), ", ", cppLiteral(program.name()),
        program.hasBackward() ? ", true" : ", false");
    for (StringRef part :
         {kinds, pipes, phases, files, sites, ranks, preconnect, digest})
      put(", ", part);
    put(program.provenUnder().empty() ? "" : ", transports");
    // The data has a namespace of its own, so that the symbol can be any.
    std::string symbol = options.cppSymbol.empty() ? cppSymbol(program.name())
                                                   : options.cppSymbol;
    put("};\n\n} // namespace ppcc_data\n\nextern \"C\" {\nextern const "
        "ppcc::rt::Program ",
        symbol, ";\n}\nconst ppcc::rt::Program ", symbol,
        " = ppcc_data::program;\n");
  }

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

  // ---- Arrays ----

  static std::string named(StringRef name, size_t number) {
    return fmt::format("{}{}", name, number);
  }
  void begin(StringRef type, StringRef name) {
    put("constexpr ", type, type.ends_with("*") ? "" : " ", name, "[] = {\n");
  }
  void end() { put("};\n"); }
  /// An array of what `item` writes; none without items, which C++ has not.
  /// Gives what stands for it.
  template <class Range, class Item>
  std::string table(StringRef type, std::string name, const Range &range,
                    Item item, unsigned perLine = 1) {
    if (range.begin() == range.end())
      return "{}";
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
    return name;
  }
  template <class Range>
  std::string table(StringRef type, std::string name, const Range &range,
                    unsigned perLine = 1) {
    return table(
        type, std::move(name), range, [&](const auto &item) { put(item); },
        perLine);
  }

  void head() {
    put("// The program of a pipeline schedule, as data. Written by "
        "ppcc " PPCC_VERSION ".\n#include \"ppcc/Runtime/Program.h\"\n\n"
        "static_assert(ppcc::rt::abiVersion == ",
        rt::abiVersion,
        ", \"compile the schedule again, with the ppcc of these "
        "headers\");\n",
        packs ? "#ifdef __GNUC__\n"
                "#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n"
                "#endif\n"
              : "",
        "\nnamespace ppcc_data {\n\nusing namespace ppcc::rt;\n\n");
  }

  std::string kinds() {
    static constexpr StringRef classes[] = {"Compute", "Send", "Recv",
                                            "Declared"};
    std::vector<std::string> rows;
    for (const KindInfo &kind : program.kinds().rows()) {
      std::string stages =
          table("int32_t", named("collective", rows.size()), kind.stages);
      rows.push_back(fmt::format(
          "{{{}, KindClass::{}, {}, {}{}}}", cppLiteral(kind.mnemonic),
          classes[size_t(kind.kindClass)], kind.defines, kind.needs,
          kind.isDeclared() ? declaration(kind, stages) : ""));
    }
    return table("Kind", "kinds", rows);
  }
  /// What the engine has to know of a declared kind.
  std::string declaration(const KindInfo &kind, StringRef stages) const {
    static constexpr StringRef collectives[] = {
        "None", "All", "Replicas", "Stages", "Outside", "To", "From"};
    return fmt::format(
        ", {}, Collective::{}{}{}",
        kind.restores ? program.kinds()[*kind.restores].defines : 0,
        collectives[size_t(kind.collective)], kind.stages.empty() ? "" : ", ",
        kind.stages.empty() ? "" : stages);
  }

  std::string pipes() {
    std::vector<std::string> rows;
    for (const Pipe &pipe : program.pipes()) {
      size_t i = rows.size();
      std::string ranks = table("uint32_t", named("rankOfStage", i),
                                pipe.rankOfStage, numbersPerLine);
      std::string edges = table(
          "SkipEdge", named("skipEdges", i), pipe.skipEdges,
          [&](auto edge) { braces({edge.first.value, edge.second.value}); });
      std::string gaps = table("uint16_t", named("gaps", i), pipe.gaps);
      std::string tensors = tensorsOf(pipe, named("edgeTensors", i));
      std::string row =
          fmt::format("{{{}, {}, {}, {}, {}", cppLiteral(pipe.name),
                      pipe.firstMicrobatch, pipe.numMicrobatches, ranks, edges);
      if (!pipe.gaps.empty() || pipe.slices != 1 || !pipe.tensors.empty())
        row += fmt::format(", {}, {}, {}", gaps, pipe.slices, tensors);
      rows.push_back(row + "}");
    }
    return table("Pipe", "pipes", rows);
  }

  /// The sizes of all tensors, the tensors of each edge, the edges.
  std::string tensorsOf(const Pipe &pipe, std::string name) {
    std::vector<std::string> tensors, edges;
    for (const EdgeTensors &edge : pipe.tensors)
      for (const Tensor &tensor : edge.tensors) {
        std::string dims =
            table("int64_t", named("dims", numDims), tensor.dims);
        numDims += !tensor.dims.empty();
        tensors.push_back(fmt::format("{{{}, {}, {}}}", cppLiteral(tensor.name),
                                      cppLiteral(elementTypeName(tensor.type)),
                                      dims));
      }
    ArrayRef<std::string> rest = tensors;
    for (const EdgeTensors &edge : pipe.tensors) {
      std::string list = table("Tensor", named("tensors", numLists),
                               rest.take_front(edge.tensors.size()));
      rest = rest.drop_front(edge.tensors.size());
      numLists += !edge.tensors.empty();
      edges.push_back(fmt::format("{{{}, {}, {}, {}}}", edge.from.value,
                                  edge.to.value, edge.needsShapes(), list));
    }
    return table("EdgeTensors", std::move(name), edges);
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
    begin("Segment", named("segments", rank.value));
    forEachSegment(program, rank, [&](RowRange rows, const Loop *loop) {
      if (rows.empty())
        return;
      put("    ");
      braces({rows.from.value - program.begin(rank).value, int64_t(rows.size()),
              loop ? loop->count : 1, loop ? loop->advance : 0});
      put(",\n");
    });
    end();
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
      if (llvm::all_of(program.kindOf(action).mnemonic, isWordChar)) {
        put(" // ");
        writer.cell(program, action);
      }
      put('\n');
    }
    end();
  }

  void packedRows(RankId rank) {
    begin("char", named("packed", rank.value));
    std::string line;
    for (ActionId row : program.rows(rank)) {
      pack(program[row], line);
      size_t rows = row.value + 1 - program.begin(rank).value;
      if (rows % rowsPerLine == 0 || rows == program.size(rank)) {
        put("    \"", line, "\"\n");
        line.clear();
      }
    }
    end();
  }

  /// Adds the row as RankProgram::row() of the runtime reads it.
  static void pack(const Action &action, std::string &line) {
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
      escape(*byte, line, byte + 1 != at && !llvm::isDigit(byte[1]));
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
};

} // namespace

bool ppcc::isCppSymbol(StringRef text) {
  return !text.empty() && llvm::isAlpha(text.front()) &&
         llvm::all_of(text, isWordChar) && !text.contains("__") &&
         !text.ends_with("_t") && !text.ends_with("_MAX") &&
         !text.ends_with("_MIN") &&
         !keywords.contains((" " + text + " ").str());
}

std::string ppcc::cppLiteral(StringRef text) {
  std::string result = "\"";
  for (char c : text)
    escape(static_cast<unsigned char>(c), result);
  return result + '"';
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
  CppEmitter{program, out, context.options}.emit();
}
