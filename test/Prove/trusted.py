"""trusted.py ROOT: whether docs/every-m.md and docs/synthesis.md tell how long the files are that must be trusted, and list all that the two
parts of ppcc-check-proof are made of. With --print it prints the tables."""
import re
import sys
from pathlib import Path

root = Path(sys.argv[1])
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)
MAIN, OPTIMALITY = "tools/ppcc-check-proof/main.cpp", "lib/Proof/Optimality.cpp"


def sources():
    """The files that the checker is compiled from."""
    cmake = (root / "tools/CMakeLists.txt").read_text(encoding="utf-8")
    linked = re.search(r"target_link_libraries\(ppcc-check-proof PRIVATE ([^)]*)\)", cmake)[1].split()
    assert linked == ["ppcc_llvm", "fmt::fmt"], linked
    return {MAIN, *(f"lib/{source}" for source in re.search(r"set\(PPCC_CHECKER_SOURCES\s([^)]*)\)", cmake)[1].split())}


def with_includes(files):
    """These, and all of ours that they include."""
    found, open_files = set(), list(files)
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


# What is given of certificates of optima is checked by a file that calls none of the others.
PARTS = {"docs/every-m.md": with_includes(sources() - {OPTIMALITY}), "docs/synthesis.md": {MAIN} | with_includes({OPTIMALITY})}
assert OPTIMALITY in sources()
parts = 0
for document, files in PARTS.items():
    if "--print" in sys.argv:
        for name in sorted(files):
            print(f"| `{name}` | {lines(name)} |")
        print(sum(map(lines, files)), "lines")
        continue
    page = (root / document).read_text(encoding="utf-8")
    table = re.findall(r"^\| `(\S+)` \| ([\d,]+) \| (.*) \|$", page, re.M)
    for name, documented, _ in table:
        assert abs(lines(name) - int(documented.replace(",", ""))) <= max(5, lines(name) // 20), (name, documented, lines(name))
    listed = {name for name, _, _ in table if (root / name).is_file()}
    assert not files - listed, ("not listed", files - listed)
    total = int(re.search(r"([\d,]+) lines of ours", page)[1].replace(",", ""))
    assert abs(sum(map(lines, files)) - total) <= (100 if total > 2000 else 20), (total, sum(map(lines, files)))
    parts += len(table)
if "--print" not in sys.argv:
    print(f"{parts} parts are as long as documented, {len(set.union(*PARTS.values()))} of them the checker")
