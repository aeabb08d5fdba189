"""Programs and schedules that are written and read back, in every format."""

import json

import programs
from oracle.program import KINDS, text
from program_json import from_json
from tools import diagnostic_codes, expect, expect_equal

COVERAGE = {"programs": 2}
BUFFERED = "--transport=buffered"


def compare(draw, tools, tally):
    found = programs.program(draw, tools)
    if not found:
        return
    case, program, path = found
    tally["programs"] += 1
    if tools.ppcc(path, BUFFERED, "-o", "written.json").returncode:
        return  # It hangs, or needs another transport.
    written = json.loads((tools.folder / "written.json").read_text())
    expect_equal(rows(from_json(written)), rows(program), "other rows when read from JSON")
    again(tools, "written.json", [], "written.json", "JSON")
    for rolled in ([], ["--rolled"]):
        write(tools, "written.json", ["--emit=ir", *rolled], "text.ir")
        write(tools, "text.ir", [], "from_text.json")
        alike(tools, written, "from_text.json", "the text of a program")
        again(tools, "text.ir", ["--emit=ir", *rolled], "text.ir", "the text of a program")
        done = tools.ppcc("text.ir", "--emit=ir", "--passes=roll" if rolled else "--passes=unroll", "-o", "again.ir")
        expect(done.returncode == 0, "a text is refused", done.stderr)
        kept = [line for line in (tools.folder / "text.ir").read_text().splitlines() if not line.startswith('"transports"')]
        expect_equal((tools.folder / "again.ir").read_text().splitlines(), kept, "passes write another text")
        tally["texts"] += 1
    write(tools, "written.json", ["--rolled"], "rolled.json")
    again(tools, "rolled.json", [], "written.json", "rolled JSON")
    lists(tools, written, tally)
    schedules(tools, case, tally)


def rows(program):
    return [[(tuple(map(str, item)), item[0].phase) for item in rank] for rank in program.items]


def write(tools, source, options, name):
    done = tools.ppcc(source, BUFFERED, *options, "-o", name)
    expect(done.returncode == 0, f"cannot write {name}", done.stderr)


def same(tools, one, other):
    return (tools.folder / one).read_text() == (tools.folder / other).read_text()


def again(tools, source, options, wanted, what):
    write(tools, source, options, "again")
    expect(same(tools, "again", wanted), f"{what} differs when read back",
           lambda: difference((tools.folder / "again").read_text(), (tools.folder / wanted).read_text()))


def difference(one, other):
    return "\n".join(f"{a[:300]}\n{b[:300]}" for a, b in zip(one.splitlines(), other.splitlines()) if a != b)


def alike(tools, written, name, what):
    """Phases, files and sites may have other numbers; all else is equal."""
    other = json.loads((tools.folder / name).read_text())
    expect_equal(rows(from_json(other)), rows(from_json(written)), f"other rows in {what}")
    for key in sorted({*written, *other} - {"phases", "actions", "sites", "files"}):
        expect_equal(other.get(key), written.get(key), f"another `{key}` in {what}")


def lists(tools, written, tally):
    """Lists of actions, and CSV for PyTorch, which have no heads."""
    program = from_json(written)
    for form, options in [("actions", [BUFFERED]), ("torch-csv", [BUFFERED]), ("torch-csv-compute", ["--comm-order=none"])]:
        (tools.folder / "list").unlink(missing_ok=True)
        done = tools.ppcc("written.json", BUFFERED, f"--emit={form}", "-o", "list")
        if done.returncode:
            tally[f"no {form}"] += 1
            continue
        done = tools.ppcc("list", f"--from={form}", "--emit=json", *options)
        if done.returncode:  # Some programs do not follow from their lists.
            tally[f"{form} refused: {diagnostic_codes(done)[0]}"] += 1
            continue
        tally[form] += 1
        wanted = program.without_messages() if form == "torch-csv-compute" else program
        expect_equal(text(from_json(json.loads(done.stdout))).splitlines(), text(wanted).splitlines(), f"other rows from {form}")


def schedules(tools, case, tally):
    """One style, and what people read of a program."""
    tools.file("styled.pp", case.source())
    source = case.arguments(tools.folder)
    expect(tools.ppcc("fmt", "styled.pp").returncode == 0, "cannot be formatted")
    once = (tools.folder / "styled.pp").read_text()
    tools.ppcc("fmt", "styled.pp")
    expect_equal((tools.folder / "styled.pp").read_text().splitlines(), once.splitlines(), "the style is not stable")
    two = [tools.ppcc(name, *source, "--comm-order=none", "--emit=actions") for name in ("random.pp", "styled.pp")]
    expect_equal(two[1].stdout, two[0].stdout, "another program in another style")
    done = tools.ppcc("decompile", "random.pp", *source, "-o", "people.pp")
    if done.returncode:
        expect(len(case.head.kinds) > len(KINDS), "cannot be decompiled", done.stderr)
        return
    tally["decompiled"] += 1
    people = tools.ppcc("people.pp", "--comm-order=none", "--emit=actions")
    expect_equal(people.stdout, two[0].stdout, "another program when decompiled")
