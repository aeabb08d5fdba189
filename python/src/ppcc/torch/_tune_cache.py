"""Results of tune() in files, by model, machine and limits."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_flatten

from .._compiler import version
from .._program import Program
from ._groups import Groups
from ._shapes import tensor_spec
from ._tune_result import TuneResult

FORMAT = "ppcc.tuned"


class StaleError(Exception):
    """Why a file of the cache cannot be used."""


@dataclass(frozen=True)
class Cache:
    """The file of a job, on rank 0."""

    path: Path
    job: Mapping[str, Any]
    """What the result depends on."""

    def load(self) -> tuple[TuneResult, str] | None:
        """The result and the JSON of the program; None without a file. Raises StaleError for a file that was changed, or is of another job."""
        try:
            document = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise StaleError(f"{self.path}: {error}") from error
        try:
            digest = document.pop("digest")
            if document["format"] != FORMAT or document["version"] != 1:
                raise StaleError(f"{self.path} has another format or version")
            if digest != _digest(document):
                raise StaleError(f"{self.path} does not have the digest that it states: it was changed")
            if document["job"] != self.job:
                raise StaleError(f"{self.path} is of another job")
            if Program.from_json(document["program"]).digest != document["program_digest"]:
                raise StaleError(f"the program in {self.path} does not have the digest that it states")
            return TuneResult.from_json(document["result"] | {"cached": str(self.path), "steps": 0, "processor_seconds": 0.0}), document["program"]
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise StaleError(f"{self.path} cannot be read: {type(error).__name__}: {error}") from error

    def save(self, result: TuneResult, program: Program) -> None:
        """Replaces the file at once."""
        document = {"format": FORMAT, "version": 1, "job": self.job, "result": result.to_json(), "program": program.json, "program_digest": program.digest}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        own = self.path.with_suffix(f".{os.getpid()}")
        own.write_text(json.dumps(document | {"digest": _digest(document)}), encoding="utf-8")
        own.replace(self.path)


def cache_of(
    folder: str | os.PathLike[str], groups: Groups, program: Program, modules: Mapping[int, nn.Module], inputs: Any, options: Mapping[str, Any]
) -> Cache:
    """The file of this job in a folder. All ranks call it together."""
    ranks = groups.all_gather({"machine": _machine(), "stages": _stages(modules), "inputs": _specs(inputs)})
    job = {
        "ppcc": version(),
        "torch": torch.__version__,
        "program": program._stated_digest,
        "transports": list(program.transports),
        "options": dict(options),
        "ranks": ranks,
    }
    job = json.loads(json.dumps(job))
    return Cache(Path(folder) / f"tuned-{_digest(job)[:16]}.json", job)


def _digest(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _machine() -> dict[str, Any]:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        cpu = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    except OSError:
        cpu = ""
    return {"cpu": cpu or platform.processor(), "architecture": platform.machine(), "cores": os.cpu_count(), "threads": torch.get_num_threads()}


def _stages(modules: Mapping[int, nn.Module]) -> dict[str, list[str]]:
    """By stage: modules, weights and buffers, without their values."""
    found = {}
    for stage, module in modules.items():
        tensors = [*module.named_parameters(), *module.named_buffers()]
        lines = [f"{name} {tensor.dtype} {list(tensor.shape)} {tensor.requires_grad}" for name, tensor in tensors]
        found[str(stage)] = [repr(module), *lines, f"training {module.training}"]
    return found


def _specs(value: Any) -> list[str]:
    leaves, structure = tree_flatten(value)
    return [str(structure), *(str(tensor_spec(leaf)) if isinstance(leaf, torch.Tensor) else f"{type(leaf).__name__} {leaf!r}" for leaf in leaves)]
