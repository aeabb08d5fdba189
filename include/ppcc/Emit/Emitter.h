// Writes a program in one of the formats of Emitters.def.
#pragma once

#include "ppcc/Analysis/Run/TorchSteps.h"
#include "ppcc/Basic/Diagnostics.h"
#include "ppcc/IR/PrintOptions.h"
#include "ppcc/IR/Transport.h"

namespace ppcc {

class JsonFields;
namespace proof {
struct ParametricProgram;
} // namespace proof

/// Whether the text can be the name of a variable of C++ at file scope.
bool isCppSymbol(StringRef text);
/// The name under which cpp exports the program called `name`: `ppcc_` and its
/// letters and digits, with `_` for the rest.
std::string cppSymbol(StringRef name);

/// A string literal of C++ that stands for these bytes, whatever they are.
std::string cppLiteral(StringRef text);

/// What the user can choose about pictures.
struct PictureOptions {
  /// Columns of a timeline, pixels of an svg; 0 for as many as serve.
  uint32_t width = 0;
  /// Only the span between these times; all when there is none.
  std::optional<std::pair<Time, Time>> times;
  bool color = false;       ///< A timeline may use the colours of terminals.
  bool unicode = false;     ///< A timeline may use characters beyond ASCII.
  bool arrows = false;      ///< An svg shows what goes from rank to rank.
  bool memory = false;      ///< It and a timeline show what each rank holds.
  std::string title;        ///< Of an svg; empty for what the program is.
  bool hidesLegend = false; ///< That below an svg.
  uint32_t fontSize = 9;    ///< Of an svg, in pixels.
};

/// The best order for the placement of a program that is found in the memory of
/// its rank that holds most: how long it takes, or why there is none.
struct SynthesizedOrder {
  std::optional<Time> makespan = {};
  Time gap = 0; ///< The program takes more by this, in units of 10^-9.
  std::string command = {}, refusal = {};
};

/// What the user can choose about formats.
struct EmitOptions {
  TorchTarget torch;     ///< The PyTorch that is to read torch-csv.
  std::string cppSymbol; ///< What cpp exports; empty for cppSymbol().
  /// What reports and pictures run on.
  Transport transport{"stream"};
  /// What `ir`, `actions` and pictures show of the program.
  PrintOptions print;
  PictureOptions picture;
  /// What reports say of the best order that synthesis finds.
  std::optional<SynthesizedOrder> synthesized;
};

/// What an emitter works with.
struct EmitContext {
  DiagnosticEngine &diags;
  SourceManager &sources;
  EmitOptions options;
};

/// A row of the table of formats.
struct Emitter {
  /// What emit() takes: programs without loops only, or all. A format that is
  /// Rolled gets loops for what repeats itself without being asked.
  enum Programs : uint8_t { Flat, Either, Rolled };
  /// Options that it may read.
  enum OptionGroup : uint16_t {
    Nothing = 0,
    Ranks = 1,          ///< Which are shown.
    Microbatches = 2,   ///< Which microbatches are.
    Sites = 4,          ///< Whether the places of actions are.
    TransportModel = 8, ///< The transport.
    Span = 16,          ///< Of time, in a picture.
    Size = 32,          ///< The width of a picture, and its memory.
    Figure = 64,        ///< All else about a vector graphic.
    Torch = 128,        ///< The PyTorch that reads it.
    Symbol = 256        ///< The name in C++.
  };

  StringRef name;
  StringRef extension; ///< Of its files, without a dot; empty for none.
  /// Writes the program, streaming, in O(actions) and without allocation per
  /// action; nothing after a diagnostic that the format cannot express it.
  void (*emit)(const Program &program, raw_ostream &out, EmitContext &context);
  Programs programs;
  unsigned reads; ///< Of Reads.
  StringRef summary;
};

/// A program, and what it runs on.
struct PageRun {
  const Program &program;
  Transport transport;
  StringRef remark = {}; ///< Follows its title.
};

/// The most rows of a page; browsers take about 100 bytes for each.
inline constexpr size_t maxPageRows = 4'000'000;

/// Writes a page that shows runs under each other on one time axis; nothing
/// after a diagnostic that they cannot be shown.
void emitPage(ArrayRef<PageRun> runs, raw_ostream &out, EmitContext &context);

/// Calls emit() with what it takes: loops are written out where it takes none.
/// False after a diagnostic, with nothing written.
bool emitProgram(const Emitter &emitter, const Program &program,
                 raw_ostream &out, EmitContext &context);

/// Writes the program as text that people read and write, and that reads back.
void printProgram(const Program &program, raw_ostream &out,
                  const PrintOptions &options = {});

/// Writes the members of `params`: numbers and booleans as they are written,
/// the rest as strings.
void putParams(JsonFields &fields, ArrayRef<ProgramParam> params);
/// What a result has its times and amounts in, where that is known.
void putUnits(JsonFields &fields, const Units &units);
void putSynthesized(JsonFields &fields, const SynthesizedOrder &order);

/// Writes programs for all values of a parameter, one of which exists, as JSON:
/// docs/every-m.md.
void emitFamilies(const proof::ParametricProgram &families, raw_ostream &out);

/// The value in JSON of a key that Head.def calls derived. `program` is right,
/// and has no loops. O(actions).
std::string derivedJson(const Program &program, StringRef key);

/// All formats, as in Emitters.def.
ArrayRef<Emitter> emitters();

/// The format called `name`, or null.
const Emitter *findEmitter(StringRef name);

/// As docs/program-format.md describes it, in hexadecimal digits; the same
/// whether loops are written out. O(rows).
std::string digestOf(const Program &program);

} // namespace ppcc
