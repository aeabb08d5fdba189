#!/usr/bin/env python3
"""Measures `ppcc lsp`: how long Neovim waits for diagnostics behind a letter, in a file of 300 lines, and what 100,000 edits do to
the server's memory and to what it says. Usage: editor.py BIN"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

root = Path(__file__).resolve().parents[2]
environment = {**os.environ, "PATH": str(Path(sys.argv[1]).resolve()) + os.pathsep + os.environ["PATH"]}
with tempfile.TemporaryDirectory() as folder:
    neovim = [sys.executable, root / "test/Lsp/Inputs/neovim.py", root / "editors", folder]
    output = subprocess.run(neovim, env={**environment, "EDITS": "100"}, capture_output=True, text=True, check=True).stdout
    print("diagnostics in Neovim behind a letter of 300 lines:", output.strip().splitlines()[-1])
    script = Path(folder, "monkey.script")
    script.write_text("open monkey.pp monkey.txt\nmonkey monkey.pp 100000 ppcc\n")
    client = [sys.executable, root / "test/utils/lsp-client.py", script, "ppcc", "lsp"]
    run = subprocess.run(client, env=environment, cwd=root / "test/Lsp/Inputs", capture_output=True, text=True)
    print(run.stderr.strip())
    assert "the same as the command line" in run.stdout
