"""Gives ppcc texts with control characters in all places, and looks for them in all that it writes."""

import json
import re
import subprocess
import sys

CONTROL_CHARACTERS = "\x1b[2J\x9b\x7f\u202e\u2066\u061c\na.pp:1:1: error: forged"
RAW = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufffd]|^a.pp:1:1: error: forged", re.M)
OF_PICTURES = re.compile("\x1b\\[(38;5;16;48;5;)?[0-9]+m")
wrong = 0


def run(*command, shows=None, code=0, text=None):
    """Runs a command, which shows its names escaped, unless it shows none."""
    global wrong
    done = subprocess.run(command, capture_output=True, input=(text or "").encode(), timeout=60)
    out = OF_PICTURES.sub("", (done.stdout + done.stderr).decode(errors="replace"))
    found = RAW.search(out)
    if found or done.returncode != code or (shows and shows not in out):
        wrong += 1
        print(f"{command}: exit status {done.returncode}, found {found and ascii(found[0])}:\n{ascii(out)[:600]}")
    return done.stdout.decode()


def write(name, text):
    with open(name, "w", newline="") as file:
        file.write(text)
    return name


HEAD = "ranks 1; microbatches 1; placement linear; on rank r { F; B; }"
ESCAPED = r"\x1B[2J\u{9B}\x7F\u{202E}"

# Diagnostics: a string with an escape, a line of the source, the name of a file, a value of the command line.
run("ppcc", write("require.pp", 'schedule s() { require false, "no\\n' + CONTROL_CHARACTERS.replace("\n", "\\n") + f'"; {HEAD} }}'), code=1, shows=ESCAPED)
for form in ("text", "json"):
    run("ppcc", write("line.pp", "// x\nschedule s() { ranks x" + CONTROL_CHARACTERS.replace("\n", "") + "; }"), f"--diagnostics-format={form}", code=1)
    run("ppcc", write("name\x1b\u202e.pp", "schedule s() { ranks x; }"), f"--diagnostics-format={form}", code=1)
    run("ppcc", "none" + CONTROL_CHARACTERS, f"--diagnostics-format={form}", code=1)
run("ppcc", "gpipe", "-D", f"x{CONTROL_CHARACTERS}=1", code=1, shows=ESCAPED)
run("ppcc", "gpipe", f"--emit={CONTROL_CHARACTERS}", code=2, shows=ESCAPED)
run("ppcc", "-", text=f'import "{CONTROL_CHARACTERS.splitlines()[0]}";', code=1, shows=ESCAPED)

# A program of somebody else.
program = json.loads(run("ppcc", "gpipe", "-D", "P=2", "-D", "M=2"))
program["schedule"] = CONTROL_CHARACTERS
program["params"] = {"P" + CONTROL_CHARACTERS: "1" + CONTROL_CHARACTERS, "M": 1}
program["phases"] = [phase and phase + CONTROL_CHARACTERS for phase in program["phases"]]
program["files"] = [CONTROL_CHARACTERS + file for file in program["files"]]
program["pipes"][0]["name"] = CONTROL_CHARACTERS
write("program.json", json.dumps(program))
for emit in "timeline", "report", "report-json", "ir", "actions", "times", "trace", "json":
    run("ppcc", "program.json", f"--emit={emit}")
run("ppcc", "program.json", "--emit=timeline", "--color=always", shows=ESCAPED)
run("ppcc", "program.json", "--emit=report", shows=ESCAPED)
for style in "text", "csv", "markdown":
    run("ppcc", "compare", "program.json", "gpipe", f"--format={style}", shows=ESCAPED)
program["actions"][0].reverse()
write("reversed.json", json.dumps(program))
run("ppcc", "reversed.json", "--check", code=1)
run("ppcc", "diff", "program.json", "one_f_one_b", "-D", "P=2", "-D", "M=2", shows=ESCAPED)

# What is escaped in the texts of programs is read back.
for emit in "json", "ir":
    again = json.loads(run("ppcc", "-", text=run("ppcc", "program.json", f"--emit={emit}")))
    for key in "schedule", "phases", "pipes":
        if again[key] != program[key]:
            wrong += 1
            print(f"{emit} changes {key}: {again[key]!r}")
sys.exit(wrong != 0)
