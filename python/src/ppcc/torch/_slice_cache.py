"""What stages use that train slices of sequences. A module of its own: torch.compiler is slow to import."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .._program import Action
from ._slices import now_running


@torch.compiler.disable  # type: ignore[untyped-decorator]
def current_action() -> Action | None:
    """Return the action that a step runs now, for what a stage does by microbatch or slice; None outside of a step.

    In the backward, as when a checkpoint repeats a forward, it is the `B`, `I` or `W`.

    Examples:
        >>> import ppcc, ppcc.torch, torch
        >>> class Stage(torch.nn.Linear):
        ...     def forward(self, x):
        ...         if action := ppcc.torch.current_action():
        ...             print(action, action.slice)
        ...         return super().forward(x)
        >>> runtime = ppcc.torch.Runtime(ppcc.compile("gpipe", P=1, M=2), {0: Stage(2, 2)}, loss_fn=torch.nn.functional.mse_loss)
        >>> _ = runtime.step(torch.ones(2, 2), target=torch.ones(2, 2))
        0F0 0
        0F1 0
    """
    now = now_running()
    return None if now is None else now[0]


class SliceCache(nn.Module):
    """Keeps keys and values of the slices of a sequence for the slices after them.

    Each attention has one of its own, calls it once in a forward, and attends to what it returns. The gradients of keys and values reach
    the backward of the slice that has computed them. Outside of a step, and in programs without slices, it returns what it is given.

    Args:
        dim: The dimension of the positions in what it is called with.

    Examples:
        >>> import torch
        >>> from torch.nn.functional import scaled_dot_product_attention
        >>> from ppcc.torch import SliceCache
        >>> class Attention(torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.qkv, self.cache = torch.nn.Linear(8, 24), SliceCache(dim=-2)
        ...     def forward(self, x):
        ...         q, k, v = self.qkv(x).unflatten(-1, (3, 2, 4)).movedim((-3, -2), (0, 2))
        ...         k, v = self.cache(k, v)
        ...         new, known = q.shape[-2], k.shape[-2]
        ...         mask = torch.ones(new, known, dtype=torch.bool, device=x.device).tril(known - new)
        ...         return scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(-2)
        >>> Attention()(torch.ones(1, 5, 8)).shape
        torch.Size([1, 5, 8])
    """

    def __init__(self, dim: int = -2) -> None:
        super().__init__()
        self.dim = dim

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Return the tensors, each after those of the slices before.

        Args:
            *tensors: What this slice has computed, such as keys and values.

        Returns:
            As many tensors, for the positions of the slices before and of this one.

        Raises:
            UsageError: It was called twice in a forward, or without gradients in a step that trains.
        """
        now = now_running()
        return tensors if now is None or now[1] is None else now[1].extend(self, now[0], tensors)
