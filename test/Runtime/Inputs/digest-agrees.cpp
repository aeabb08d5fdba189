// The digest of the engine is that of the compiler, which stands in the
// program.
#include "ppcc/Runtime/Digest.h"

#include <cstdio>

extern "C" {
extern const ppcc::rt::Program messages, group, declared, loops, million;
}

int main() {
  for (const ppcc::rt::Program *program :
       {&messages, &group, &declared, &loops, &million})
    std::puts(ppcc::rt::digestOf(*program) == program->digest ? "agrees"
                                                              : "differs");
}
