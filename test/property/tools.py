"""The binaries under test, and what is said of a disagreement."""

import pathlib
import re
import subprocess
import tempfile
from fractions import Fraction

SECONDS = 60
CODE = re.compile(r"\berror: .*\[(E\d{4})\]")


class Mismatch(Exception):
    """The compiler and the oracle, or two ways of the compiler, disagree. Those with one title count as the same."""

    def __init__(self, title, detail=""):
        super().__init__(title)
        self.title, self.detail = title, detail


class Tools:
    def __init__(self, binaries):
        self.bin = pathlib.Path(binaries).resolve()
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)
        self.commands = []  # Since the last call of `begin`.

    def begin(self):
        self.commands = []

    def file(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def run(self, tool, *args, stdin=None, exit_codes=(0, 1), seconds=SECONDS):
        """Runs one of the binaries, in the folder. A crash, no end, or a report of a sanitizer is a mismatch."""
        words = [str(arg) for arg in args]
        self.commands.append(" ".join([tool, *words]) + ("" if stdin is None else " < input"))
        try:
            done = subprocess.run([str(self.bin / tool), *words], input=stdin, capture_output=True, text=True, timeout=seconds,
                                  cwd=self.folder)
        except subprocess.TimeoutExpired:
            raise Mismatch(f"{tool} does not end", f"after {seconds} s") from None
        if done.returncode not in exit_codes or "runtime error" in done.stderr or "Sanitizer" in done.stderr:
            raise Mismatch(f"{tool} ends with {done.returncode}", done.stderr)
        return done

    def ppcc(self, *args, **more):
        return self.run("ppcc", *args, **more)


def fraction(text):
    """A decimal number, exactly."""
    return Fraction(text)


def diagnostic_codes(done):
    return CODE.findall(done.stderr)


def expect(condition, title, detail=""):
    if not condition:
        raise Mismatch(title, detail() if callable(detail) else str(detail))


def expect_equal(got, wanted, title):
    """Of values that can be compared; shows the first place where lists differ."""
    if got == wanted:
        return
    if isinstance(got, list) and isinstance(wanted, list) and len(got) == len(wanted):
        got, wanted = next(pair for pair in zip(got, wanted) if pair[0] != pair[1])
    raise Mismatch(title, f"ppcc:   {got}\noracle: {wanted}")
