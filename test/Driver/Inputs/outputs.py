"""Runs command lines whose outputs are one file; nothing may be written."""
import os
import subprocess

PAIRS = [
    ("new", "new"),
    ("new", "./new"),
    ("d/new", "e/new"),
    ("old", "hard"),
    ("old", "soft"),
    ("none", "dangling"),
    ("old", os.path.abspath("old")),
    ("/dev/stdout", "/dev/fd/1"),
    ("/proc/self/fd/1", "/dev/stdout"),
]
STREAMS = [("-", "/dev/stdout"), ("-", "-"), ("-", "old")]  # The last with standard output in `old`.
COMMANDS = [["prove", "gpipe", "-D", "P=2", "--certificate"], ["gpipe", "--depfile"]]


def run(arguments, **streams):
    return subprocess.run(["ppcc", *arguments], stderr=subprocess.PIPE, **{"stdout": subprocess.PIPE, **streams})


def state():
    return {path: os.stat(path).st_ino if os.path.exists(path) else None for path in ("new", "old", "d/new", "none", "a.json")}


refused, before = 0, state()
text = open("old").read()
for command in COMMANDS:
    for first, second in PAIRS + (STREAMS if command[0] == "prove" else []):
        streams = {"stdout": open("old", "a")} if (first, second) == ("-", "old") else {}
        done = run([*command, second, "-o", first], **streams)
        assert done.returncode == 2, (command, first, second, done)
        assert b"are the same file" in done.stderr, done.stderr
        assert not done.stdout and state() == before, (command, first, second)
        refused += 1
for arguments, streams in [
    (["gpipe", "-o", "old"], {"stderr": open("old", "a")}),
    (["gpipe", "-o", "/dev/stderr", "--timeline"], {}),
    (["synthesize", "--placement=linear", "-D", "P=2", "-D", "M=2", "--format=json", "-o", "old"], {"stdout": open("old", "a")}),
]:
    done = subprocess.run(["ppcc", *arguments], **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams})
    assert done.returncode == 2 and state() == before, (arguments, done)
    refused += 1
assert open("old").read().startswith(text)
print(refused, "command lines are refused, and nothing was written")

taken = [
    ["prove", "gpipe", "-D", "P=2", "-o", "/dev/null", "--certificate", "/dev/null"],
    ["prove", "gpipe", "-D", "P=2", "--certificate", "a.json"],
    ["prove", "gpipe", "-D", "P=2", "-o", "old", "--certificate", "d/old"],
    ["gpipe", "-o", "a.json", "--depfile", "a.d", "--timeline"],
    ["gpipe", "-o", "/dev/stderr"],
    ["gpipe", "--timeline"],
]
for arguments in taken:
    done = run(arguments)
    assert done.returncode == 0, (arguments, done)
print(len(taken), "are taken")
