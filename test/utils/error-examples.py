#!/usr/bin/env python3
"""Checks that the example of each code on the pages of errors provokes it. Usage: error-examples.py PPCC PAGE..."""
import re
import subprocess
import sys
from pathlib import Path

# What only a pass of somebody else provokes; its page shows one, which test/unit/PassTest.cpp runs.
WITHOUT = {"E0806": "PassResult repeatForward"}


def main():
    ppcc, *pages = sys.argv[1:]
    table = subprocess.run([ppcc, "--list-diagnostics"], capture_output=True, text=True, check=True).stdout
    codes = re.findall(r"^\| (E\d{4}) ", table, re.M)
    assert codes, "no diagnostics in the table"
    text = "".join(Path(page).read_text() for page in pages)
    sections = dict(re.findall(r"^## (E\d{4})\n(.*?)(?=^## |\Z)", text, re.M | re.S))
    wrong = sections.keys() ^ codes
    for code in sections.keys() & codes:
        said = sections[code].partition("\n$ ")[2]
        if f" [{code}]\n" not in said and WITHOUT.get(code, "\0") not in sections[code]:
            wrong.add(code)
    print("".join(f"{code}: no example provokes it\n" for code in sorted(wrong)) + f"{len(codes) - len(wrong)} of {len(codes)} examples provoke their error")
    return 1 if wrong else 0


sys.exit(main())
