#!/usr/bin/env python3
"""Cuts random models into stages: cuts.py PPCC COUNT."""
import json
import random
import subprocess
import sys

# The head of a schedule, what a rank does, and how many stages its pipes have.
PLACED = [
    ("placement linear; microbatches 2;", "repeat 2 { F; } repeat 2 { B; }", lambda ranks: [ranks]),
    ("placement v; microbatches 2;", "repeat 2 { F(0); } repeat 2 { F(1); B(1); } repeat 2 { B(0); }", lambda ranks: [2 * ranks]),
    (
        "pipe a { placement linear; microbatches 0 .. 1; } pipe b { placement loop(2); microbatches 1 .. 2; }",
        "F(0); B(0); F(1); F(2); B(2); B(1);",
        lambda ranks: [ranks, 2 * ranks],
    ),
]


def layer(name, chance):
    if chance.random() < 0.4:
        inside = f"F: a @ comp -> {name} @ comm; B: a @ comp; cost F.{name} = {chance.randint(0, 5)};"
    else:
        inside = f"cost F = {chance.randint(0, 5)}; cost B = {chance.randint(0, 9)};"
    return f"layer {name} {{ static = 1; {inside} }}\n"


def runs(names, chance, most=6):
    """Some layers in a row, single ones and groups, and how many they are."""
    words, total = [], 0
    for _ in range(chance.randint(1, 3)):
        word, size = chance.choice(names), 1
        if most > 2 and chance.random() < 0.3:
            word, size = runs(names, chance, most - 2)
            word = f"({word})"
        count = chance.choice([None, *range(most + 1)])
        words.append(word if count is None else f"{word} * {count}")
        total += size if count is None else size * count
    return ", ".join(words), total


def sequence(names, chance):
    words, total = runs(names, chance)
    words += chance.choice(["", "", " by cost", f" by {chance.choice(names)}"])
    return f"layers {words};", total


def model(chance):
    names = "tuvw"[: chance.randint(1, 4)]
    parts = [sequence(names, chance) for _ in range(chance.randint(1, 3))]
    text = "".join(layer(name, chance) for name in names)
    for i, (words, _) in enumerate(parts):
        reads = f"reads p{i - 1};" if i else ""
        text += words if len(parts) == 1 else f"part p{i} {{ {words} {reads} }}\n"
    return text, sum(count for _, count in parts)


def main():
    ppcc, count = sys.argv[1], int(sys.argv[2])
    chance = random.Random(1)
    refused = 0

    def run(text, *words):
        return subprocess.run([ppcc, "-", *words], input=text, capture_output=True, text=True)

    for _ in range(count):
        text, layers = model(chance)
        head, acts, stages_of = chance.choice(PLACED)
        ranks, layout = chance.randint(1, 4), chance.choice([[], ["--layout=evenly"], ["--layout=by-cost"]])
        source = f"schedule s() {{ ranks {ranks}; {head}\nmodel {{\n{text}\n}}\non rank r {{ {acts} }} }}"
        done = run(source, *layout)
        if "[E0465]" in done.stderr:
            refused += 1
            continue
        assert done.returncode == 0, source + done.stderr
        static = json.loads(done.stdout).get("costs", {}).get("static", 0)
        reported = list(static.values()) if isinstance(static, dict) else [static]
        for i, stages in enumerate(stages_of(ranks)):
            row = reported[min(i, len(reported) - 1)]
            held = sum(row) if isinstance(row, list) else row * stages
            assert held == layers, f"{held} of {layers} layers\n{source}"
        again = run(done.stdout, "--from=json", "--emit=times")
        assert again.stdout and again.stdout == run(source, *layout, "--emit=times").stdout, source + again.stderr
    print(f"{count} models: {count - refused} cut into stages, {refused} with more parts than stages")


main()
