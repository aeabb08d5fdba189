#include "ppcc/Runtime/Json.h"

#include <cstdio>

extern "C" const ppcc::rt::Program ppcc_gpipe;

template <class Call> static void tell(Call call) {
  try {
    call();
  } catch (const ppcc::rt::Error &error) {
    std::printf("%s\n", error.what());
  }
}

int main() {
  for (int64_t value : {1, 5000}) {
    ppcc::rt::LoadedProgram loaded = ppcc_gpipe.at(value);
    const ppcc::rt::Program &program = loaded;
    std::printf("%u ranks, %u microbatches\n", program.numRanks,
                program.pipes[0].numMicrobatches);
    tell([&] { program.at(value); });
  }
  tell([] { ppcc_gpipe.at(0); });
  tell([] { checkHead(ppcc_gpipe); });
}
