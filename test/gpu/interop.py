"""The tests with PyTorch, as they are, on this device; several files at a time where there are cores."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from results import failed, passed, seconds_left, skipped

TESTS = Path(os.environ["PYTHONPATH"]) / "tests" / "interop"
WORK = Path(os.environ["PPCC_WORK"])
ON_A_GPU = [
    "gpu", "runtime", "overlap", "dynamic_shapes", "messages", "actions", "failures", "inputs", "stages", "semantics", "torch_runtime",
    "digest",
]  # fmt: skip
OF_THE_HOST = {"wrappers": "its meshes are of the CPU", "training": "its meshes are of the CPU", "streams": "the host stands in for a device"}
ON_GPU = os.environ["PPCC_TEST_DEVICE"] != "cpu"
REHEARSED = ["gpu", "dynamic_shapes", "split"]
"""Without a GPU: they all run with the rest of the repository."""


def run(name: str) -> None:
    file, report = TESTS / f"test_{name}.py", WORK / f"{name}.xml"
    if seconds_left() < 10:
        return skipped(f"test_{name}.py", "the time of the step is over")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={TESTS}", f"--junitxml={report}", str(file)]
    with (WORK / f"{name}.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=WORK)
        try:
            code = process.wait(max(1, min(240 if ON_GPU else 600, seconds_left())))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            text = (WORK / f"{name}.log").read_text(errors="replace")
            return failed(f"test_{name}.py", f"not over in time\n{text[-1500:]}")
    cases = list(ElementTree.parse(report).iter("testcase")) if report.exists() else []
    for case in cases:
        label = f"test_{name}.py {case.get('name')}"
        if (skip := case.find("skipped")) is not None:
            skipped(label, skip.get("message", ""))
        elif (wrong := case.find("failure")) is not None or (wrong := case.find("error")) is not None:
            failed(label, (wrong.text or "")[-1500:])
        else:
            passed(label)
    if not cases:
        failed(f"test_{name}.py", f"exit code {code}\n{(WORK / f'{name}.log').read_text()[-1500:]}")


if __name__ == "__main__":
    names = ON_A_GPU if ON_GPU else REHEARSED
    for name, why in OF_THE_HOST.items():
        skipped(f"test_{name}.py", why)
    with ThreadPoolExecutor(max(1, (os.cpu_count() or 1) // 4)) as pool:
        list(pool.map(run, names))
