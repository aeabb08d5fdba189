"""trusted.py ROOT: whether docs/every-m.md tells how long the files are that must be trusted, and lists all that
ppcc-check-proof is made of. With --print it prints the table."""
import re
import sys
from pathlib import Path

root = Path(sys.argv[1])
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)


def checker():
    """The files that the checker is compiled from, and all of ours that they include."""
    cmake = (root / "tools/CMakeLists.txt").read_text(encoding="utf-8")
    sources = re.search(r"set\(PPCC_CHECKER_SOURCES\s([^)]*)\)", cmake)[1].split()
    linked = re.search(r"target_link_libraries\(ppcc-check-proof PRIVATE ([^)]*)\)", cmake)[1].split()
    assert linked == ["ppcc_llvm", "fmt::fmt"], linked
    found, open_files = set(), ["tools/ppcc-check-proof/main.cpp", *(f"lib/{source}" for source in sources)]
    while open_files:
        name = open_files.pop()
        if name in found:
            continue
        found.add(name)
        for included in INCLUDE.findall((root / name).read_text(encoding="utf-8")):
            beside = f"{Path(name).parent}/{included}"
            for place in (beside, f"include/{included}"):
                if (root / place).is_file():
                    open_files.append(place)
    return found


def lines(name):
    path = root / name
    files = [path] if path.is_file() else sorted(path.glob("*.cpp")) + sorted(path.glob("*.h"))
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)


page = (root / "docs/every-m.md").read_text(encoding="utf-8")
table = re.findall(r"^\| `(\S+)` \| ([\d,]+) \| (.*) \|$", page, re.M)
if "--print" in sys.argv:
    for name in sorted(checker()):
        print(f"| `{name}` | {lines(name)} |")
    print(sum(map(lines, checker())), "lines")
    sys.exit()
for name, documented, _ in table:
    assert abs(lines(name) - int(documented.replace(",", ""))) <= max(5, lines(name) // 20), (name, documented, lines(name))
listed = {name for name, _, _ in table if (root / name).is_file()}
assert not checker() - listed, ("not listed", checker() - listed)
total = int(re.search(r"([\d,]+) lines of ours", page)[1].replace(",", ""))
assert abs(sum(map(lines, checker())) - total) <= 100, (total, sum(map(lines, checker())))
print(f"{len(table)} parts are as long as documented, {len(checker())} of them the checker")
