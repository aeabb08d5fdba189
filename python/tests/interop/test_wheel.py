"""The wheel alone, in a new environment and an empty folder: what the pages say of it works."""

from __future__ import annotations

import calendar
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from .test_documentation import DOCS, listing

WHEELS = sorted((DOCS.parent / "build" / "interop-wheel").glob("ppcc-*.whl"))
LIT = Path("/usr/lib/llvm-19/build/utils/lit/lit.py")

pytestmark = pytest.mark.skipif(not WHEELS, reason="NOT RUN because there is no wheel in build/interop-wheel (./dev interop)")


class Environment:
    """A virtual environment with the wheel."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "environment" / "bin"
        self.empty = folder / "empty"
        self.empty.mkdir()
        self._run([sys.executable, "-m", "venv", "--without-pip", str(self.bin.parent)])
        pip = [sys.executable, "-m", "pip", "--python", str(self.bin / "python"), "--disable-pip-version-check"]
        self._run([*pip, "install", "--quiet", "--no-index", "--no-deps", str(WHEELS[-1])])

    def add_packages_of_this(self) -> None:
        """Behind the wheel: torch and its clients."""
        (site,) = (self.bin.parent / "lib").glob("python*/site-packages")
        own = next(path for path in sys.path if path.endswith("site-packages"))
        (site / "others.pth").write_text(f"{own}\n")

    def run(self, *command: str) -> str:
        tools = [str(self.bin), "/usr/lib/llvm-19/bin", "/usr/bin", "/bin"]
        environment = {"PATH": os.pathsep.join(tools), "HOME": str(self.empty), "OMP_NUM_THREADS": "1"}
        return self._run([str(self.bin / command[0]), *command[1:]], cwd=self.empty, env=environment)

    @staticmethod
    def _run(command: list[str], **options: object) -> str:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=900, **options)  # type: ignore[call-overload]
        assert ended.returncode == 0, f"{command}: {ended.stdout}\n{ended.stderr}"
        return str(ended.stdout)


@pytest.mark.skipif(not LIT.exists() or not shutil.which("FileCheck-19"), reason="NOT RUN because llvm-19-tools is not installed")
def test_new_writes_a_test_that_runs(tmp_path: Path) -> None:
    environment = Environment(tmp_path)
    assert "wrote lit.cfg.py" in environment.run("ppcc", "new", "first")
    assert "Passed: 1" in environment.run("python", str(LIT), "-v", ".")
    # Of a schedule that does something else the test fails.
    schedule = environment.empty / "first.pp"
    schedule.write_text(schedule.read_text().replace("min(P - 1 - r, M)", "min(P - r, M)"))
    with pytest.raises(AssertionError, match="Failed: 1"):
        environment.run("python", str(LIT), "-v", ".")


def test_a_second_wheel_is_the_same_to_the_byte(tmp_path: Path) -> None:
    root = DOCS.parent
    with zipfile.ZipFile(WHEELS[-1]) as wheel:
        made = calendar.timegm(wheel.infolist()[0].date_time)  # type: ignore[arg-type]
        native = tmp_path / "_ppcc.abi3.so"
        native.write_bytes(wheel.read(native.name))
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-build-isolation", "--no-deps", str(root)]
    settings = {"cmake.define.PPCC_NATIVE": native, "build-dir": tmp_path / "build"}
    options = [f"--config-settings={name}={value}" for name, value in settings.items()]
    Environment._run([*command, "-w", str(tmp_path), *options], env={**os.environ, "SOURCE_DATE_EPOCH": str(made)})
    (again,) = tmp_path.glob("ppcc-*.whl")
    assert again.read_bytes() == WHEELS[-1].read_bytes()


def test_profile_is_a_program(tmp_path: Path) -> None:
    environment = Environment(tmp_path)
    (environment.empty / "rank0.json").write_text('[{"ph": "X", "name": "0F0", "dur": 1500}]')
    assert '"F": [1.5]' in environment.run("ppcc-profile", "rank0.json")
    assert environment.run("ppcc-tune", "--version").strip() == environment.run("ppcc", "--version").split()[1]


@pytest.mark.skipif(importlib.util.find_spec("megatron") is None, reason="NOT RUN because megatron-core is not installed")
def test_the_page_on_megatron(tmp_path: Path) -> None:
    environment = Environment(tmp_path)
    environment.add_packages_of_this()
    where = "import ppcc; print(ppcc.__file__)"
    assert environment.run("python", "-c", where).startswith(str(environment.bin.parent))
    # One string: the launcher runs python -u, where each argument of print is a write of its own among those of other ranks.
    (environment.empty / "train.py").write_text(listing("megatron.md") + 'print(f"trained {len(losses)}")\n')
    output = environment.run("python", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "train.py")
    assert output.count("trained 21") == 2


def test_the_first_hour(tmp_path: Path) -> None:
    """All that is typed in docs/first-hour.md, in its order; test/Docs compares what the commands of ppcc print."""
    environment = Environment(tmp_path)
    environment.add_packages_of_this()
    page, printed = (DOCS / "first-hour.md").read_text(), []
    for kind, name, text in re.findall(r"^```(\w+)([^\n]*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        if kind == "python":
            (environment.empty / text.splitlines()[0].removeprefix("# ")).write_text(text)
        elif kind == "text":
            (environment.empty / name.strip()).write_text(text)
        for line in re.findall(r"^\$ (.*)$", text, re.MULTILINE) if kind == "console" else text.splitlines() if kind == "sh" else ():
            command, *arguments = shlex.split(line)
            if command == "torchrun":
                command, arguments = "python", ["-m", "torch.distributed.run", "--standalone", *arguments]
            if command != "pip":
                printed.append(environment.run(command, *arguments))
    output = "".join(printed)
    assert "cannot hang under stream" in output and "step 19: loss " in output and re.search(r"^found +4 +8 ", output, re.MULTILINE)
