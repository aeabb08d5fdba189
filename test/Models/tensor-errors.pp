// Tensors that do not fit together.
// RUN: split-file %s %t
// RUN: not ppcc %t/names.pp 2>&1 | FileCheck %t/names.pp --implicit-check-not=error:
// RUN: not ppcc %t/sizes.pp 2>&1 | FileCheck %t/sizes.pp --implicit-check-not=error:
// RUN: not ppcc %t/edges.pp 2>&1 | FileCheck %t/edges.pp --implicit-check-not=error:
// RUN: not ppcc %t/many.pp 2>&1 | FileCheck %t/many.pp --implicit-check-not=error:

//--- names.pp
schedule names() {
  ranks 2; microbatches 1; placement linear;
  model {
    // CHECK: names.pp:[[#@LINE+1]]:5: error: `model` has no setting `outputs`; did you mean `output`?
    outputs stage s = x[1] f32;
    // CHECK: names.pp:[[#@LINE+1]]:27: error: unknown type of elements `float`{{.*}} [E0346]
    output stage s = x[1] float;
    // CHECK: names.pp:[[#@LINE+1]]:31: error: `x` is defined twice [E0308]
    input stage s = x[1] f32, x[2] f32;
    // CHECK: names.pp:[[#@LINE+1]]:16: error: unknown name `down`
    input pipe down stage s = x[1] f32;
    // CHECK: names.pp:[[#@LINE+1]]:24: error: a size must be int, but this is float [E0310]
    output stage s = y[0.5] f32;
  }
  on rank r { F; B; }
}

//--- sizes.pp
schedule sizes() {
  ranks 3; microbatches 1; placement linear;
  model {
    // CHECK: sizes.pp:[[#@LINE+1]]:24: error: a size is -1, but must be in 0..1099511627776 [E0405]
    output stage s = x[s - 1] f32;
    // CHECK: sizes.pp:[[#@LINE+1]]:28: error: a stage is 4, but must be in 1..3 [E0405]
    output stage s in 1 .. 4 = x[s] f32;
  }
  on rank r { F; B; }
}

//--- edges.pp
schedule edges() {
  ranks 5; microbatches 1; placement linear;
  edge stage 0 -> stage 4;
  model {
    output stage s in 0 .. 1 = x[1, 4] f32, y[?] i64;
    output stage s in 1 .. 2 = x[1, 4] bf16;
    output stage s in 2 .. 3 = x[1, 4] f32;
    // CHECK: edges.pp:[[#@LINE+2]]:31: error: stage 1 has the input `x[1, 4] bf16`, but stage 0 outputs `x[1, 4] f32` [E0348]
    // CHECK: edges.pp:5:32: note: stage 0 gives it here
    input stage s in 1 .. 2 = x[1, 4] bf16, y[?] i64;
    // CHECK: edges.pp:[[#@LINE+2]]:31: error: stage 2 has the input `z`, but no stage that it reads outputs it [E0347]
    // CHECK: edges.pp:6:5: note: what stage 1 gives
    input stage s in 2 .. 3 = z[] f32, x[1, 4] bf16;
    // CHECK: edges.pp:[[#@LINE+1]]:31: error: stage 3 has the input `x[?, 4] f32`, but stage 2 outputs `x[1, 4] f32` [E0348]
    input stage s in 3 .. 4 = x[?, 4] f32;
    // CHECK: edges.pp:[[#@LINE+2]]:5: error: stage 4 reads stage 0, but uses none of its tensors [E0349]
    // CHECK: edges.pp:5:5: note: what stage 0 gives
    input stage s in 4 .. 5 = w[?, 4] f32;
  }
  on rank r { F; B; }
}

//--- many.pp
schedule many(N: int = 60000) {
  ranks 1; microbatches 1; stages N; stage s on rank 0;
  for s in 2 .. N { edge stage 0 -> stage s; }
  model {
    // CHECK: many.pp:[[#@LINE+1]]:5: error: the number of tensors is {{[0-9]+}}, but must be in 0..1048576 [E0405]
    output stage s = a[] f32, b[] f32, c[] f32, d[] f32, e[] f32, f[] f32, g[] f32, h[] f32, i[] f32, j[] f32;
  }
  on rank r { for s in 0 .. N { F(s); } }
}
