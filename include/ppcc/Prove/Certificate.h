// What a proof claims, as a file that a small program checks.
#pragma once

#include "ppcc/Prove/Prove.h"

namespace ppcc {

/// What is claimed, as far as the checker agrees with it: the rest is not
/// claimed.
proof::Certificate certificateOf(const Proof &proof, StringRef free,
                                 const SourceManager &sources);

/// Writes it as docs/every-m.md describes it.
void writeCertificate(const proof::Certificate &certificate, raw_ostream &out);

} // namespace ppcc
