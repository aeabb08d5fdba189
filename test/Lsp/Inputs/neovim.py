"""Starts Neovim, headless, on a schedule of 300 lines. Usage: neovim.py EDITORS FOLDER; what it says goes to the standard output."""

import os
import subprocess
import sys
from pathlib import Path

editors, folder = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
here = Path(__file__).resolve().parent
folder.mkdir(parents=True, exist_ok=True)
TEXT = """// ppcc: -D P=8 -D M=64
import "std.pp";

// How many forwards come first.
fn depth(P, r) = P - 1 - r;
"""
SCHEDULE = """
// One forward, one backward.
schedule long(P: int >= 1 = 4, M: int >= 1 = 8) {
  ranks P;
  microbatches M;
  placement linear;
  with recompute(window: 1);

  on rank r {
    let w = min(depth(P, r), M);
    phase warmup {
      repeat w { F; }
    }
    phase steady {
      repeat M - w { F; B; }
    }
    phase cooldown {
      repeat w { B; }
    }
  }
}
"""
BLOCK = """
block pair_{0}(n, m: int) {{
  let half = n / 2;
  repeat half {{ F; B; }}
  for i in 0 .. m {{
    if i % 2 == 0 {{ F; }} else {{ B; }}
  }}
}}
"""
for i in range(1000):
    if TEXT.count("\n") + SCHEDULE.count("\n") > 300:
        break
    TEXT += BLOCK.format(i)
(folder / "long.pp").write_text(TEXT + SCHEDULE)
said = folder / "said"
said.unlink(missing_ok=True)
subprocess.run(
    ["nvim", "--headless", "--clean", "-n", "--cmd", f"set runtimepath^={editors}/nvim", "-c", f"luafile {here}/neovim.lua"],
    cwd=folder,
    env={**os.environ, "SAID": str(said.resolve()), "HOME": str(folder.resolve())},
    stdin=subprocess.DEVNULL,
    timeout=300,
    check=False,
)
print(said.read_text() if said.exists() else "Neovim said nothing")
