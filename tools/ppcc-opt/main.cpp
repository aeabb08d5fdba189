// The program ppcc-opt.
#include "ppcc/Driver/Driver.h"

int main(int argc, char **argv) {
  return ppcc::runTool(argc, argv, ppcc::runOpt);
}
