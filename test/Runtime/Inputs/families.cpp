#include "ppcc/Runtime/Families.h"

#include <cstdio>

ppcc::rt::LoadedProgram ppcc_gpipe_at(int64_t value);

int main() {
  for (int64_t value : {1, 5000}) {
    ppcc::rt::LoadedProgram loaded = ppcc_gpipe_at(value);
    const ppcc::rt::Program &program = loaded.program();
    std::printf("%u ranks, %u microbatches\n", program.numRanks,
                program.pipes[0].numMicrobatches);
  }
}
