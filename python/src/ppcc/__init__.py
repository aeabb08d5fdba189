"""Compiles pipeline-parallel schedules into the program of each rank.

    import ppcc

    program = ppcc.compile("dualpipe", P=8, M=20)
    program.actions[0]          # what rank 0 does
    program.simulate()          # makespan, bubbles, memory
    program.timeline()          # a picture; in a notebook it shows itself

`ppcc.torch` runs programs on torch.distributed; it is imported by itself, since it needs PyTorch.
"""

from ._compiler import (
    ScheduleInfo,
    Sweep,
    Synthesized,
    compile,
    compile_source,
    load,
    schedules,
    sweep,
    synthesize,
    version,
)
from ._diagnostics import CompileError, Diagnostic, Error, Note, UsageError
from ._notebook import Comparison, compare, explore
from ._program import Action, Group, Kind, Pipe, Program, Site
from ._report import Bubble, CriticalSection, Held, RankReport, Report
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
    "Held",
    "Kind",
    "Note",
    "Pipe",
    "Program",
    "RankReport",
    "Report",
    "ScheduleInfo",
    "Site",
    "Sweep",
    "Synthesized",
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
