"""What check() says of schedules that others have made."""

from __future__ import annotations

import importlib.util
import re
from typing import Any

import ppcc
import pytest
from ppcc.torch import UsageError, check
from torch.distributed.pipelining import schedules

from .test_documentation import DOCS, listing


README = DOCS.parent / "README.md"


def has(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


class Single(schedules.Schedule1F1B):
    """Without the process group that its constructor asks for."""

    def __init__(self, count: int, microbatches: int) -> None:
        self._num_stages, self._n_microbatches = count, microbatches
        self.scale_grads = self._finalize_gradients = False


class AllFirst(schedules.ScheduleGPipe):
    __init__ = Single.__init__


class Lowered(schedules._PipelineScheduleRuntime):
    def __init__(self, rows: list[str]) -> None:
        read = schedules._Action.from_str
        self.pipeline_order_with_comms = {
            rank: [action for cell in row.split() if (action := read(cell)) is not None] for rank, row in enumerate(rows)
        }


def rows_of(program: ppcc.Program, transport: str = "stream") -> list[str]:
    return [row.replace(",", " ") for row in program.emit("torch-csv", f"--transport={transport}").splitlines()]


def test_pytorch() -> None:
    found = check(Single(4, 8))
    assert found and "batch[0SEND_F3;0RECV_B0]" in found.listing and found.listing.count("rank") == 4
    assert "rendezvous" in found.safe_transports and str(found).startswith("4 ranks, 4 stages, 8 microbatches: cannot hang under stream")
    assert check(AllFirst(3, 4))
    order = ppcc.compile("interleaved_1f1b", P=2, V=2, M=4, comm_order="late", transport="stream-per-edge")
    late = Lowered(rows_of(order, "stream-per-edge"))
    hangs = check(late)
    assert not hangs and "stream-per-edge" in hangs.safe_transports
    assert "can hang under stream" in str(hangs) and "ranks 0 and 1 wait for each other" in str(hangs)
    assert check(late, transport="stream-per-edge")
    assert check(Lowered(rows_of(ppcc.compile("dualpipe_v", P=2, M=4))))


def test_what_is_wrong_under_every_transport() -> None:
    found = check([["0F0", "0SEND_F0", "0RECV_B0", "0B0"], ["1F0", "1B0", "1SEND_B0"]])
    assert not found and found.safe_transports == () and "no transport is safe" in str(found)
    part = check([["0F0", "0F1", "0SEND_F0", "0SEND_F1"], ["1RECV_F0", "1RECV_F1", "1F0", "1F1", "1B0"]])
    assert not part and str(part).startswith("2 ranks, 2 stages, 2 microbatches: does not do a training step")


def test_programs() -> None:
    """With moves and declared actions, which lists of actions do not have."""
    for name in ("bpipe", "breadth_first_fsdp"):
        assert check(ppcc.compile(name, P=4, M=8))


def test_what_is_no_schedule() -> None:
    with pytest.raises(UsageError, match="a int is no schedule"):
        check(3)
    with pytest.raises(UsageError, match="give `ppcc.compile"):
        check("1f1b")
    with pytest.raises(UsageError, match="Single is a class; give an object of it"):
        check(Single)
    with pytest.raises(UsageError, match="the actions of rank 1 cannot be read: `0` is not an action"):
        check([["0F0", "0B0"], "0F0 0B0"])
    with pytest.raises(UsageError, match="microbatches=16, but the schedule has 8"):
        check(Single(4, 8), microbatches=16)
    with pytest.raises(UsageError, match="ranks=2, but the schedule has 4"):
        check(Single(4, 8), ranks=2)
    assert check(Single(4, 8), ranks=4, microbatches=8)
    with pytest.raises(ppcc.UsageError, match="`gloo` is `rendezvous`"):
        check(Single(4, 8), transport="gloo")
    with pytest.raises(UsageError, match="decides about them while it runs"):
        unknown: Any = schedules.PipelineScheduleMulti.__new__(schedules.PipelineScheduleMulti)
        check(unknown)


@pytest.mark.skipif(not has("d9d"), reason="NOT RUN because d9d is not installed")
def test_d9d() -> None:
    from ppcc.torch.d9d import ProgramBuilder

    program = ppcc.compile("dualpipe_v", P=2, M=4)
    found = check(ProgramBuilder(program), microbatches=4, ranks=2)
    assert found and found.listing == program.emit("actions")
    from d9d.pipelining.infra.schedule.program.interleaved import Interleaved1F1BPipelineProgramBuilder

    assert check(Interleaved1F1BPipelineProgramBuilder(num_stages_per_rank=2, enable_zero_bubble=False), microbatches=4, ranks=2)


@pytest.mark.skipif(not has("deepspeed"), reason="NOT RUN because DeepSpeed is not installed")
def test_deepspeed() -> None:
    from deepspeed.runtime.pipe.schedule import DualPipeVSchedule, TrainSchedule

    found = check(TrainSchedule(micro_batches=6, stages=3, stage_id=0), transport="rendezvous")
    assert found and found.listing.startswith("rank 0: 0F0")
    assert check(DualPipeVSchedule(micro_batches=6, stages=2, stage_id=1))


@pytest.mark.skipif(not has("megatron"), reason="NOT RUN because megatron-core is not installed")
def test_megatron() -> None:
    from megatron.core.pipeline_parallel import get_forward_backward_func
    from ppcc.megatron import ForwardBackward

    from .megatron_models import make_config

    config = make_config(4, 4, batch_p2p_comm=True)
    found = check(get_forward_backward_func(4, None), config=config, microbatches=6)
    assert found and "batch[1SEND_B0;1RECV_F3]" in found.listing
    config.batch_p2p_comm = False
    alone = check(get_forward_backward_func(4, None), config=config, microbatches=6)
    assert "batch" not in alone.listing
    config = make_config(8, 4, 2, batch_p2p_comm=False, overlap_p2p_comm=True, microbatch_group_size_per_vp_stage=4)
    overlapped = check(get_forward_backward_func(4, 2), config=config, microbatches=8)
    compute = [cell for cell in overlapped.listing.splitlines()[1].split() if cell.strip("0123456789") in "FB"]
    ours = ppcc.compile("interleaved_1f1b", P=4, V=2, M=8, comm_order="none")
    assert compute == ours.emit("actions").splitlines()[1].split()[2:]
    assert check(ForwardBackward(ppcc.compile("zb_h1", P=2, M=4)))
    with pytest.raises(UsageError, match="give check\\(\\) `config`"):
        check(get_forward_backward_func(4, None), microbatches=4)
    with pytest.raises(UsageError, match="give what it returns"):
        check(get_forward_backward_func, config=config, microbatches=4)
    with pytest.raises(UsageError, match="needs `config.virtual_pipeline_model_parallel_size`"):
        check(get_forward_backward_func(4, 2), config=make_config(8, 4), microbatches=8)
    for wrong in ("zbv", lambda: ppcc.compile("zb_h1", P=2, M=4)):
        with pytest.raises(UsageError, match="is neither a Program nor a function from a number of microbatches"):
            ForwardBackward(wrong)  # type: ignore[arg-type]


def test_the_page() -> None:
    exec(compile(listing("hangs.md"), "hangs.md", "exec"), {})


def test_the_hook_of_readme(capsys: pytest.CaptureFixture[str]) -> None:
    from megatron.core.pipeline_parallel import get_forward_backward_func

    from .megatron_models import make_config

    (hook,) = re.findall(r"^```python\n(import ppcc.torch\n.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)
    config = make_config(8, 4, 2, batch_p2p_comm=False, overlap_p2p_comm=True, microbatch_group_size_per_vp_stage=4)
    exec(hook, {"schedule": Single(4, 8), "get_forward_backward_func": get_forward_backward_func, "config": config})
    (shown,) = re.findall(r"^# (.*)$", hook, re.MULTILINE)
    first, second = capsys.readouterr().out.splitlines()
    assert second == shown and first == shown.replace("8 stages", "4 stages")
