// The program pprun.
#include "ppcc/Train/Train.h"

int main(int argc, char **argv) {
  return ppcc::runTool(argc, argv, ppcc::runTraining);
}
