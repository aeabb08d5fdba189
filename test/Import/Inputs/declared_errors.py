"""Breaks the declarations of a program in JSON and looks at what ppcc says."""
import json
import subprocess
import sys

ppcc, path = sys.argv[1:]
program = json.load(open(path))
number = {kind["mnemonic"]: i for i, kind in enumerate(program["kinds"])}


def compiled(change, *options):
    copy = json.loads(json.dumps(program))
    change(copy)
    return subprocess.run([ppcc, "--from=json", "-", *options], input=json.dumps(copy), capture_output=True, text=True)


def errors(change):
    run = compiled(change, "--check")
    assert run.returncode == 1, run.stderr
    return [line.split("error: ")[1] for line in run.stderr.splitlines() if "error: " in line]


def kind(name, **values):
    return lambda copy: copy["kinds"][number[name]].update(values)


def microbatch(mnemonic, value):
    def change(copy):
        for row in copy["actions"][0]:
            if row[0] == number[mnemonic]:
                row[3] = value
    return change


for change in [kind("R", per="chunk"), kind("R", lane="a b"), kind("R", lane=""), kind("R", after=["F"]),
               kind("R", after=[["Q"]]), kind("R", required=1), kind("R", restores="Q"), kind("R", collective="outside"),
               kind("R", collective="all"), kind("R", mnemonic="R1"), kind("STEP", mnemonic="R"),
               microbatch("STEP", 0), microbatch("R", -1)]:
    print(errors(change)[0])

plain = compiled(lambda copy: None, "--emit=ir")
ruled = compiled(kind("F", after=[["B"], ["B"], ["B"]], restores="B"), "--emit=ir")
assert plain.returncode == ruled.returncode == 0, ruled.stderr
print("the same" if plain.stdout == ruled.stdout else "another program")
