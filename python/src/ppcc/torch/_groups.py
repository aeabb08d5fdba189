"""Process groups of subsets of a pipeline's ranks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist

from .. import _diagnostics
from .._program import Program
from ._errors import UsageError
from ._fits import check_size

T = TypeVar("T")


class Groups:
    """Creates process groups from ranks of a program, in all pipelines of the job at once.

    All processes of the job create it together, and the same groups in the same order, since PyTorch names groups by a counter of
    the process.
    """

    def __init__(self, pipeline: dist.ProcessGroup | None, ranks: int) -> None:
        self.pipeline, self.ranks = pipeline, ranks
        self._world = [rank if pipeline is None else dist.get_global_rank(pipeline, rank) for rank in range(ranks)]
        self._made: dict[tuple[tuple[int, ...], str | None, str], dist.ProcessGroup] = {}
        self._pipelines = [tuple(self._world)]
        if pipeline is not None:
            self._pipelines = list(dict.fromkeys(self.all_gather(tuple(self._world), across_job=True)))

    def global_rank(self, rank: int) -> int:
        """The global rank of a rank of the program."""
        return self._world[rank]

    @property
    def _parent(self) -> dist.ProcessGroup:
        group = dist.group.WORLD if self.pipeline is None else self.pipeline
        assert group is not None
        return group

    def backend(self, device: torch.device) -> str:
        """The backend for a device; "gloo" without a process group."""
        return str(self._parent._get_backend(device).name()) if dist.is_initialized() else "gloo"

    def all_gather(self, value: T, *, across_job: bool = False) -> list[T]:
        """Gathers the values of all ranks of the program, or of all processes of the job."""
        return _all_gather(value, None if across_job else self.pipeline)

    def raise_on_all_ranks(self) -> AbstractContextManager[None]:
        """Raises UsageError on all ranks of the program when anything is raised on one."""
        return together(self.pipeline)

    def new_group(self, ranks: tuple[int, ...], backend: str | None = None, label: str = "") -> dist.ProcessGroup:
        """Creates the group of these ranks, one per label; returns a marker on other ranks."""
        key = ranks, backend, label
        if key not in self._made:
            options = self._inherited_options(backend)
            for members in self._pipelines:
                made = dist.new_group([members[rank] for rank in ranks], backend=backend, **options)
                if made is not dist.GroupMember.NON_GROUP_MEMBER or members == self._pipelines[0]:
                    self._made[key] = cast(dist.ProcessGroup, made)
        return self._made[key]

    def _inherited_options(self, backend: str | None) -> dict[str, Any]:
        """The timeout of the pipeline's group and the priority of its streams, which `dist.new_group` would not take over."""
        for device in ("cuda", "cpu"):
            try:
                options: Any = self._parent._get_backend(torch.device(device)).options
            except (AttributeError, RuntimeError):  # No such backend, or none that tells.
                continue
            inherited: dict[str, Any] = {"timeout": options._timeout}
            if backend is None and dist.is_nccl_available() and isinstance(options, dist.ProcessGroupNCCL.Options):
                own = inherited["pg_options"] = dist.ProcessGroupNCCL.Options(options.is_high_priority_stream)
                own._timeout = options._timeout
            return inherited
        return {}


@contextmanager
def together(group: dist.ProcessGroup | None) -> Iterator[None]:
    """Raises UsageError on all ranks of a group when anything is raised on one."""
    own_error: UsageError | None = None
    try:
        yield
    except UsageError as error:
        own_error = error
    except Exception as error:  # Else the others would wait for this rank.
        own_error = UsageError(f"{error}" if isinstance(error, _diagnostics.UsageError) else f"{type(error).__name__}: {error}")
        own_error.__cause__ = error
    troubles = _all_gather(None if own_error is None else str(own_error), group)
    if own_error is not None:
        raise own_error
    for rank, text in enumerate(troubles):
        if text is not None:
            raise UsageError(f"rank {rank}: {text}")


def check_same_program(program: Program, group: dist.ProcessGroup | None) -> None:
    """Raises UsageError on all ranks of a group if they have different programs.

    The digest of a program of which a rank has read its own rows alone is what the file says. It is true if the fingerprints of
    the rows of all ranks, each computed where they are read, have this digest together.
    """
    rank = dist.get_rank(group) if dist.is_initialized() else 0
    fingerprint = program._fingerprint(rank) if rank < program.num_ranks else ()
    found = _all_gather((program._stated_digest, program.name, program.transports, fingerprint), group)
    for rank, (digest, name, transports, _) in enumerate(found):
        if digest != found[0][0]:
            raise UsageError(
                f"rank 0 has the program {found[0][1]} with the digest {found[0][0]}, but rank {rank} has {name} with {digest}"
            )
        if set(transports) != set(found[0][2]):  # They determine the communicators.
            raise UsageError(
                f"rank 0 has {name} for the transports {', '.join(found[0][2])}, but rank {rank} for {', '.join(transports)}"
            )
    with together(group):
        if not program._is_of([fingerprint for *_, fingerprint in found]):
            check_size(program, "the process group", ranks=len(found))
            raise UsageError(
                f"the rows of {program.name} have changed since the compiler wrote the digest {program._stated_digest}: compile it "
                "again, or load it without `rank`"
            )


def _all_gather(value: T, group: dist.ProcessGroup | None) -> list[T]:
    if not dist.is_initialized():
        return [value]
    values: list[T | None] = [None] * dist.get_world_size(group)
    dist.all_gather_object(values, value, group=group)
    return cast("list[T]", values)
