// The program pprun.
#include "ppcc/Driver/Output.h"
#include "ppcc/Train/Train.h"

int main(int argc, const char **argv) {
  return ppcc::closeStandardOutput(
      ppcc::runTraining({argv, size_t(argc)}, llvm::outs(), llvm::errs()));
}
