#!/usr/bin/env python3
"""Checks that some test provokes each diagnostic, and that the page of diagnostics is the compiler's table.

A test counts when it expects the code as it is printed, like [E0301]; unit tests see it without brackets. Usage: diagnostics-covered.py PPCC ROOT
"""
import re
import subprocess
import sys
from pathlib import Path


def main():
    ppcc, root = sys.argv[1], Path(sys.argv[2])
    table = subprocess.run(
        [ppcc, "--list-diagnostics"], capture_output=True, text=True, check=True
    ).stdout
    codes = re.findall(r"^\| (E\d{4}) ", table, re.M)
    assert codes, "no diagnostics in the table"

    expected = set()
    for path in (root / "test").rglob("*"):
        if path.is_file() and path != Path(__file__).resolve():
            code = r"\b(E\d{4})\b" if path.suffix == ".cpp" else r"\[(E\d{4})\]"
            expected |= set(re.findall(code, path.read_text(errors="replace")))
    missing = [code for code in codes if code not in expected]
    for code in missing:
        print(f"{code}: no test expects it")

    page = root / "docs" / "diagnostics.md"
    stale = not page.read_text().endswith("\n\n" + table)
    if stale:
        print(f"{page}: its table is not what `ppcc --list-diagnostics` prints")
    print(f"{len(codes) - len(missing)} of {len(codes)} diagnostics are expected by tests")
    return 1 if missing or stale else 0


sys.exit(main())
