"""Weights and optimizer state of a pipeline for torch.distributed.checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
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

from ._errors import UsageError
from ._runtime import Runtime

Names = Callable[[Any, str], str]
_OPTIONS = StateDictOptions(flatten_optimizer_state_dict=True)


class Checkpoint(Stateful):
    """The state of a Runtime for torch.distributed.checkpoint: weights, buffers, optimizer and scaler.

    With names of the whole model, such as `layers.7.weight`, a checkpoint can be loaded with any placement and any division
    into stages. Replicas of a stage are saved once. All ranks create it together.

    Args:
        runtime: The Runtime whose state is saved and loaded.
        names: A function from a stage (its key in `Runtime.stages`) and the name of a weight or buffer in this stage to the
            name in the checkpoint; by default `stages.STAGE.NAME`. Only tied weights may have the same name.

    Raises:
        UsageError: Weights of two stages would have the same name.

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
        stages, whole = list(modules), names or _default_name
        self._names: dict[str, str] = {}
        places: list[tuple[str, object]] = []
        # Its names, unlike those of `Module.state_dict`, are without wrappers such as torch.compile's.
        for here in get_model_state_dict(self._model):
            number, _, name = here.partition(".")
            stage = stages[int(number)]
            self._names[here] = whole(stage, name)
            places.append((self._names[here], _place(runtime, stage, name)))
        self._here = {name: here for here, name in self._names.items()}
        owners: dict[str, object] = {}
        for name, place in chain(*runtime._setup.groups.all_gather(places)):
            if owners.setdefault(name, place) != place:
                raise UsageError(f"two weights or buffers would be saved as `{name}`: {owners[name]} and {place}")

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


def _place(runtime: Runtime, stage: Any, name: str) -> object:
    """The stage and name of a weight; the same for tied weights."""
    count = max(pipe.num_stages for pipe in runtime.program.pipes)
    for number, tie in enumerate(runtime._setup.tied):
        if any(tied % count == stage and own == name for tied, own in tie.items()):
            return number
    return stage, name


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
    if name not in names:
        raise UsageError(f"the state has `{key}`, which is of no weight or buffer of a stage")
    return f"{kind}{dot}{names[name]}.{what}"
