action GATHER { per stage; before F; }
action DONE { per stage; after F; }
rule together() {
  insert GATHER before F per rank;
  insert DONE after F per rank by 1;
}
