// / and % floor; min, max and abs.
// RUN: ppcc %s --comm-order=none --emit=actions | FileCheck %s

schedule s() {
  ranks 1; microbatches 1; placement linear;
  require -1 / 2 == -1 and 1 / -2 == -1 and -4 / 2 == -2 and 7 / 2 == 3 and -7 / -2 == 3;
  require -1 % 4 == 3 and 1 % -4 == -3 and -8 % 4 == 0 and 7 % 4 == 3 and -7 % -4 == -3;
  require min(3, 1, 2) == 1 and max(3, 1, 2) == 3 and abs(-3) == 3 and abs(3) == 3;
  require 1 / 2.0 == 0.5 and min(1, 0.5) == 0.5 and abs(-0.5) == 0.5 and -1.5 < 1 and max(1, 2) == 2.0;
  require (true == not false) and (true != false) and not (true and false);
  require (false ? 1 : 0.5) == 0.5 and (true ? 1 : 0.5) == 1;
  // CHECK: rank 0: 0F0 0B0
  on rank r { F; B; }
}
