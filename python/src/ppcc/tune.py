#!/usr/bin/env python3
"""The program `ppcc-tune`: the best order of actions for what the traces of a run show (docs/tuning.md#from-traces).

It needs the package alone, without PyTorch. `ppcc.torch.tune` does the same in a training script, and runs the order.

Examples:
    >>> import ppcc.tune
    >>> ppcc.tune.main(["--version"])
    0.1.0
    0
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from statistics import median

from ._choose import COMPUTES, MAX_LIMIT, Choice, Chooser, TunedOrder, without_costs
from ._compiler import load, version
from ._diagnostics import Error
from ._profile import Event, Profile, TraceError, add_names, events_of
from ._program import Program
from ._table import text_table

__all__ = ["TracedRun", "main", "read_traces"]

MAX_UNEXPLAINED = 0.05
GPU = "gpu_user_annotation"
"""The category of ranges of a GPU, which Kineto writes beside those of the host."""


@dataclass(frozen=True)
class TracedRun:
    """What traces show of a run. Times are in milliseconds."""

    program: Program
    """The order of actions that ran."""
    profile: Profile
    """Without the first step, if there are several."""
    step: float
    """A step from the first action of all ranks to the last one, in the median."""
    steps: int
    """How many steps are in the traces."""


@dataclass(frozen=True)
class _Action:
    name: str
    stage: int
    event: Event


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: Its arguments; by default those of the process.

    Returns:
        The exit status: 1 for errors in the traces, or if no order keeps the limit; wrong usage exits with 2.
    """
    usage = parser()
    options = usage.parse_args(arguments)
    if options.version:
        print(version())
        return 0
    if not options.traces:
        usage.error("give the traces of all ranks")
    try:
        run = read_traces(options.traces, options.match, options.groups, dict(pair.rpartition("=")[::2] for pair in options.kind))
        stages = run.program.pipes[0].num_stages
        for name, text in (("F", options.memory), ("static", options.static)):
            if text is not None:
                run.profile.memory[name] = dict(enumerate(_amounts(text, f"--{'memory' if name == 'F' else name}", stages)))
        transports = options.transport.split(",") if options.transport else list(run.program.transports)
        chooser = Chooser(run.program, run.profile, transports, options.effort)
        limit = chooser.peak_memory(run.program) if options.limit is None else options.limit
        choice = chooser.choose({"given": run.program}, limit, 0.0)
        run.profile.limit = min(limit, MAX_LIMIT)
        best, text = choice.tries[0] if choice.tries else (choice.base, run.program.json)
        print(report(run, choice, best, limit))
        for path, content in ((options.output, text), (options.model, run.profile.model())):
            if path is not None:
                Path(path).write_text(content, encoding="utf-8")
        if options.page is not None:
            without_costs(Program.from_json(text)).timeline(chooser.costs(), transport=transports[0]).save(options.page)
    except (Error, TraceError, OSError, ValueError) as error:
        print(f"ppcc-tune: error: {error}", file=sys.stderr)
        return 1
    return 0


def parser() -> argparse.ArgumentParser:
    """The arguments of the command."""
    result = argparse.ArgumentParser(
        "ppcc-tune",
        allow_abbrev=False,
        description="Finds the order of forwards and backwards with the shortest step for the costs that the traces of a run show.",
    )
    result.add_argument("traces", metavar="TRACE", nargs="*", help="traces in Chrome's JSON, such as Kineto's, of all ranks; .gz is unpacked")
    result.add_argument(
        "--limit", type=float, metavar="N", help="what each rank may hold: activations, or with --memory its unit (default: what the order that ran holds)"
    )
    result.add_argument("--memory", metavar="N,...", help="what a forward of each stage keeps for its backward, or of all stages")
    result.add_argument("--static", metavar="N,...", help="what weights, gradients and optimizer state of each stage take, or of all stages")
    result.add_argument("-o", "--output", metavar="FILE", help="write the program of the best order, as JSON for Program.load() and the Runtime")
    result.add_argument("--model", metavar="FILE", help="write what was measured, as a model and a cluster in the language")
    result.add_argument("--page", metavar="FILE.html", help="write the simulated run of the best order")
    result.add_argument("--effort", type=int, default=20, help="how many millions of actions each search may simulate (default: 20)")
    result.add_argument("--transport", metavar="NAME,...", help="the transports under which no rank may hang (default: those of the order that ran)")
    add_names(result, "^([0-9]+)([A-Z]+)([0-9]+)$", "stage,kind,microbatch")
    result.add_argument("--version", action="store_true", help="print the version")
    return result


