// The program ppcc-profile.
#include "ppcc/Driver/Driver.h"

int main(int argc, char **argv) {
  return ppcc::runTool(argc, argv, ppcc::runProfile);
}
