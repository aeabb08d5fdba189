#!/usr/bin/env python3
"""Writes a program on a transport as a model for SPIN, which searches every interleaving of its queues: an invalid end state is a
deadlock, a failed assertion a message that its receiver does not expect.

    ppcc SCHEDULE -o program.json
    python3 test/property/spin_model.py program.json rendezvous >model.pml
    spin -a model.pml && gcc -DSAFETY -o pan pan.c && ./pan

`--search` does the last line, too, with tcc, and prints safe, deadlock or unmatched. Each queue of a rank is a process, each pair of ranks that
exchanges messages in a direction a channel. Messages of a batch begin together and end in any order, but in theirs where they share
a channel. What an action waits for on its own rank is that of oracle/run.py; what messages wait for is up to SPIN."""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from oracle.run import TRANSPORTS, EventGraph
from program_json import from_json
from tools import Mismatch

MAX_ACTIONS = 10_000
MAX_PER_BYTE = 250  # SPIN counts processes, channels and what is in a channel in bytes.
SECONDS = 60


class TooLarge(Exception):
    """The model is too large for SPIN, or has actions that the model does not know."""


class Model:
    """The queues and channels of a program."""

    def __init__(self, program, transport):
        self.program = program
        self.transport = transport if program.has_messages() else None
        self.graph = EventGraph(program, self.transport)
        if len(program.row_ids) > MAX_ACTIONS:
            raise TooLarge(f"{len(program.row_ids)} actions, more than {MAX_ACTIONS}")
        for key in program.row_ids:
            kind = program.row(key).kind
            if not kind.is_message and (kind.lane != "compute" or kind.collective):
                raise TooLarge(f"{program.row(key)} runs beside the compute actions, or together with other ranks")
        self.labels = {}  # A number for each message.
        self.sends = {}  # By channel: how many it carries.
        self.items = {}  # By queue: the items of which it has rows.
        self.position = {}  # Of each item: the queue whose process runs it, and its number there.
        for key in program.row_ids:
            if program.row(key).kind.is_message:
                self.labels.setdefault(program.label(key), len(self.labels))
                channel = program.ends(key)
                self.sends[channel] = self.sends.get(channel, 0) + (program.row(key).kind.role == "send")
            item = tuple(program.item_rows[key])
            items = self.items.setdefault((key[0], self.graph.queue(key)), [])
            if item not in items[-1:]:
                items.append(item)
            if key == item[0]:
                queue = key[0], self.graph.queue(key)
                self.position[item] = queue, sum(self.position[one][0] == queue for one in items if one in self.position) + 1
        self.waits = {item: self.find_waits(item) for item in self.position}
        self.awaited = {one for waits in self.waits.values() for one in (waits or {}).items()}  # Queues and counts that are read.
        for queue, items in self.items.items():
            self.awaited |= {self.position[item] for item in items if self.position[item][0] != queue}
        counts = {
            "queues": len(self.items),
            "pairs of ranks": len(self.sends),
            "messages under way between two ranks": max(map(self.capacity, self.sends), default=0),
            "messages in a group": max((len(item) for item in self.position), default=0),
        }
        for what, count in counts.items():
            if count > MAX_PER_BYTE:
                raise TooLarge(f"{count} {what}, more than {MAX_PER_BYTE}")

    def capacity(self, channel):
        """0 for one whose send waits for its receive."""
        capacity = TRANSPORTS[self.transport].capacity
        return 0 if capacity is None else min(capacity, max(self.sends[channel], 1))

    def text(self):
        lines = ["hidden int got;", "chan nowhere = [0] of { int };", "chan nothing = [0] of { int };"]
        lines += [f"chan {channel_name(channel)} = [{self.capacity(channel)}] of {{ int }};" for channel in self.sends]
        lines += [f"short {queue_name(queue)}_done;" for queue in self.items]
        left = [channel for channel in self.sends if self.capacity(channel)]
        if left or not self.items:  # Nothing may be left in a channel when all others have ended; the first process is the oldest.
            lines += ["init {", "  (_nr_pr == 1);", *(f"  assert(empty({channel_name(channel)}));" for channel in left), "}"]
        for queue, items in self.items.items():
            lines += [f"active proctype {queue_name(queue)}() {{"]
            widest = max((len(item) for item in items if self.position[item][0] == queue), default=0)
            lines += [f"  chan open{member};" for member in range(widest)] if widest > 1 else []
            for item in items:
                cells = " ".join(str(self.program.row(key)) for key in item)
                step = self.step(queue, item)
                lines += [f"  /* {cells} */", *([f"  atomic {{ {step} }}"] if step else [])]
            lines += ["  skip", "}"]
        return "\n".join(lines) + "\n"

    def step(self, queue, item):
        """What the process of a queue does of an item; fewer steps are fewer states."""
        leader, number = self.position[item]
        if leader != queue:  # Another process runs the batch.
            return f"({queue_name(leader)}_done >= {number});"
        waits, parts = self.waits[item], []
        if waits is None:
            parts.append("false;")
        elif waits:
            parts.append(f"({' && '.join(f'{queue_name(other)}_done >= {count}' for other, count in waits.items())});")
        messages = [key for key in item if self.program.row(key).kind.is_message]
        if len(messages) == 1:
            parts.append(f"{channel_name(self.program.ends(messages[0]))}{self.transfer(messages[0])}")
        elif messages:
            parts.append(self.batch(messages))
        if (leader, number) in self.awaited:
            parts.append(f"{queue_name(leader)}_done = {number};")
        return " ".join(parts)

    def find_waits(self, item):
        """What must have ended before an item begins, beside what its process has run before: of queues so many items; None for data
        that never comes."""
        if any(key in item for key, *_ in self.graph.missing):
            return None
        leader, number = self.position[item]
        counts = {}
        for key in item:
            for (other, _), _ in self.graph.predecessors[key, 0]:
                queue, count = self.position[tuple(self.program.item_rows[other])]
                if queue != leader or count >= number:
                    counts[queue] = max(counts.get(queue, 0), count)
        return counts

    def transfer(self, key):
        number = self.labels[self.program.label(key)]
        return f"!{number};" if self.program.row(key).kind.role == "send" else f"?got; assert(got == {number});"

    def batch(self, keys):
        def side(key):
            return self.program.row(key).kind.role, self.program.ends(key)

        def closed(key):  # Two, so that nothing goes from one batch to another through them.
            return "nowhere" if self.program.row(key).kind.role == "send" else "nothing"

        sides = [side(key) for key in keys]
        lines = []
        for i, key in enumerate(keys):
            lines.append(f"open{i} = {closed(key) if sides[i] in sides[:i] else channel_name(self.program.ends(key))};")
        lines.append("do")
        for i, key in enumerate(keys):
            after = [j for j in range(i + 1, len(keys)) if sides[j] == sides[i]]
            opens = f" open{after[0]} = {channel_name(self.program.ends(key))};" if after else ""
            lines.append(f":: open{i}{self.transfer(key)} open{i} = {closed(key)};{opens}")
        lines.append(f":: ({' && '.join(f'open{i} == {closed(key)}' for i, key in enumerate(keys))}); break")
        return "\n    ".join([*lines, "od;"])


