"""Runs a table of steps, each with a time limit, and goes on after failures: see run.sh.

    run.sh [--seconds N] [--only STEP,... | --without STEP,...]

Writes report.md, report.json and logs.tar.gz to $OUT, after each step anew. A step that cannot run says why and counts as
skipped. The exit code is 1 if anything failed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
OUT = Path(os.environ.get("OUT") or "gpu-report").resolve()
GPU = "no GPU"
NOT_GPU = "the model of CUDA is for machines without a GPU"
BUILT = "the engine was not built"
PATIENCE = 4  # Without a GPU nobody waits for the machine, which may do other things.
EDGES = "programs/edges"
PROGRAM = "programs/all"


@dataclass
class Step:
    name: str
    what: str
    seconds: float
    command: list[str]
    needs: tuple[str, ...] = ()
    """What it cannot do without: the reason why it is skipped."""
    environment: dict[str, str] = field(default_factory=dict)


NCCL = {"PPCC_TEST_BACKEND": "nccl"}
STEPS = [
    Step("versions", "what is here", 60, ["versions.py"]),
    Step("build", "the engine and emitted C++ compile", 180, ["engine.py", "build"]),
    Step("train-2", "library, 2 ranks: gradients against the host", 110, ["train.py", "2"], (), NCCL),
    Step("engine-1", "C++ engine, 1 rank, memcheck: steps, a graph", 60, ["engine.py", "memcheck", "graph", "programs/one/*.json"], (GPU, BUILT)),
    Step("engine-2-memcheck", "C++ engine, 2 ranks, memcheck", 60, ["engine.py", "memcheck", "run", f"{PROGRAM}/*dualpipe*-2-4.json"], (GPU, BUILT)),
    Step("engine-2", "C++ engine, 2 ranks, the library", 60, ["engine.py", "plain", "run", f"{PROGRAM}/*-2-*.json"], (GPU, BUILT)),
    Step("engine-2-cpp", "C++ engine, 2 ranks, emitted C++, graphs", 60, ["engine.py", "plain", "graph", "programs/cpp/*-2-*.cpp"], (GPU, BUILT)),
    Step("engine-4-edges", "C++ engine, 4 ranks, a communicator for each edge", 60, ["engine.py", "plain", "run", f"{EDGES}/*-4-9.json"], (GPU, BUILT)),
    Step("engine-throw", "C++ engine, a stage throws", 40, ["engine.py", "plain", "throw", f"{PROGRAM}/one_f_one_b-2-2.json"], (GPU, BUILT)),
    Step("engine-model", "C++ engine on the model of CUDA", 150, ["engine.py", "model"], (NOT_GPU,)),
    Step("overlap", "overlap groups on two streams against one", 60, ["measure.py", "overlap"], (GPU,)),
    Step("memory", "offload, recompute, release: bytes against the report", 40, ["measure.py", "memory"], (GPU,)),
    Step("faults", "a stage throws, a rank is killed: seconds until all ranks have ended", 120, ["faults.py"], (), NCCL),
    Step("runtimes", "PyTorch's runtime beside ours, bubble measured against simulated", 60, ["measure.py", "runtimes"], (), NCCL),
    Step("block", "I, W and B of a transformer block", 40, ["measure.py", "block"]),
    Step("trace", "a trace of a DualPipe step", 40, ["measure.py", "trace"], (), NCCL),
    Step("graph", "a step of the Runtime as a CUDA graph", 40, ["measure.py", "graph"], (GPU,)),
    Step("train-4", "library, 4 ranks: gradients against the host", 80, ["train.py", "4"], (), NCCL),
    Step("interop", "the tests with PyTorch", 300, ["interop.py"]),
]


def has_gpu() -> bool:
    look = "import torch; print(torch.cuda.is_available())"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True)
    return done.stdout.strip() == "True"


class Day:
    def __init__(self, seconds: float, without: set[str], work: Path) -> None:
        self.without = without
        self.began = time.monotonic()
        self.end = self.began + seconds
        self.work = work
        self.logs = work / "logs"
        self.logs.mkdir()
        self.gpu = has_gpu()
        self.steps: list[dict[str, Any]] = []
        self.environment = {
            **os.environ,
            "PATH": os.pathsep.join([os.environ["PATH"], "/usr/local/cuda/bin", "/usr/local/cuda/compute-sanitizer"]),
            "PYTORCH_NVML_BASED_CUDA_CHECK": "1",  # A process that has begun with CUDA cannot be forked.
            "PPCC_TEST_DEVICE": "cuda" if self.gpu else "cpu",
            "PYTHONPATH": str(HERE / "python"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": "1",
            "PPCC_WORK": str(work),
            "OUT": str(OUT),
        }

    def missing(self, step: Step) -> str:
        """Why a step does not run, or nothing."""
        if step.name in self.without:
            return "left out"
        if GPU in step.needs and not self.gpu:
            return GPU
        if NOT_GPU in step.needs and self.gpu:
            return NOT_GPU
        if BUILT in step.needs and not (self.work / "engine").exists():
            return BUILT
        return "" if self.end - time.monotonic() > 15 else "the time is over"

    def run(self, step: Step) -> None:
        began = time.monotonic()
        results: list[dict[str, Any]] = []
        if missing := self.missing(step):
            results.append({"check": step.name, "result": "skipped", "why": missing})
        else:
            seconds = step.seconds * (1 if self.gpu else PATIENCE)
            results += self._run(step, min(seconds, self.end - began - 5))
        found = [result for result in results if "check" in result]
        counts = {kind: sum(one.get("count", 1) for one in found if one["result"] == kind) for kind in ("passed", "failed", "skipped")}
        self.steps.append(
            {"step": step.name, "what": step.what, "seconds": round(time.monotonic() - began, 1), **counts, "results": results}
        )
        print(f"{step.name}: {counts_text(counts)}, {self.steps[-1]['seconds']} s{': ' + missing if missing else ''}", flush=True)
        self.write()

    def _run(self, step: Step, seconds: float) -> list[dict[str, Any]]:
        file, log = self.work / f"{step.name}.results", self.logs / f"{step.name}.log"
        file.touch()
        command = [sys.executable, str(HERE / step.command[0]), *step.command[1:]]
        environment = {**self.environment, "PPCC_RESULTS": str(file), "PPCC_END": str(time.monotonic() + seconds - 5)}
        if self.gpu:
            environment |= step.environment
        with log.open("w") as output:
            process = subprocess.Popen(
                command, env=environment, cwd=HERE, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True
            )
            try:
                code: int | str = process.wait(seconds)
            except subprocess.TimeoutExpired:
                code = f"not over after {seconds:.0f} s"
            try:  # Also ranks that it left.
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        results = [json.loads(line) for line in file.read_text().splitlines()]
        found = [result["result"] for result in results if "check" in result]
        if isinstance(code, str) or (code != 0 and "failed" not in found):
            tail = log.read_text(errors="replace")[-1500:]
            results.append({"check": f"{step.name} ends", "result": "failed", "why": f"{code if isinstance(code, str) else f'exit code {code}'}\n{tail}"})
        elif not found:
            results.append({"check": step.name, "result": "passed"})
        return results

    def totals(self) -> dict[str, int]:
        return {kind: sum(step[kind] for step in self.steps) for kind in ("passed", "failed", "skipped")}

    def write(self) -> None:
        versions = {
            result["figure"]: result["value"] for step in self.steps if step["step"] == "versions" for result in step["results"] if "figure" in result
        }
        report = {
            "date": time.strftime("%Y-%m-%d %H:%M"),
            "machine": platform.machine(),
            "gpu": self.gpu,
            "seconds": round(time.monotonic() - self.began, 1),
            **self.totals(),
            "versions": versions,
            "steps": self.steps,
        }
        (OUT / "report.json").write_text(json.dumps(report, indent=1) + "\n")
        (OUT / "report.md").write_text(self._markdown(report))
        with tarfile.open(OUT / "logs.tar.gz", "w:gz") as archive:
            archive.add(self.logs, "logs")

    def _markdown(self, report: dict[str, Any]) -> str:
        lines = [f"# {'A GPU' if self.gpu else 'Without a GPU'}, {report['date']}", ""]
        lines += [f"{counts_text(report)}, in {report['seconds'] / 60:.1f} minutes.", ""]
        lines += [f"- {name}: {value}" for name, value in report["versions"].items()]
        lines += ["", "| step | | passed | failed | skipped | s |", "|---|---|---|---|---|---|"]
        lines += ["| {step} | {what} | {passed} | {failed} | {skipped} | {seconds} |".format(**step) for step in self.steps]
        for kind, title in ("failed", "Failed"), ("skipped", "Not run"):
            found = [result for step in self.steps for result in step["results"] if result.get("result") == kind]
            lines += ["", f"## {title}", ""] if found else []
            for result in found:
                times = f" ({result['count']})" if result.get("count", 1) != 1 else ""
                text = result.get("why", "")
                lines += [f"- {result['check']}{times}: {text}"] if "\n" not in text else [f"- {result['check']}:", "", "```text", text, "```", ""]
        for step in self.steps:
            figures = [result for result in step["results"] if "figure" in result]
            if figures and step["step"] != "versions":
                lines += ["", f"## Figures of {step['step']}", ""]
                lines += [f"- {one['figure']}: {one['value']} {one['unit']}".rstrip() for one in figures]
        return "\n".join(lines) + "\n"


def counts_text(counts: dict[str, Any]) -> str:
    return f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=560, help="for all steps")
    parser.add_argument("--only", metavar="STEP,...", help="these steps")
    parser.add_argument("--without", metavar="STEP,...", help="all but these")
    arguments = parser.parse_args()
    names = {step.name for step in STEPS}
    without = set((arguments.without or "").split(",")) - {""}
    if arguments.only:
        without = names - set(arguments.only.split(","))
    if unknown := (without | set((arguments.only or "").split(",")) - {""}) - names:
        parser.error(f"no step {', '.join(sorted(unknown))}; there are {', '.join(step.name for step in STEPS)}")
    OUT.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="ppcc-gpu-"))
    try:
        day = Day(arguments.seconds, without, work)
        for step in STEPS:
            day.run(step)
        totals = day.totals()
        print(counts_text(totals))
        return int(totals["failed"] != 0 or totals["passed"] == 0)
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
