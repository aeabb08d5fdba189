from .. import _diagnostics
from .._diagnostics import Error


class UsageError(_diagnostics.UsageError, RuntimeError):
    """A program and its stages, process group or batch do not fit together. (A RuntimeError for one more release.)"""


class StepError(Error, RuntimeError):
    """A step broke off, on this rank or on another one: the message says on which, at which action, and why. The process
    groups of the job are of no use any more."""
