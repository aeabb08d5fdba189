#!/usr/bin/env python3
"""The program `ppcc-profile`: the times of actions from the traces of a profiler, as a file for `ppcc --costs` or as a model.

It needs the standard library only, so that packages without the wheel install this file as a program.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import statistics
import sys
import zlib
from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, NamedTuple

MAX_BYTES = 2 << 30  # Of a trace.
MAX_STAGES = 65534
MAX_TIME = 10**9  # Microseconds.
MAX_NUMBER = 10**18
UNITS = {"us": 1, "ms": 1_000, "s": 1_000_000}
ACTION = "^([0-9]+)([A-Z]+)[0-9]+$"
MESSAGE = re.compile(r"([0-9]+)(SEND|RECV)_([A-Z]+)([0-9]+)(?:[<>]([0-9]+))?")

Times = dict[int, list[Decimal]]
"""Durations in microseconds, by stage."""


class TraceError(Exception):
    """What is wrong with a trace or with what was found in them, for users."""


class Event(NamedTuple):
    """An event of a trace that has a beginning and an end; times are in microseconds."""

    name: str
    duration: Decimal
    start: Decimal | None
    waited: Decimal | None
    """`waited` among the arguments of a receive: for so long nothing came."""
    place: str
    category: str = ""
    process: str = ""


class Receive(NamedTuple):
    posted: Decimal
    waited: Decimal
    """Since then the receiver waited."""
    end: Decimal


class Message(NamedTuple):
    sends: list[Decimal]
    """One start for each step, in their order."""
    receives: list[Receive]


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(
        "ppcc-profile",
        allow_abbrev=False,
        description="Takes the times of actions from the traces of a profiler, and writes them as a file for `ppcc --costs`, "
        "or as a model.",
    )
    result.add_argument("traces", metavar="TRACE", nargs="+", help="traces in Chrome's JSON, one or more a rank; .gz is unpacked")
    result.add_argument("-o", "--output", metavar="FILE", default="-", help="the output; - is standard output (default)")
    add_names(result, ACTION, "stage,kind")
    result.add_argument("--unit", choices=UNITS, default="ms", help="the unit of time of the costs (default: ms)")
    result.add_argument(
        "--emit",
        choices=["costs", "model"],
        default="costs",
        help="costs, for `ppcc --costs` (default), or model, a model and a cluster in the language",
    )
    return result


def add_names(result: argparse.ArgumentParser, match: str, groups: str) -> None:
    """Adds the options for how events name actions, with these defaults."""
    help = "events whose names hold this regular expression of Python; by default such as 3F12"
    result.add_argument("--match", metavar="REGEX", default=match, help=help)
    help = f"what the groups of the expression are, in order: stage, kind, or anything else to pass over (default: {groups})"
    result.add_argument("--groups", metavar="NAME,...", default=groups, help=help)
    help = "the action that a name of the kind stands for: Forward=F"
    result.add_argument("--kind", metavar="NAME=MNEMONIC", action="append", default=[], help=help)


def events_of(path: str) -> Iterator[Event]:
    """The complete events of a trace. Raises TraceError, also for what cannot be read."""
    try:
        with open(path, "rb") as raw, gzip.open(raw) if path.endswith(".gz") else raw as file:
            text = file.read(MAX_BYTES + 1)
        if len(text) > MAX_BYTES:
            raise TraceError(f"{path}: larger than the limit of {MAX_BYTES} bytes")
        trace = json.loads(text, parse_float=Decimal, parse_constant=lambda name: name)
    except (OSError, EOFError, zlib.error) as error:
        raise TraceError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    except (ValueError, RecursionError, ArithmeticError) as error:
        raise TraceError(f"{path}: invalid JSON: {error}") from None
    events = trace.get("traceEvents") if isinstance(trace, dict) else trace
    if not isinstance(events, list):
        raise TraceError(
            f"{path}: neither an object with `traceEvents` nor a list of events, as the PyTorch profiler's `export_chrome_trace` writes"
        )
    for number, event in enumerate(events):
        place = f"{path}: event {number}"
        if not isinstance(event, dict):
            raise TraceError(f"{place} is not an object")
        name, duration, arguments = event.get("name"), event.get("dur"), event.get("args")
        if event.get("ph") != "X" or not isinstance(name, str) or duration is None:
            continue
        time = microseconds(duration)
        if time is None or time < 0:
            raise TraceError(f"{place}, `{name}`: `dur` must be a number from 0 to 10^9")
        waited = microseconds(arguments.get("waited")) if isinstance(arguments, dict) else None
        yield Event(name, time, microseconds(event.get("ts")), waited, place, str(event.get("cat", "")), str(event.get("pid", "")))


def microseconds(value: Any) -> Decimal | None:
    """The number; nothing where it is none, or so large that no time of a profiler is."""
    if isinstance(value, (int, Decimal)) and not isinstance(value, bool) and -MAX_NUMBER < value < MAX_NUMBER:
        return Decimal(value)
    return None


class Profile:
    """The times of actions and of messages, by stage."""

    def __init__(self, match: re.Pattern[str], names: list[str], mnemonics: dict[str, str], unit: str = "ms", *, has_jitter: bool = False):
        """`names` are those of the groups of `match`."""
        groups = {name: number for number, name in enumerate(names, 1)}
        self.match, self.mnemonics = match, mnemonics
        self.kind_group, self.stage_group = groups["kind"], groups.get("stage")
        self.unit, self.unit_name = UNITS[unit], unit
        self.times: dict[str, Times] = defaultdict(lambda: defaultdict(list))
        self.messages: dict[tuple[str, int, int, int], Message] = defaultdict(lambda: Message([], []))
        self.memory: dict[str, dict[int, int]] = {}
        """In bytes, by stage: what each of some kinds takes, and `static`. Traces have none."""
        self.has_jitter = has_jitter
        """Whether costs are means, with how much times differ from them, rather than medians. They then have four digits: figures of runs,
        such as why a bound holds, are short."""
        self.limit: float | None = None

    def add(self, event: Event) -> None:
        """Notes an event that is an action, a send or a receive; passes over others."""
        if message := MESSAGE.fullmatch(event.name):
            self.add_message(event, message)
        if not (found := self.match.search(event.name)):
            return
        name = found[self.kind_group] or ""
        kind = self.mnemonics.get(name, name)
        if not re.fullmatch("[A-Z][A-Z0-9_]*", kind):
            raise TraceError(f"{event.place}: `{name}` is not an action; `--kind={name}=MNEMONIC` maps it to one")
        stage = found[self.stage_group] if self.stage_group else "0"
        if not re.fullmatch("[0-9]{1,5}", stage or "") or int(stage) >= MAX_STAGES:
            raise TraceError(f"{event.place}, `{event.name}`: the stage must be a number below {MAX_STAGES}")
        if event.duration > MAX_TIME:
            raise TraceError(f"{event.place}, `{event.name}`: `dur` must be a number from 0 to 10^9")
        self.times[kind][int(stage)].append(event.duration)

    def add_message(self, event: Event, found: re.Match[str]) -> None:
        stage, end, slot, microbatch, other = found.groups()
        if event.start is None or max(len(stage), len(other or "")) > 5 or len(microbatch) > 10:
            return
        sends = end == "SEND"
        here = int(stage)
        # Outputs go up, gradients down. A stage at the end of the pipeline has no peer: then there is no other end.
        there = int(other) if other else here + (1 if sends == (slot == "F") else -1)
        key = (slot, here, there, int(microbatch)) if sends else (slot, there, here, int(microbatch))
        if sends:
            self.messages[key].sends.append(event.start)
        else:
            end_time = event.start + event.duration
            waited = event.duration if event.waited is None else event.waited
            self.messages[key].receives.append(Receive(event.start, end_time - waited, end_time))

    def require_all_stages(self, pattern: str) -> None:
        """Raises TraceError unless there are times, of each kind for every stage up to the last that a message is of."""
        if not self.times:
            raise TraceError(f"no event matches `{pattern}`; `--match=REGEX` gives the names of the ranges")
        for kind, stages in self.times.items():
            for stage in range(max(stages)):
                if stage not in stages:
                    raise TraceError(
                        f"no event is {kind} of stage {stage}, but one is of stage {max(stages)}; give the traces of all ranks"
                    )
        last = max((max(source, target) for _, source, target, _ in self.messages), default=0)
        if self.stage_group and last >= self.num_stages():
            raise TraceError(f"a message is of stage {last}, but no other event is; give the traces of all ranks")

    def latencies(self) -> list[str]:
        """By stage: the median of the messages on the edges that lead up from it, both ways.

        A message takes from the start of its send to the end of its receive, if the receiver waited for it by then. Of a stage
        where none did, the shortest time until a receiver looked, which bounds the latency. Empty without messages or stages.
        """
        measured: Times = defaultdict(list)
        bounds: dict[int, Decimal] = {}
        for (_, source, target, _), (sends, receives) in self.messages.items():
            stage = min(source, target)
            for sent, receive in zip(sends, receives, strict=False):
                if receive.end < sent:  # The clocks are not the same.
                    continue
                time = receive.end - max(sent, receive.posted)
                if receive.waited <= sent:
                    measured[stage].append(time)
                bounds[stage] = min(bounds.get(stage, time), time)
        if not bounds or not self.stage_group:
            return []
        return [
            self.median(measured[stage] or [bounds.get(stage, Decimal(0))])
            for stage in range(max(self.num_stages(), max(bounds) + 1))
        ]

    def num_stages(self) -> int:
        return 1 + max(max(stages) for stages in self.times.values())

    def median(self, times: list[Decimal]) -> str:
        return self._text(statistics.median(times) / self.unit)

    def typical(self, times: list[Decimal]) -> str:
        """The median, or with jitter the mean."""
        return self._text(statistics.mean(times) / self.unit) if self.has_jitter else self.median(times)

    def jitter(self) -> dict[str, list[float]]:
        """By kind and stage: the standard deviation of times, as a share of their mean. Empty if costs are medians."""
        if not self.has_jitter:
            return {}
        return {kind: [_deviation(times) for _, times in sorted(self.times[kind].items())] for kind in self.kinds()}

    def _text(self, time: Decimal) -> str:
        """In the unit of the costs, which have nine decimals."""
        text = f"{Decimal(f'{time:.3e}') if self.has_jitter else time:.9f}"
        return text.rstrip("0").rstrip(".")

    def kinds(self) -> list[str]:
        """Those of every schedule first."""
        return sorted(self.times, key=lambda kind: ("FBIW".find(kind) % 5, kind))

    def costs(self) -> str:
        rows = []
        for kind in self.kinds():
            times = [self.typical(times) for _, times in sorted(self.times[kind].items())]
            rows.append(f'    "{kind}": ' + (f"[{', '.join(times)}]" if self.stage_group else times[0]))
        latencies = self.latencies()
        latency = f',\n  "latency": [{", ".join(latencies)}]' if latencies else ""
        by_stage = {name: [amounts[stage] for stage in sorted(amounts)] for name, amounts in self.memory.items()}
        static = f',\n  "static": {by_stage.pop("static")}' if "static" in by_stage else ""
        memory = f',\n  "memory": {json.dumps(by_stage)}' if by_stage else ""
        jitter = f',\n  "jitter": {json.dumps(self.jitter())}' if self.has_jitter else ""
        return '{\n  "cost": {\n' + ",\n".join(rows) + "\n  }" + latency + memory + static + jitter + "\n}\n"

    def model(self) -> str:
        """Each stage that was measured is a layer, so that others can be cut from them."""
        units = f"  units {self.unit_name}{', bytes' if self.memory else ''};"
        by = "means, and how much they vary" if self.has_jitter else "medians"
        lines = [f"// What was measured, by the {by}.", "model measured() {", units]
        for stage in range(self.num_stages()):
            costs = " ".join(
                f"cost {kind} = {self.typical(self.times[kind][stage])};" for kind in self.kinds() if stage in self.times[kind]
            )
            for name, amounts in self.memory.items():
                costs += f" {name if name == 'static' else f'memory {name}'} = {amounts[stage]};"
            lines.append(f"  layer stage_{stage} {{ {costs} }}" if self.stage_group else f"  {costs}")
        if self.stage_group:
            lines.append(f"  layers {', '.join(f'stage_{stage}' for stage in range(self.num_stages()))};")
            lines += [f"  jitter {kind} stage s = {_by_stage(shares)};" for kind, shares in self.jitter().items()]
        lines.append("}")
        cluster = []
        if latencies := self.latencies():
            cluster.append(f"  latency stage s = {_by_stage(latencies)};")
        if self.limit is not None:
            cluster.append(f"  limit = {self.limit};")
        if cluster:
            lines += ["cluster measured() {", units, *cluster, "}"]
        return "\n".join(lines) + "\n"


def _deviation(times: list[Decimal]) -> float:
    """The compiler takes no more than 1."""
    mean = statistics.mean(times)
    return min(1.0, round(float(statistics.pstdev(times) / mean), 3)) if mean else 0.0


def _by_stage(values: list[Any]) -> str:
    """An expression of the language for the values of stages, whose number is `s`."""
    parts = [
        f"s < {stage + 1} ? {value} : "
        for stage, (value, after) in enumerate(zip(values, values[1:], strict=False))
        if value != after
    ]
    return f"{''.join(parts)}{values[-1]}"


def new_profile() -> Profile:
    """A profile for events named as actions are, in milliseconds, with jitter."""
    return Profile(re.compile(ACTION), ["stage", "kind"], {}, has_jitter=True)


def write(output: str, inputs: list[str], text: str) -> None:
    """Raises TraceError rather than replace an input."""
    if output == "-":
        sys.stdout.write(text)
        return
    try:
        if os.path.exists(output) and any(os.path.samefile(output, path) for path in inputs):
            raise TraceError(f"the output `{output}` is also an input")
        with open(output, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise TraceError(f"{output}: {error.strerror}") from None


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit status: 1 for errors in the traces; 2 for wrong usage, as argparse raises it."""
    usage = parser()
    options = usage.parse_args(arguments)
    try:
        match = re.compile(options.match)
    except (re.error, RecursionError, OverflowError) as error:
        usage.error(f"--match: `{options.match}`: {error}")
    groups = options.groups.split(",")
    if "kind" not in groups:
        usage.error("--groups: one of them must be `kind`")
    if max(number for number, name in enumerate(groups, 1) if name in ("stage", "kind")) > match.groups:
        usage.error(f"--groups: `{options.match}` has {match.groups} groups")
    mnemonics = dict(pair.rpartition("=")[::2] for pair in options.kind)
    if "" in mnemonics or "" in mnemonics.values():
        usage.error("--kind: expected NAME=MNEMONIC")
    profile = Profile(match, groups, mnemonics, options.unit)
    wrong = []
    for path in options.traces:
        try:
            for event in events_of(path):
                profile.add(event)
        except TraceError as error:
            wrong.append(str(error))
    try:
        if not wrong:
            profile.require_all_stages(options.match)
            write(options.output, options.traces, profile.model() if options.emit == "model" else profile.costs())
    except TraceError as error:
        wrong.append(str(error))
    for text in wrong:
        print(f"ppcc-profile: error: {text}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
