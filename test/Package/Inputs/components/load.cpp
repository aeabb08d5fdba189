// Reads the programs that were compiled with it, and one beside it.
#ifdef WITH_MPI
#include "ppcc/Runtime/Mpi.h"
#endif
#include "ppcc/Runtime/Json.h"

#include <cstdio>
#include <fstream>

extern "C" const ppcc::rt::Program small, large, ppcc_gpipe;

int main() {
  std::ifstream file(FOLDER "dualpipe.json");
  ppcc::rt::LoadedProgram loaded = ppcc::rt::readJson(file);
  for (const ppcc::rt::Program *program :
       {&small, &large, &ppcc_gpipe, &loaded.program()})
    std::printf("%s: %d ranks, %d microbatches\n", program->name,
                int(program->numRanks), int(program->pipes[0].numMicrobatches));
}
