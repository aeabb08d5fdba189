"""The exceptions of ppcc.torch."""

from .. import _diagnostics
from .._diagnostics import Error


class UsageError(_diagnostics.UsageError, RuntimeError):
    """A program does not fit its stages, process group or batch. Also a RuntimeError until the next release."""


class StepError(Error, RuntimeError):
    """A step failed on this rank or on another one; the message names the rank, the action and the cause.

    The process groups of the job are aborted: end the process and resume from a checkpoint.

    Attributes:
        flight_recorder: What PyTorch's flight recorder had on this rank when the step failed, as its tools read it
            (`python -m torch.distributed.flight_recorder.fr_trace`); None where it is off (`TORCH_FR_BUFFER_SIZE`).
    """

    def __init__(self, text: str, flight_recorder: bytes | None = None) -> None:
        super().__init__(text)
        self.flight_recorder = flight_recorder
