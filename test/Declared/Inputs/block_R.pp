block R() { F; B; }
schedule s() { ranks 1; microbatches 1; placement linear; on rank r { R; } }
