// How many forwards rank r of P runs before its first backward.
fn warmup(r, P) = 2 * (P - 1 - r);
