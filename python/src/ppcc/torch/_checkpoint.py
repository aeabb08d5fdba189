"""Weights and optimizer state of a pipeline for torch.distributed.checkpoint."""

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
    """The state of a Runtime for torch.distributed.checkpoint: weights, buffers, optimizer and scaler.

    With names of the whole model, such as `layers.7.weight`, a checkpoint can be loaded with any placement and any division
    into stages. Replicas of a stage are saved once.

    Args:
        runtime: The Runtime whose state is saved and loaded.
        names: A function from a stage (its key in `Runtime.stages`) and the name of a weight or buffer in this stage to the
            name in the checkpoint; by default `stages.STAGE.NAME`.

    Examples:
        >>> import ppcc, torch
        >>> from ppcc.torch import Checkpoint, Runtime
        >>> runtime = Runtime(ppcc.compile("gpipe", P=1, M=4), {0: torch.nn.Linear(8, 2)}, loss_fn=torch.nn.functional.mse_loss)
        >>> sorted(Checkpoint(runtime).state_dict()["model"])
        ['stages.0.bias', 'stages.0.weight']

        To save and to load, on all ranks::

            dcp.save({"train": Checkpoint(runtime)}, checkpoint_id=folder)
            dcp.load({"train": Checkpoint(runtime)}, checkpoint_id=folder)
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
        """Return the state: `model`, and `optimizer` and `scaler` if the Runtime has them."""
        found: dict[str, Any] = {"model": _renamed(get_model_state_dict(self._model), self._names)}
        if (optimizer := self._runtime.optimizer) is not None:
            state = get_optimizer_state_dict(self._model, optimizer, options=_OPTIONS)
            found["optimizer"] = _renamed(state, self._names)
        if (scaler := self._runtime.scaler) is not None:
            found["scaler"] = scaler.state_dict()
        return found

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Set the state.

        Args:
            state_dict: The state, with the keys that `state_dict` returns.
        """
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
    """Renames the weights, also in keys such as `state.NAME.exp_avg`."""
    return {_new_key(key, names): value for key, value in state.items()}


def _new_key(key: str, names: dict[str, str]) -> str:
    if key in names:
        return names[key]
    kind, dot, rest = key.partition(".")
    name, _, what = rest.rpartition(".")
    return f"{kind}{dot}{names[name]}.{what}" if name in names else key
