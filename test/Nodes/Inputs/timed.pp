model timed() {
  layer t { F: a @ comp -> b @ comm; B: b @ comm -> a @ comp; cost F.a = 2; cost B.a = 4; cost F.b = 0.5; }
  layer u { cost F = 1.25; cost B = 3; }
  layers t * 7, u;
}
