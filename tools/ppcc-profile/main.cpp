// The program ppcc-profile.
#include "ppcc/Driver/Output.h"
#include "ppcc/Driver/Profile.h"

int main(int argc, char **argv) {
  return ppcc::closeStandardOutput(ppcc::runProfile(
      {argv, static_cast<size_t>(argc)}, llvm::vfs::getRealFileSystem(),
      llvm::outs(), llvm::errs()));
}
