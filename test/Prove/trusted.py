"""trusted.py ROOT: whether docs/every-m.md tells how long the files are that must be trusted."""
import re
import sys
from pathlib import Path

root = Path(sys.argv[1])
table = re.findall(r"^\| `(\S+)` \| ([\d,]+) \|", (root / "docs/every-m.md").read_text(encoding="utf-8"), re.M)
for name, told in table:
    path = root / name
    files = [path] if path.is_file() else sorted(path.glob("*.cpp")) + sorted(path.glob("*.h"))
    lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)
    if "--tell" in sys.argv:
        print(name, lines)
        continue
    assert abs(lines - int(told.replace(",", ""))) <= max(5, lines // 20), (name, told, lines)
print(f"{len(table)} parts are as long as is told")