def read_traces(
    paths: Sequence[str], match: str = "^([0-9]+)([A-Z]+)([0-9]+)$", groups: str = "stage,kind,microbatch", kinds: Mapping[str, str] | None = None
) -> TracedRun:
    """Read the order of actions, and their times, from the traces of all ranks.

    Processes that have events of the same stages are of one rank; ranks are in the order of their first stages. If there are ranges of a GPU, only these count.

    Args:
        paths: The traces.
        match: A regular expression of the names of actions.
        groups: What its groups are: `stage`, `kind` and `microbatch`, in their order.
        kinds: The mnemonics of other names of kinds.

    Returns:
        The run.

    Raises:
        TraceError: A trace cannot be read, or its actions are not those of steps.
        CompileError: The order is not that of a program.
        ValueError: An argument is wrong.
    """
    names = groups.split(",")
    if missing := {"stage", "kind", "microbatch"} - set(names):
        raise ValueError(f"--groups: `{min(missing)}` is missing")
    try:
        pattern = re.compile(match)
    except re.error as error:
        raise ValueError(f"--match: `{match}`: {error}") from None
    if pattern.groups < len(names):
        raise ValueError(f"--groups: `{match}` has {pattern.groups} groups")
    profile = Profile(pattern, names, dict(kinds or {}), has_jitter=True)
    files = {path: list(events_of(path)) for path in paths}
    if any(event.category == GPU and pattern.search(event.name) for events in files.values() for event in events):
        files = {path: [event for event in events if event.category == GPU] for path, events in files.items()}
    ranks = _ranks({path: _actions(events, pattern, names, profile.mnemonics) for path, events in files.items()})
    steps = [_steps(actions) for actions in ranks]
    count = {len(own) for own in steps}
    if len(count) > 1:
        raise TraceError(f"the traces have {', '.join(map(str, sorted(count)))} steps: profile the same steps on all ranks")
    skipped = 1 if min(count) > 1 else 0
    kept = {id(action.event) for own in steps for step in own[skipped:] for action in step}
    for events in files.values():
        for event in events:
            if id(event) in kept or not pattern.search(event.name):  # Messages, too.
                profile.add(event)
    profile.require_all_stages(match)
    spans = [_span([action for own in steps for action in own[number]]) for number in range(skipped, min(count))]
    lists = "".join(f"rank {rank}: {' '.join(action.name for action in own[-1])}\n" for rank, own in enumerate(steps))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "traces.txt"
        path.write_text(lists, encoding="utf-8")
        program = load(path)
    return TracedRun(program, profile, median(spans), min(count))


def _actions(events: Sequence[Event], pattern: re.Pattern[str], groups: Sequence[str], mnemonics: Mapping[str, str]) -> list[_Action]:
    """The actions among the events of a trace, in the order of their starts."""
    found = []
    for event in events:
        if (parts := pattern.search(event.name)) is None:
            continue
        group = dict(zip(groups, parts.groups(), strict=False))
        kind = mnemonics.get(group["kind"] or "", group["kind"])
        if kind not in COMPUTES or not (group["stage"] or "").isdigit() or not (group["microbatch"] or "").isdigit():
            continue
        if event.start is None:
            raise TraceError(f"{event.place}, `{event.name}`: it has no `ts`")
        stage = int(group["stage"] or 0)
        found.append(_Action(f"{stage}{kind}{int(group['microbatch'] or 0)}", stage, event))
    return sorted(found, key=_start)


