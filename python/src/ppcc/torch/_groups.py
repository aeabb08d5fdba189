"""Process groups of some of a pipeline's ranks."""

from __future__ import annotations

from typing import TypeVar, cast

import torch.distributed as dist

T = TypeVar("T")


class Groups:
    """Makes groups by the ranks of a program, in all pipelines of the job at once.

    All processes of the job make it together, and the same groups in the same order: PyTorch names groups by how many a
    process has made.
    """

    def __init__(self, pipeline: dist.ProcessGroup | None, ranks: int) -> None:
        self._pipeline = pipeline
        self._made: dict[tuple[tuple[int, ...], str | None], dist.ProcessGroup] = {}
        self._pipelines = [tuple(range(ranks))]
        if pipeline is not None:
            found = self.gather(tuple(map(self.world, range(ranks))), everywhere=True)
            self._pipelines = list(dict.fromkeys(found))

    def world(self, rank: int) -> int:
        """What PyTorch calls a rank of the program."""
        return rank if self._pipeline is None else dist.get_global_rank(self._pipeline, rank)

    def gather(self, value: T, *, everywhere: bool = False) -> list[T]:
        """The values of all ranks of the program, or of all processes of the job."""
        if not dist.is_initialized():
            return [value]
        group = None if everywhere else self._pipeline
        values: list[T | None] = [None] * dist.get_world_size(group)
        dist.all_gather_object(values, value, group=group)
        return cast("list[T]", values)

    def make(self, ranks: tuple[int, ...], backend: str | None = None) -> dist.ProcessGroup:
        """The group of these ranks; on others a mark that says so."""
        if (ranks, backend) not in self._made:
            for members in self._pipelines:
                made = dist.new_group([members[rank] for rank in ranks], backend=backend)
                if made is not dist.GroupMember.NON_GROUP_MEMBER or members == self._pipelines[0]:
                    self._made[ranks, backend] = cast(dist.ProcessGroup, made)
        return self._made[ranks, backend]