def channel_name(channel):
    return "from{}to{}".format(*channel)


def queue_name(queue):
    return f"rank{queue[0]}_{queue[1].replace(' ', '_')}"


def search(folder, model):
    """What SPIN finds in a model: safe, deadlock or unmatched."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        place = pathlib.Path(name)
        (place / "model.pml").write_text(model)
        for command in (["spin", "-a", "model.pml"], ["tcc", "-w", "-DSAFETY", "-DVECTORSZ=8192", "-o", "pan", "pan.c"],
                        ["./pan", "-w16", "-m100000"]):
            done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=SECONDS)
            if done.returncode != 0:
                raise Mismatch(f"{command[0]} ends with {done.returncode}", done.stdout + done.stderr)
    errors = re.search(r"errors: (\d+)", done.stdout)
    if errors and errors[1] == "0" and "Search not completed" not in done.stdout and "depth too small" not in done.stdout:
        return "safe"
    witness = re.match(r"pan:1: (invalid end state|assertion violated)", done.stdout.lstrip())
    return {"invalid": "deadlock", "asserti": "unmatched"}[witness[1][:7]] if witness else f"pan: {done.stdout}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="its JSON, without loops; - for standard input")
    parser.add_argument("transports", nargs="+", metavar="TRANSPORT", help=", ".join(TRANSPORTS))
    parser.add_argument("--search", action="store_true", help="print what SPIN finds: safe, deadlock or unmatched")
    options = parser.parse_args()
    if unknown := set(options.transports) - set(TRANSPORTS):
        parser.error(f"unknown transport {', '.join(unknown)}")
    text = sys.stdin.read() if options.program == "-" else pathlib.Path(options.program).read_text()
    program = from_json(json.loads(text))
    for transport in options.transports:
        try:
            model = Model(program, transport).text()
        except TooLarge as error:
            sys.exit(f"spin_model.py: error: {error}")
        if options.search:
            print(f"{transport}: {search(None, model)}")
        else:
            print(model, end="")


if __name__ == "__main__":
    main()
