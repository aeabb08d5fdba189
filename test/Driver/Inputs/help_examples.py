"""Runs the examples of each command's help in this folder. Those of `serve` do not end, and those of `lsp` are none."""

import re
import shlex
import subprocess


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=240)


names = re.findall(r"^  ([a-z-]+)  ", run("ppcc", "--help").stdout.split("Commands")[1].split("\n\n")[0], re.M)
commands = examples = ran = 0
for name in names:
    text = run("ppcc", name, "--help").stdout
    assert len(text.splitlines()) <= 60 and max(map(len, text.splitlines())) <= 110, (name, text)
    found = re.findall(r"^  (ppcc .*)$", text.partition("Examples:")[2], re.M)
    assert len(found) == (0 if name == "lsp" else 2), (name, found)
    commands += bool(found)
    for example in found:
        examples += 1
        if name != "serve":
            done = run(*shlex.split(example))
            assert done.returncode == 0 and "error" not in done.stderr, (example, done)
            ran += 1
print(f"{commands} commands, {examples} examples, {ran} of them run")
