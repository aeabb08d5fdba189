// The passes of ppcc.
#include "ppcc/Compiler/PassRegistry.h"
#include "ppcc/Transforms/FuseComm.h"
#include "ppcc/Transforms/InjectComm.h"
#include "ppcc/Transforms/Preconnect.h"
#include "ppcc/Transforms/Roll.h"
#include "ppcc/Verify/Passes.h"

using namespace ppcc;

PassRegistry ppcc::makePassRegistry() {
  PassRegistry registry;
#define PASS(Name, Factory, Kind, Summary)                                     \
  registry.add(Name, PassKind::Kind, Summary, Factory);
#define ALIAS(Name, Sequence, Summary)                                         \
  registry.addAlias(Name, Summary, Sequence);
#include "ppcc/Compiler/Passes.def"
#undef PASS
#undef ALIAS
  return registry;
}
