"""The weights and the optimizer of a pipeline for torch.distributed.checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from torch.distributed.checkpoint.stateful import Stateful

from ._runtime import Runtime

Names = Callable[[Any, str], str]
_OPTIONS = StateDictOptions(flatten_optimizer_state_dict=True)


class Checkpoint(Stateful):
    """What torch.distributed.checkpoint saves and loads of a Runtime: weights, buffers, the state of its optimizer and of its
    scaler.

        dcp.save({"train": Checkpoint(runtime)}, checkpoint_id=folder)

    `names(stage, name)` is what a weight or buffer of a stage is called in the checkpoint, where `stage` is the key that the
    Runtime was given; by default `stages.STAGE.NAME`. With names of the whole model, such as `layers.7.weight`, a checkpoint
    fits any placement and any cut into stages. Replicas of a stage are saved once.
    """

    def __init__(self, runtime: Runtime, names: Names | None = None) -> None:
        self._runtime = runtime
        modules = runtime.stages
        # By numbers here, since names of modules have no dots.
        self._model = nn.ModuleDict({str(number): module for number, module in enumerate(modules.values())})
        whole = names or _default_name
        self._names = {
            f"{number}.{name}": whole(stage, name)
            for number, (stage, module) in enumerate(modules.items())
            for name in module.state_dict()
        }
        self._here = {name: here for here, name in self._names.items()}

    def state_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {"model": _renamed(get_model_state_dict(self._model), self._names)}
        if (optimizer := self._runtime.optimizer) is not None:
            state = get_optimizer_state_dict(self._model, optimizer, options=_OPTIONS)
            found["optimizer"] = _renamed(state, self._names)
        if (scaler := self._runtime.scaler) is not None:
            found["scaler"] = scaler.state_dict()
        return found

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        set_model_state_dict(self._model, _renamed(state_dict["model"], self._here))
        if (optimizer := self._runtime.optimizer) is not None:
            state = _renamed(state_dict["optimizer"], self._here)
            set_optimizer_state_dict(self._model, optimizer, state, options=_OPTIONS)
        if (scaler := self._runtime.scaler) is not None:
            scaler.load_state_dict(state_dict["scaler"])


def _default_name(stage: Any, name: str) -> str:
    where = ".".join(map(str, stage)) if isinstance(stage, tuple) else f"stages.{stage}"
    return f"{where}.{name}"


def _renamed(state: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """With other names of weights, which stand in keys such as `state.NAME.exp_avg`, too."""
    return {_new_key(key, names): value for key, value in state.items()}


def _new_key(key: str, names: dict[str, str]) -> str:
    if key in names:
        return names[key]
    kind, dot, rest = key.partition(".")
    name, _, what = rest.rpartition(".")
    return f"{kind}{dot}{names[name]}.{what}" if name in names else key
