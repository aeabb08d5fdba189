model plain() { cost F = 1; cost I = 1; cost W = 1; memory F = 1; }
cluster small() { limit = 3; }
