// The options of pictures, and what the terminal adds to them.
#pragma once

#include "ppcc/Driver/CommandLine.h"
#include "ppcc/Emit/Emitter.h"

namespace ppcc {

/// Adds the options that fill `options`.
void addPictureOptions(OptionParser &parser, PictureOptions &options);

/// The options for a timeline in `stream`: its colours, the characters of the
/// locale and, where no width is asked for, that of the terminal.
PictureOptions fitted(PictureOptions options, const raw_ostream &stream,
                      StringRef color);

} // namespace ppcc
