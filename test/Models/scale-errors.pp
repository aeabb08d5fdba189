// What is no scale.
// RUN: split-file %s %t
// RUN: not ppcc %t/words.pp 2>&1 | FileCheck %t/words.pp --implicit-check-not=error:
// RUN: not ppcc %t/values.pp 2>&1 | FileCheck %t/values.pp --implicit-check-not=error:
// RUN: not ppcc one_f_one_b -D P=1 -D M=2 --costs=%t/bad.json --check 2>&1 | FileCheck %t/values.pp --check-prefix=JSON --implicit-check-not=error:
// RUN: not ppcc %t/many.pp --max-actions=1999 2>&1 | FileCheck %t/many.pp --implicit-check-not=error:

//--- words.pp
schedule words() {
  ranks 1; microbatches 2; placement linear;
  model {
    // CHECK: words.pp:[[#@LINE+1]]:5: error: expected `microbatch m` after `scale` [E0344]
    scale F = 2;
    // CHECK: words.pp:[[#@LINE+1]]:11: error: expected `microbatch` after `scale` [E0344]
    scale other m = 2;
    // CHECK: words.pp:[[#@LINE+1]]:12: error: expected `=`, `pipe`, `stage` or `rank` after `cost` [E0344]
    cost F microbatch m = 2;
    // CHECK: words.pp:[[#@LINE+1]]:11: error: `scale` does not take `limit` [E0325]
    scale limit microbatch m = 2;
    scale B microbatch m = m;
    // CHECK: words.pp:[[#@LINE+1]]:5: error: a second `scale B` [E0317]
    scale B microbatch m = m;
    // CHECK: words.pp:[[#@LINE+1]]:31: error: a setting of `model` must be float, but this is bool [E0310]
    scale time microbatch m = m == 1;
  }
  on rank r { repeat 2 { F; B; } }
}

//--- values.pp
schedule values() {
  ranks 1; microbatches 2; placement linear;
  model {
    // CHECK: values.pp:[[#@LINE+1]]:33: error: the factor of a microbatch is -1, but must be in 0..1000000 [E0345]
    scale memory microbatch m = m * -1;
    // CHECK: values.pp:[[#@LINE+1]]:26: error: the factor of a microbatch is 2000000, but must be in 0..1000000 [E0345]
    scale microbatch m = m * 2000000;
  }
  on rank r { repeat 2 { F; B; } }
}
// JSON: bad.json:2:{{[0-9]+}}: error: `time` has 1 values, but there are 2 microbatches [E1005]
// JSON: bad.json:3:{{[0-9]+}}: error: `memory` must be a number from 0 to 10^6 [E1006]
// JSON: bad.json:4:{{[0-9]+}}: error: scale `G` does not exist

//--- bad.json
{"scale": {
  "time": [1],
  "memory": [1, -1],
  "G": [1, 1]
}}

//--- many.pp
schedule many() {
  ranks 1; microbatches 1000; placement linear;
  model {
    scale time microbatch m = 1;
    // CHECK: many.pp:[[#@LINE+1]]:5: error: the number of factors of `scale` is 2000, but must be in 0..1999 [E0405]
    scale bytes microbatch m = 1;
  }
  backward when 1 == 2;
  on rank r { repeat 1000 { F; } }
}
