with log;
with at_end(two());
rule at_end(n) { insert STEP after B when n == two(); }
block all() { F; B; }
schedule s() { ranks 1; microbatches 1; placement linear; on rank r { all; } }
rule log() { insert LOG after F; }
fn two() = 2;
action STEP { per rank; after B; cost two(); }
action LOG  { per stage; after F; }
