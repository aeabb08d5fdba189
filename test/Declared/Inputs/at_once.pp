action TIE { per stage; lane tie; after B, W; collective stages(0, -1); }
rule at_once() { insert TIE after B, W; }
