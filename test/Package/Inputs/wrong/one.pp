schedule one() {
  ranks 1; microbatches 1; placement linear;
  on rank r { F; B; }
}
