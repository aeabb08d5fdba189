// The program ppcc-opt.
#include "ppcc/Driver/Opt.h"
#include "ppcc/Driver/Output.h"

int main(int argc, char **argv) {
  return ppcc::closeStandardOutput(
      ppcc::runOpt({argv, static_cast<size_t>(argc)},
                   llvm::vfs::getRealFileSystem(), llvm::outs(), llvm::errs()));
}
