#!/usr/bin/env python3
"""Runs the examples of a Markdown page.

```pp blocks are compiled with --check, those without a schedule only parsed; `pp error E0404` must be refused with that code. A block whose first line is
`// NAME.pp` is kept under that name for what follows. ```console blocks are run: lines behind `$ ` are commands (ppcc,
ppcc-profile and ppcc-check-proof only), the lines below must be what is printed; `...` stands for anything, on a line of its own for any
lines. ```python and ```sh blocks
are run when they are marked `run`; they find the headers of the engine in $PPCC_INCLUDE. Another block with a NAME, as in ```text NAME,
is a file for what follows. A block whose name is in examples/ or test/, as in ```cmake examples/x/CMakeLists.txt, shows that file of the
repository, and must be equal to it. With $PPCC_REWRITE, commands get what they print now, at most MAX_LINES lines of it.
Usage: doc-examples.py PPCC PAGE...
"""
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


MAX_LINES = 12
root = Path(__file__).resolve().parents[2]
environment = os.environ | {"PPCC_INCLUDE": str(root / "include")}


def fenced_blocks(page):
    """(line, info, text) of each fenced block."""
    lines = page.read_text().splitlines()
    start = None
    for number, line in enumerate(lines, 1):
        if not line.startswith("```"):
            continue
        if start is None:
            start, info = number, line[3:].strip()
        else:
            yield start, info, "\n".join(lines[start : number - 1]) + "\n"
            start = None
    assert start is None, f"{page}:{start}: a block without an end"


def matches(expected, actual):
    pattern = "".join(
        r"(?:.*\n)*?" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") + r"\n" for line in expected
    )
    return re.fullmatch(pattern, actual) is not None


class Runner:
    def __init__(self, ppcc, folder):
        self.ppcc, self.folder = ppcc, folder
        self.passed, self.failures = 0, []

    def run(self, command, **options):
        return subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, timeout=250, env=environment, **options
        )

    def record(self, where, problem):
        if problem is None:
            self.passed += 1
        else:
            self.failures.append(f"{where}: {problem}")

    def schedule(self, where, info, text):
        code = info[2] if info[1:2] == ["error"] else None
        named = re.match(r"// (\S+\.pp)\n", text)
        path = self.folder / (named.group(1) if named else "example.pp")
        path.write_text(text)
        # Models and clusters by themselves are chosen by the commands below them.
        has_schedule = re.search(r"^schedule ", text, re.M)
        result = self.run([self.ppcc, path.name, "--check" if has_schedule or code else "--emit=ast"])
        if code is None:
            self.record(where, None if result.returncode == 0 else result.stderr)
        else:
            found = result.returncode == 1 and f"[{code}]" in result.stderr
            self.record(where, None if found else f"expected {code}, got:\n{result.stderr}")

    def console(self, where, text):
        """Returns what it should be."""
        shown = ""
        for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
            command, *expected = part.splitlines()
            words = shlex.split(command)
            assert words[0] in ("ppcc", "ppcc-profile", "ppcc-check-proof"), f"{where}: {words[0]} is no program of ppcc"
            result = self.run([str(Path(self.ppcc).with_name(words[0])), *words[1:]])
            actual = result.stdout + result.stderr
            lines = re.sub(r"\bin \d+\.\d+ s\b", "in ... s", actual).splitlines()
            shown += "\n".join([f"$ {command}", *lines[:MAX_LINES], *(["..."] if len(lines) > MAX_LINES else [])]) + "\n"
            problem = None if matches(expected, actual) else f"`{command}` printed:\n{actual}"
            self.record(where, problem)
        return shown

    def script(self, where, interpreter, text):
        result = self.run([interpreter], input=text)
        self.record(where, None if result.returncode == 0 else result.stdout + result.stderr)

    def page(self, page):
        blocks = [(line, text, self.block(f"{page.name}:{line}", info.split(), text)) for line, info, text in fenced_blocks(page)]
        if "PPCC_REWRITE" in os.environ:
            lines = page.read_text().splitlines(keepends=True)
            for line, text, shown in reversed(blocks):
                lines[line : line + text.count("\n")] = shown or text
            page.write_text("".join(lines))

    def block(self, where, words, text):
        """Returns what a block of commands should be."""
        if len(words) == 2 and words[1].startswith(("examples/", "test/")):
            self.record(where, None if (root / words[1]).read_text() == text else f"{words[1]} is another text")
        elif words == ["pp"] or words[:2] == ["pp", "error"]:
            self.schedule(where, words, text)
        elif words[:1] == ["console"]:
            return self.console(where, text)
        elif words[1:2] == ["run"]:
            self.script(where, {"python": sys.executable, "sh": "sh"}[words[0]], text)
        elif len(words) == 2:
            path = self.folder / words[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return None


def main():
    tool, *pages = sys.argv[1:]
    ppcc = str(Path(shutil.which(tool)).resolve())
    passed, failures = 0, []
    for name in pages:
        with tempfile.TemporaryDirectory() as folder:
            runner = Runner(ppcc, Path(folder))
            runner.page(Path(name))
            passed, failures = passed + runner.passed, failures + runner.failures
    assert passed or failures, "no examples"
    print("\n".join(failures))
    print(f"{passed} examples passed, {len(failures)} failed")
    return 1 if failures else 0


sys.exit(main())
