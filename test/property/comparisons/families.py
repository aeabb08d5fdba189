"""Programs taken from one for all M, and rolled ones, against those of single schedules: byte for byte."""

import json

from comparisons.proofs import numbers, range_of
from generate import for_all
from tools import diagnostic_codes, expect

COVERAGE = {"programs": 2, "families": 5}
TRANSPORTS = ["stream", "rendezvous", "buffered", "buffered:2", "posted", "stream-per-peer", "stream-per-edge"]


def compare(draw, tools, tally):
    case = for_all(draw)
    file, costs = tools.file("random.pp", case.source()), case.arguments(tools.folder)
    transports = [f"--transport={','.join(draw.subset(TRANSPORTS, 0.2) or ['stream'])}"]
    given = [*costs, *transports]
    preconnect = draw.pick([[], [], ["--preconnect=off"], ["--preconnect=on"]])
    given += preconnect + draw.pick([[], [], ["--comm-order=sweep"], ["--fuse=batch"]])
    done = tools.ppcc(file, *given, "--for=M", "-o", "family.json")
    tally["schedules"] += 1
    if done.returncode:
        tally[f"no family: {', '.join(sorted(set(diagnostic_codes(done))))}"] += 1
        return
    tally["families"] += 1
    same(tools, ["family.json", "--for=M"], "family.json", "a family read back")
    ranges = json.loads((tools.folder / "family.json").read_text())["families"]
    for m in numbers(draw):
        flat = tools.ppcc(file, *given, "--no-families", f"-DM={m}", "-o", "flat.json")
        taken = tools.ppcc("family.json", *transports, *preconnect, f"-DM={m}", "-o", "taken.json")
        expect((flat.returncode == 0) == (taken.returncode == 0) == (range_of(ranges, m)["verdict"] == "valid"),
               "another verdict of a family", f"M = {m}: {flat.stderr}{taken.stderr}")
        if flat.returncode:
            continue
        tally["programs"] += 1
        equal(tools, "flat.json", "taken.json", "another program of a family", m)
        rolled(tools, draw, file, given, m, tally)


def rolled(tools, draw, file, given, m, tally):
    for name, more in [("rolled.json", ["--no-families"]), ("quick.json", [])]:
        done = tools.ppcc(file, *given, *more, f"-DM={m}", "--rolled", "-o", name)
        expect(done.returncode == 0, "cannot be rolled", done.stderr)
    equal(tools, "rolled.json", "quick.json", "rolled in two ways", m)
    tools.ppcc("rolled.json", *(word for word in given if word.startswith(("--transport", "--preconnect"))), "-o", "unrolled.json")
    equal(tools, "flat.json", "unrolled.json", "another program when unrolled", m)
    digests = [json.loads((tools.folder / name).read_text())["digest"] for name in ("flat.json", "rolled.json")]
    expect(digests[0] == digests[1], "another digest when rolled", f"M = {m}")
    tally["rolled"] += 1


def same(tools, command, name, what):
    done = tools.ppcc(*command)
    expect(done.returncode == 0 and done.stdout == (tools.folder / name).read_text(), f"{what} differs", done.stderr)


def equal(tools, one, other, title, m):
    left, right = ((tools.folder / name).read_text().splitlines() for name in (one, other))
    if left != right:
        pairs = [pair for pair in zip(left, right) if pair[0] != pair[1]]
        expect(False, title, f"M = {m}\n" + "\n".join(f"{one}: {a[:300]}\n{other}: {b[:300]}" for a, b in pairs[:3]))
