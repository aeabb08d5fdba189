"""Compiles pipeline-parallel schedules into the program of each rank.

    import ppcc

    program = ppcc.compile("dualpipe", P=8, M=20)
    program.actions[0]          # what rank 0 does
    program.simulate()          # makespan, bubbles, memory
    program.timeline()          # a picture; in a notebook it shows itself

`ppcc.torch` runs programs on torch.distributed; it is imported by itself, since it needs PyTorch.
"""

from typing import Any

from ._compiler import (
    ScheduleInfo,
    Sweep,
    SynthesisResult,
    compile,
    compile_source,
    load,
    schedules,
    sweep,
    synthesize,
    version,
)
from ._deprecated import renamed_in_module
from ._diagnostics import CompileError, Diagnostic, Error, Note, UsageError
from ._notebook import Comparison, compare, explore
from ._program import Action, Group, Kind, Pipe, Program, Site
from ._report import Bubble, CriticalSection, LiveActivations, RankReport, Report
from ._rows import Columns
from ._timeline import Timeline

__all__ = [
    "Action",
    "Bubble",
    "Columns",
    "Comparison",
    "CompileError",
    "CriticalSection",
    "Diagnostic",
    "Error",
    "Group",
    "Kind",
    "LiveActivations",
    "Note",
    "Pipe",
    "Program",
    "RankReport",
    "Report",
    "ScheduleInfo",
    "Site",
    "Sweep",
    "SynthesisResult",
    "Timeline",
    "UsageError",
    "compare",
    "compile",
    "compile_source",
    "explore",
    "load",
    "schedules",
    "sweep",
    "synthesize",
    "version",
]

__version__: str

_renamed = renamed_in_module(__name__, {"Held": "LiveActivations", "Synthesized": "SynthesisResult"}, globals())


def __getattr__(name: str) -> Any:
    return version() if name == "__version__" else _renamed(name)
