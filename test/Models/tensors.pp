// What edges carry: into the program in each of its forms, and into the times of messages.
// RUN: ppcc %s --emit=ir | FileCheck %s --check-prefix=IR
// RUN: ppcc %s --emit=ir | ppcc - --passes=verify --emit=ir | FileCheck %s --check-prefix=IR
// RUN: ppcc %s -o %t.json && FileCheck %s --check-prefix=JSON --input-file=%t.json
// RUN: ppcc %t.json --from=json --emit=ir | FileCheck %s --check-prefix=IR
// RUN: ppcc-run %t.json | FileCheck %s --check-prefix=GRADIENTS
// RUN: ppcc %s --emit=cpp -o %t.cpp && FileCheck %s --check-prefix=CPP --input-file=%t.cpp
// RUN: %cxx -Wall -Wextra -Wpedantic -Werror -O0 -shared -fPIC %t.cpp -o %t.so && ppcc-run %t.so:ppcc_shaped | FileCheck %s --check-prefix=GRADIENTS

// IR:      {"edge": [0,1], "carries": [{"name": "hidden", "type": "bf16", "dims": [8, 4]}, {"name": "mask", "type": "i32", "dims": [8]}]},
// IR-SAME: {"edge": [0,3], "shapes": "each", "carries": [{"name": "text", "type": "f32", "dims": [-1, 2]}]},
// IR-SAME: {"edge": [1,2], "carries": [{"name": "hidden", "type": "bf16", "dims": [8, 4]}, {"name": "scale", "type": "f32", "dims": []}]},
// IR-SAME: {"edge": [2,3], "carries": [{"name": "hidden", "type": "bf16", "dims": [8, 4]}]}]}
// JSON: "tensors": [{"edge": [0,1], "carries": [{"name": "hidden", "type": "bf16", "dims": [8, 4]}, {"name": "mask", "type": "i32", "dims": [8]}]}, {"edge": [0,3], "shapes": "each", "carries": [{"name": "text", "type": "f32", "dims": [-1, 2]}]},
// CPP:      constexpr Tensor tensors1[] = {
// CPP-NEXT:     {"text", "f32", dims2},
// CPP-NEXT: };
// CPP:      constexpr EdgeTensors edgeTensors0[] = {
// CPP-NEXT:     {0, 1, false, tensors0},
// CPP-NEXT:     {0, 3, true, tensors1},
// CPP-NEXT:     {1, 2, false, tensors2},
// CPP-NEXT:     {2, 3, false, tensors3},
// CPP-NEXT: };
// GRADIENTS: 1 programs, 8 layers exact, 0 in another order, 0 failed
schedule shaped(N: int = 8) {
  ranks 4; microbatches 1; placement linear;
  edge stage 0 -> stage 3;
  model {
    output stage s = hidden[N, 4] bf16;
    output stage s in 0 .. 1 = hidden[N, 4] bf16, mask[N] i32, text[?, 2] f32;
    output stage s in 1 .. 2 = hidden[N, 4] bf16, scale[] f32;
    input stage s in 1 .. 2 = hidden[N, 4] bf16, mask[N] i32;
    input stage s in 3 .. 4 = text[?, 2] f32, hidden[N, 4] bf16;
  }
  on rank r { F; B; }
}
