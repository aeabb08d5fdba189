action TIE { per stage; lane comm; after B, W; collective replicas; }
rule in_queue() { insert TIE after B, W; }