def _ranks(files: Mapping[str, Sequence[_Action]]) -> list[list[_Action]]:
    """The actions of each rank: of all processes, in all traces, that have the same stages."""
    processes: dict[tuple[str, str], list[_Action]] = {}
    for path, actions in files.items():
        if not actions:
            raise TraceError(f"{path}: no event is a forward or backward of a microbatch; `--match=REGEX` gives the names of the ranges, as docs/profiles.md shows")
        for action in actions:
            processes.setdefault((path, action.event.process), []).append(action)
    ranks: list[tuple[set[int], list[_Action]]] = []
    for actions in processes.values():
        stages = {action.stage for action in actions}
        same = [own for own in ranks if own[0] & stages]
        merged = (stages.union(*(own[0] for own in same)), [*actions, *(action for own in same for action in own[1])])
        ranks = [own for own in ranks if not own[0] & stages] + [merged]
    return [sorted(actions, key=_start) for _, actions in sorted(ranks, key=lambda own: min(own[0]))]


def _start(action: _Action) -> Decimal:
    return action.event.start or Decimal(0)


def _steps(actions: Sequence[_Action]) -> list[list[_Action]]:
    """The steps of a rank: a new one begins where an action comes again. Raises TraceError if they are not alike."""
    steps: list[list[_Action]] = [[]]
    for action in actions:
        if any(action.name == before.name for before in steps[-1]):
            steps.append([])
        steps[-1].append(action)
    orders = {tuple(action.name for action in step) for step in steps}
    if len(orders) > 1:
        (first, second), *_ = [pair for pair in zip(steps, steps[1:], strict=False) if [one.name for one in pair[0]] != [one.name for one in pair[1]]]
        raise TraceError(
            f"{second[0].event.place}: a step of stage {second[0].stage} has {len(second)} actions in another order than the one before, which has {len(first)}: "
            "profile whole steps of one program"
        )
    return steps


def _span(actions: Sequence[_Action]) -> float:
    return float(max(_start(action) + action.event.duration for action in actions) - min(map(_start, actions))) / 1000


def _amounts(text: str, option: str, stages: int) -> list[int]:
    try:
        found = [int(float(part)) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{option}: `{text}` is not a list of numbers") from None
    if len(found) not in (1, stages):
        raise ValueError(f"{option}: there are {stages} stages, but {len(found)} numbers")
    return found * (stages // len(found))


def report(run: TracedRun, choice: Choice, best: TunedOrder, limit: float) -> str:
    """What was found, as text.

    Args:
        run: The run.
        choice: What was chosen for it.
        best: The best order.
        limit: The memory limit.

    Returns:
        The text.
    """
    given, expected = choice.expected["given"], choice.expected[best.name]
    off = run.step / given - 1
    lines = [
        f"order        {best.name}: {expected:.4g} ms predicted ({100 * (1 - expected / given):.1f} % less); given: {given:.4g} ms predicted, {run.step:.4g} ms measured",
        f"bound        {choice.bound:.4g} ms for every order: {choice.why}",
        *(f"would help   {text}" for text in choice.would_help[best.name]),
        f"prediction   of the order that ran: {100 * off:+.1f} % off",
        f"memory limit {limit:g} a rank",
        f"traces       {run.program.num_ranks} ranks, {run.program.pipes[0].num_stages} stages, {run.program.num_microbatches} microbatches, {run.steps} steps",
        *(f"remark       {text}" for text in choice.remarks),
    ]
    if abs(off) > MAX_UNEXPLAINED:
        lines.append("remark       ranges that include waiting for messages, or clocks that differ, are a common cause of such a difference")
    rows = [{**vars(order), "fits": "yes" if order.fits else "no"} for order in choice.orders]
    return "\n".join(lines) + "\n\n" + text_table(rows)


if __name__ == "__main__":
    sys.exit(main())
