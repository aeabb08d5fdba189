#!/usr/bin/env python3
"""Checks that the example of each code on the pages of errors provokes it. Usage: error-examples.py PPCC [CODE...]"""
import re
import subprocess
import sys

# What only a pass of somebody else provokes; its page shows one, which test/unit/PassTest.cpp runs.
WITHOUT = {"E0806": "PassResult repeatForward"}


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=250)


def main():
    ppcc, *codes = sys.argv[1:]
    table = run(ppcc, "--list-diagnostics").stdout
    codes = codes or re.findall(r"^\| (E\d{4}) ", table, re.M)
    assert codes, "no diagnostics in the table"
    wrong = 0
    for code in codes:
        page = run(ppcc, "explain-error", code)
        said = page.stdout.partition("\n    $ ")[2]
        shows = f" [{code}]\n" in said or WITHOUT.get(code, "\0") in page.stdout and f" [{code}]\n" in page.stdout
        if page.returncode or not shows:
            wrong += 1
            print(f"{code}: its example does not provoke it:\n{page.stdout}{page.stderr}")
    print(f"{len(codes) - wrong} of {len(codes)} examples provoke their error")
    return 1 if wrong else 0


sys.exit(main())
