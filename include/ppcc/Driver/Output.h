// Writes files so that a failure leaves the old ones whole.
#pragma once

#include "ppcc/Compiler/Compiler.h"
#include "ppcc/Driver/CommandLine.h"

namespace ppcc {

/// A file to be written, `-` for standard output, and what fills it.
struct OutputFile {
  StringRef path;
  function_ref<void(raw_ostream &)> write;
};

/// Writes files, or none when one of them cannot be, or when a `write` reports
/// an error; `-` is `out`. Regular files are replaced once all is written,
/// links to them and their modes are kept. Refused are files that the user may
/// not write to, and two that are one. Errors after a report.
ExitCode writeOutputs(ArrayRef<OutputFile> files, raw_ostream &out,
                      Session &session);
ExitCode writeOutput(StringRef path, raw_ostream &out, Session &session,
                     function_ref<void(raw_ostream &)> write);

/// Before work for outputs: reports those that cannot be written, and has the
/// session refuse to read them. An empty path is none. False after a report.
bool prepareOutputs(ArrayRef<StringRef> paths, raw_ostream &out,
                    Session &session);

/// Whether two outputs, or an output and an input, are one file or stream, of
/// which one would be lost; `-` is `out`.
bool isSameFile(StringRef a, StringRef b, const raw_ostream &out);

} // namespace ppcc
