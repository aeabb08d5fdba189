action LOG { after F; }
schedule s() {
  ranks 4; microbatches 1; placement linear;
  on rank 0 { defer W fill { F; overlap { B; } } }
  on rank 1 { defer W fill { F; W; B; } }
  on rank 2 { defer W fill { F; drain W; B; } }
  on rank 3 { defer W fill { F; LOG; B; } }
}
