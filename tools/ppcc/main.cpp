// The compiler.
#include "ppcc/Driver/Driver.h"
#include "ppcc/Driver/Output.h"

int main(int argc, const char **argv) {
  return ppcc::closeStandardOutput(
      ppcc::runCompiler({argv, size_t(argc)}, llvm::vfs::getRealFileSystem(),
                        llvm::outs(), llvm::errs()));
}
