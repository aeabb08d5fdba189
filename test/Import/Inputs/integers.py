"""Gives each integer of a program in JSON and in IR values at the ends of its range, beyond them, and of other kinds."""
import json
import subprocess
import sys

ppcc = sys.argv[1]
rolled = subprocess.run([ppcc, "one_f_one_b", "-D", "P=2", "-D", "M=12", "--rolled", "--preconnect=on"],
                        capture_output=True, text=True, check=True).stdout
MAX_INT32, STAGES, MICROBATCHES = 0xFFFFFFFE, 0xFFFE, 0xFFFFFFFE
# Where it stands, the least and the most. Of rows: the first send of rank 0.
row = next(i for i, cells in enumerate(json.loads(rolled)["actions"][0]) if cells[4] != -1)
FIELDS = [
    (["version"], 1, 3),
    (["ranks"], 1, 1 << 20),
    *((["actions", 0, row, column], minimum, maximum) for column, (minimum, maximum) in enumerate([
        (0, 255), (0, 255), (0, STAGES - 1), (-1, MICROBATCHES - 1), (-1, STAGES - 1), (0, 32767), (-1, MAX_INT32),
        (0, MAX_INT32)])),
    *((["sites", 1, column], 0, MAX_INT32) for column in range(4)),
    (["pipes", 0, "microbatches", 0], 0, MICROBATCHES),
    (["pipes", 0, "microbatches", 1], 0, MICROBATCHES),
    (["pipes", 0, "rank_of_stage", 1], 0, (1 << 20) - 1),
    (["preconnect", 0, 0], 0, (1 << 20) - 1),
    (["preconnect", 0, 1], 0, (1 << 20) - 1),
    (["loops", 0, 0, 0], 0, 0xFFFFFFFF // 4),
    (["loops", 0, 0, 1], 1, 0xFFFFFFFF // 4),
    (["loops", 0, 0, 2], 1, 0xFFFFFFFF // 4),
    (["loops", 0, 0, 3], -0x7FFFFFFF, 0x7FFFFFFF),
    (["peak_activations", 0], 0, 0xFFFFFFFF),
]
NOT_INTEGERS = ["1.5", '"1"', "null", "true", "[]"]
HUGE = [1 << 63, -(1 << 63), 1 << 64]


def check(tool, name, text, refused):
    done = subprocess.run(tool, input=text, capture_output=True, text=True)
    if done.returncode not in (0, 1) or done.returncode == 0 and refused or bool(done.returncode) != ("error:" in done.stderr):
        sys.exit(f"{name}: exit status {done.returncode}, {done.stderr[:500]}")


def set_in(program, path, value):
    for key in path[:-1]:
        program = program[key]
    program[path[-1]] = value


tried = 0
for path, minimum, maximum in FIELDS:
    def attempt(token, refused):
        global tried
        copy = json.loads(rolled)
        set_in(copy, path, "@@")
        check([ppcc, "-", "--from=json", "--check"], f"{path}: {token}", json.dumps(copy).replace('"@@"', token), refused)
        tried += 1

    for value in minimum, maximum:
        attempt(str(value), False)
    for value in [minimum - 1, maximum + 1] + [value for value in HUGE if not minimum <= value <= maximum]:
        attempt(str(value), True)
    for token in NOT_INTEGERS:
        attempt(token, True)

# Keys that are missing, or there twice.
NEEDED = ["format", "version", "schedule", "params", "ranks", "backward", "kinds", "phases", "pipes", "files", "sites",
          "columns", "actions"]
for key in json.loads(rolled):
    copy = json.loads(rolled)
    value = json.dumps(copy.pop(key))
    check([ppcc, "-", "--from=json", "--check"], f"no {key}", json.dumps(copy), key in NEEDED)
    if key in NEEDED or key in ("loops", "preconnect", "peak_activations", "costs"):
        twice = rolled.rstrip().removesuffix("}") + f', "{key}": {value}}}'
        check([ppcc, "-", "--from=json", "--check"], f"two {key}", twice, True)
    tried += 1

IR = """program {{"ranks": 2, "pipes": [{{"name": "p", "microbatches": [0, 2], "rank_of_stage": [0, 1, 0], "skip_edges": [[0, 2]]}}],
  "files": ["a.pp"], "sites": [[-1, 0, 0, 0], [0, 3, 4, 0]]}}
rank 0 {{ 0F0 0SEND_F0>{peer} {stage}F{microbatch}@{at} loop {turns} advance {advance} {{ 2F0 }} }}
rank {last} {{ 1F0 }}
"""
VALID = dict(peer=2, stage=0, microbatch=1, at=1, turns=1, advance=0, last=1)
check([ppcc, "-", "--check", "--passes=unroll"], "IR", IR.format(**VALID), False)
for name in VALID:
    for token in ["-1", "1.5", '"1"', "", *map(str, HUGE), "4294967295", "4294967296", "4294967299"]:
        text = IR.format(**{**VALID, name: token})
        check([ppcc, "-", "--check", "--passes=unroll"], f"IR {name}: {token}", text, (name, token) != ("advance", "-1"))
        tried += 1
print(f"{tried} tried")
