"""Compile pipeline-parallel schedules into the program of each rank, verify and simulate them.

Times and amounts of memory are in the units of the costs that you pass; without costs a forward takes 1 and holds 1.
`ppcc.torch` runs programs on torch.distributed, `ppcc.megatron`, `ppcc.deepspeed` and `ppcc.torchtitan` in these systems.
Import these modules explicitly, since they need other packages.

Attributes:
    __version__: The version of the compiler, the same as `version()`.

Examples:
    >>> import ppcc
    >>> program = ppcc.compile("dualpipe", P=8, M=20)
    >>> program
    <Program dualpipe(P=8, M=20, split_middle=True): 8 ranks, 924 rows>
    >>> str(program.actions[0][0])  # The first action of rank 0.
    '0F0'
    >>> program.simulate().makespan
    66
"""

from typing import Any

from ._compiler import (
    ScheduleInfo,
    SynthesisResult,
    compile,
    compile_source,
    decompile,
    fmt,
    load,
    schedules,
    synthesize,
    version,
)
from ._diagnostics import CompileError, Diagnostic, Error, Note, UsageError
from ._diff import Difference, RankDifference, diff
from ._notebook import Comparison, compare, explore
from ._program import Action, Group, Kind, Pipe, Program, Site
from ._proofs import ExplainedRange, Formula, ParameterRange, Proof, ProvenRange, explain, prove
from ._report import Bubble, CriticalSection, LiveActivations, RankReport, Report
from ._rows import Columns
from ._sweep import Sweep, SweepPoint, sweep
from ._timeline import Timeline

__all__ = [
    "Action",
    "Bubble",
    "Columns",
    "Comparison",
    "CompileError",
    "CriticalSection",
    "Diagnostic",
    "Difference",
    "Error",
    "ExplainedRange",
    "Formula",
    "Group",
    "Kind",
    "LiveActivations",
    "Note",
    "ParameterRange",
    "Pipe",
    "Program",
    "Proof",
    "ProvenRange",
    "RankDifference",
    "RankReport",
    "Report",
    "ScheduleInfo",
    "Site",
    "Sweep",
    "SweepPoint",
    "SynthesisResult",
    "Timeline",
    "UsageError",
    "compare",
    "compile",
    "compile_source",
    "decompile",
    "diff",
    "explain",
    "explore",
    "fmt",
    "load",
    "prove",
    "schedules",
    "sweep",
    "synthesize",
    "version",
]

__version__: str


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
