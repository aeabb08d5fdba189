"""day.py with a table of its own: gpu-day.py FOLDER-OF-DAY FOLDER."""

import sys
from pathlib import Path

sys.path.insert(0, sys.argv[1])
import day  # noqa: E402
from day import GPU, Step  # noqa: E402

SCRIPTS = {
    "two.py": "from results import *\npassed('one'); figure('speed', 3, 'm/s'); skipped('other', 'no time', 3)",
    "silent.py": "",
    "breaks.py": "raise SystemExit('out of luck')",
    "wrong.py": "from results import *\ncheck('sum', 1 + 1 == 3, 'it is 2')",
    "hangs.py": "from results import *\nimport time\npassed('before'); time.sleep(60)",
}
folder = Path(sys.argv[2])
for name, text in SCRIPTS.items():
    (folder / name).write_text(text)
(folder / "results.py").write_text(Path(sys.argv[1], "results.py").read_text())
day.PATIENCE = 1
day.HERE, day.OUT = folder, folder / "out"
day.STEPS = [Step(name[:-3], "", 3, [name], (GPU,) if name == "none.py" else ()) for name in ("none.py", *SCRIPTS)]
sys.argv = ["day.py", "--without", "silent"] if len(sys.argv) > 3 else ["day.py", "--seconds", "60"]
sys.exit(day.main())
