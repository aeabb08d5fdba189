// Writes a program in one of the formats of Emitters.def.
#pragma once

#include "ppcc/Basic/Diagnostics.h"
#include "ppcc/IR/Text.h"
#include "ppcc/IR/Transport.h"

namespace ppcc {

/// A release of PyTorch.
struct TorchVersion {
  unsigned major = 2, minor = 10;
  auto operator<=>(const TorchVersion &) const = default;
};

/// The version written as `2.9`; a patch number and what follows it are
/// ignored. Nothing for other text.
std::optional<TorchVersion> parseTorchVersion(llvm::StringRef text);

/// What the user can choose about formats.
struct EmitOptions {
  TorchVersion torchVersion;     ///< The PyTorch that is to read torch-csv.
  Transport transport{"stream"}; ///< What promela models and reports run on.
  PrintOptions print; ///< What `ir` and `actions` show of the program.
};

/// What an emitter works with.
struct EmitContext {
  DiagnosticEngine &diags;
  SourceManager &sources;
  EmitOptions options;
};

/// A row of the table of formats.
struct Emitter {
  llvm::StringRef name;
  /// Writes the program, streaming, in O(actions) and without allocation per
  /// action. False, with nothing written, after a diagnostic that the format
  /// cannot express it.
  bool (*emit)(const Program &program, llvm::raw_ostream &out,
               EmitContext &context);
  llvm::StringRef summary;
};

/// All formats, as in Emitters.def.
llvm::ArrayRef<Emitter> emitters();

/// The format called `name`, or null.
const Emitter *findEmitter(llvm::StringRef name);

} // namespace ppcc
