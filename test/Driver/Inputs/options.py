"""Every option of every command with every other command, and with every format: what does not apply is wrong usage, and
what is accepted beside a format changes what is written."""
import re
import subprocess

VALUES = {
    "N": "20", "FILE": "option-file", "NAME=VALUE": "P=2", "PIPELINE": "verify", "PASS,...": "preconnect", "LAYERS": "t",
    "RULE": "recompute", "FILE[:NAME]": "gpt", "TEXT": "0..3", "NAME": "x", "NAME=VALUE,...": "P=2,4", "limit=A..B": "limit=1..2",
    "SCHEDULE": "gpipe", "PLACEMENT": "linear", "REGEX": "(F)", "NAME,...": "kind", "NAME=MNEMONIC": "a=F", "DEVICE": "cpu",
}


def run(*arguments):
    try:
        return subprocess.run(arguments, capture_output=True, encoding="utf-8", errors="replace", stdin=subprocess.DEVNULL, timeout=60)
    except subprocess.TimeoutExpired:
        return None  # It serves.


def options_of(command):
    listed = run(*command, "--list-options")
    assert listed.returncode == 0, listed
    found = {}
    for line in listed.stdout.splitlines():
        names, meta, choices, _ = line.split("\t")
        value = (choices.split() or [VALUES[meta]])[0] if meta else None
        for name in names.split(","):
            if name.startswith("-"):
                found[name] = value
    return found


def main():
    names = re.search(r"^Commands .*\n((?:  .*\n)+)", run("ppcc", "--help").stdout, re.M).group(1)
    commands = [("ppcc",), *(("ppcc", line.split()[0]) for line in names.splitlines())]
    options = {command: options_of(command) for command in commands}
    every = {name: value for command in commands for name, value in options[command].items()}
    refused = shown = 0
    for command in commands:
        text = run(*command, "--help-all").stdout
        for name, value in every.items():
            if name in options[command]:
                assert re.search(rf"^ .*(?<![\w-]){name}\b", text, re.M), (command, name, "is not in the help")
                shown += 1
                continue
            done = run(*command, "gpipe", name, *([value] if value else []))
            assert done.returncode == 2 and not done.stdout, (command, name, done)
            first, hint = done.stderr.splitlines()
            assert f"unknown option {name};" in first and re.search(" (has|have) it$", first), first
            assert re.search(r"`ppcc( [a-z-]+)?`", first), first
            assert " ".join(command) in hint, hint
            refused += 1
    print(f"{len(commands)} commands, {len(every)} options: each is in the help, or refused with who has it")
    assert refused > 500 and shown > 300, (refused, shown)

    # Formats.
    forms = next(line for line in run("ppcc", "--list-options").stdout.splitlines() if line.startswith("--emit\t")).split("\t")[2].split()
    choices = {
        "--time-range": "3..9", "--preset": "column", "--width": "150", "--memory": None, "--arrows": None, "--title": "a title", "--no-legend": None,
        "--font-size": "14", "--torch-version": "2.9", "--cpp-symbol": "another", "--print-rank": "1", "--print-microbatches": "0..2",
        "--rolled": None, "--torch-fsdp": None, "--preconnect": "off", "--no-sites": None,
    }
    base = ["ppcc", "one_f_one_b", "-D", "P=3", "-D", "M=12", "--cost", "memory.F=1"]
    taken = {}
    for form in forms:
        model = ["--model", "megatron_moe"] if form.startswith("nodes") else []
        if form == "ast":  # It stops before there is anything that these are about.
            continue
        plain = run(*base, *model, f"--emit={form}")
        assert form.startswith("nodes") or plain.returncode == 0, plain
        for name, value in choices.items():
            done = run(*base, *model, f"--emit={form}", name, *([value] if value else []))
            if done.returncode == 2:
                assert f"{name}: it is for" in done.stderr or "cannot be restricted to a part" in done.stderr or "--emit=ast" in done.stderr, done.stderr
                continue
            assert done.returncode == plain.returncode, (form, name, done)
            taken.setdefault(name, []).append(form)
            # C++ always has loops; what computes alone differs by version where there are groups.
            if done.returncode == 0 and (form, name) not in {("cpp", "--rolled"), ("torch-csv-compute", "--torch-version")}:
                assert done.stdout != plain.stdout, (form, name, "changes nothing")
    for name, known in taken.items():
        print(f"{name}: {' '.join(known)}")
    assert set(taken) == set(choices)


main()
