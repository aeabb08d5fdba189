// The version, with the commit that it was built from.
#include "ppcc/Driver/CommandLine.h"

#include "Commit.inc"

llvm::StringRef ppcc::versionText() { return PPCC_VERSION PPCC_COMMIT; }
