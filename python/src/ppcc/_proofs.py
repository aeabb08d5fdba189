"""Schedules for all numbers of microbatches: prove, explain."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from html import escape
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from ._documents import from_row
from ._run import compile_arguments, input_argument, option_argument, run_verdict

Verdict: TypeAlias = Literal["valid", "invalid", "excluded", "undecided"]


@dataclass(frozen=True, slots=True)
class Formula:
    """A sum of multiples of parameters and a constant, such as `3 M + 9`. Call it with their values.

    Examples:
        >>> from fractions import Fraction
        >>> formula = Formula({"M": Fraction(3)}, Fraction(9), True)
        >>> print(formula, formula(M=4))
        3 M + 9 21
    """

    slopes: Mapping[str, Fraction] = field(hash=False)
    """By parameter."""
    intercept: Fraction
    exact: bool
    """False: an upper bound."""

    def __call__(self, **values: int) -> Fraction:
        """Return the value for these values of the parameters."""
        return sum((slope * values[name] for name, slope in self.slopes.items()), self.intercept)

    def __str__(self) -> str:
        terms = [f"{'' if slope == 1 else f'{slope} '}{name}" for name, slope in self.slopes.items() if slope]
        terms += [str(self.intercept)] if self.intercept or not terms else []
        return ("" if self.exact else "at most ") + " + ".join(terms).replace("+ -", "- ")


@dataclass(frozen=True, slots=True)
class ParameterRange:
    """The values of a parameter from `first` to `last` that are `residue` modulo `modulus`."""

    modulus: int
    residue: int
    first: tuple[Formula, ...]
    """The least value is the greatest of these; constants, or formulas of the other parameter."""
    last: tuple[Formula, ...]
    """The greatest value is the least of these; empty: there is none."""

    def includes(self, value: int, **others: int) -> bool:
        """Return whether the value is one of them, for these values of other parameters."""
        return (
            value % self.modulus == self.residue
            and all(value >= first(**others) for first in self.first)
            and all(value <= last(**others) for last in self.last)
        )

    def __str__(self) -> str:
        first, last = (", ".join(map(str, ends)) for ends in (self.first, self.last))
        numbers = f"{first} .. {last}".rstrip() if first != last else first
        return numbers if self.modulus == 1 or first == last else f"{numbers}, {self.residue} modulo {self.modulus}"


@dataclass(frozen=True, slots=True)
class ProvenRange:
    """What is known of a range of values."""

    parameters: Mapping[str, ParameterRange] = field(hash=False)
    """The values, by the parameters that `for_all` names."""
    verdict: Verdict
    """`valid`; `invalid`, with `reason`; `excluded`: the schedule does not admit the values; or `undecided`."""
    makespan: Formula | None
    """In the time unit of the costs; None if it is not known."""
    reason: str
    """Why it is not valid; empty if it is."""

    def includes(self, **values: int) -> bool:
        """Return whether these values are in the range."""
        return all(one.includes(**{"value": values[name]}, **values) for name, one in self.parameters.items())


@dataclass(frozen=True, slots=True)
class ExplainedRange(ProvenRange):
    """What is known of a range of values, with figures. Each is None if it is not known."""

    work: Formula | None
    """The time of all compute actions of all ranks."""
    idle: Formula | None
    """The time without work of all ranks, from 0 to the makespan."""
    activations: Formula | None
    """The largest number of activations of a rank."""
    memory: Formula | None
    """The largest amount of memory of a rank, in the memory unit of the costs."""
    messages: Formula | None
    """Their number."""
    bytes: Formula | None
    """The amount of data of all messages; None without sizes."""
    bottleneck: tuple[str, ...]
    """The actions of one more microbatch on the critical path, such as `rank 1 1F`."""


Range = TypeVar("Range", bound=ProvenRange)


@dataclass(frozen=True)
class Proof(Generic[Range]):
    """The result of `prove`, or of `explain`, whose ranges have figures.

    `print()` shows it as the command does, in the fewest lines.
    """

    schedule: str
    params: Mapping[str, bool | int | float | str] = field(hash=False)
    """The parameters that were given values."""
    for_all: str
    """The others: `"M"`, or `"P,M"`."""
    transports: tuple[str, ...]
    """Those under which it is verified; `"data"`: messages are not."""
    ranges: tuple[Range, ...]
    """All values of the parameters are in one of them, or undecided."""
    valid: bool
    """Whether it is valid for all values that the schedule admits."""
    time_unit: str | None
    """`s`, `ms` or `us`; None if neither model nor cluster says it."""
    memory_unit: str | None
    """`bytes`, or None likewise."""
    _arguments: tuple[str, ...] = field(repr=False)

    def at(self, **values: int) -> Range | None:
        """Return the range of these values, such as `at(M=12)`; None: nothing is known of them."""
        return next((one for one in self.ranges if one.includes(**values)), None)

    @cached_property
    def _text(self) -> str:
        return run_verdict(self._arguments)[1].rstrip("\n")

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        valid = "valid" if self.valid else "not proven"
        return f"<Proof {self.schedule}: {valid} for all {self.for_all} on {', '.join(self.transports)}>"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self._text)}</pre>"


def prove(
    schedule: str | os.PathLike[str],
    /,
    *,
    for_all: str = "M",
    certificate: str | os.PathLike[str] | None = None,
    **arguments: Any,
) -> Proof[ProvenRange]:
    """Verify a schedule for all numbers of microbatches (docs/every-m.md).

    Args:
        schedule: A name of the library, or the path of a `.pp` file.
        for_all: The free parameter, or `"P,M"` for all numbers of ranks too, which is experimental.
        certificate: A file to write a certificate to, for `ppcc-check-proof`.
        **arguments: The arguments of `compile`, without a value of the free parameter.

    Returns:
        The proof, which may say that the schedule is not valid, and why.

    Raises:
        CompileError: The schedule has errors.
        UsageError: An option is unknown or does not fit the others.

    Examples:
        >>> import ppcc
        >>> proof = ppcc.prove("dualpipe", P=4)
        >>> print(proof)
        M            verdict   makespan  reason
        1 .. 7       excluded            <library>/dualpipe.pp:31:36: `M` is 1 to 7, but must be at least 8
        even M >= 8  valid     3 M + 2
        odd M >= 9   excluded            <library>/dualpipe.pp:33:11: DualPipe gives each direction half of the microbatches: M must be even
        dualpipe is valid for every M that it admits, on stream
        >>> proof.valid, proof.at(M=20).makespan(M=20)
        (True, Fraction(62, 1))
    """
    words = (input_argument(schedule), *compile_arguments(for_all=for_all, **arguments))
    more = option_argument("--certificate", None if certificate is None else os.fspath(certificate))
    return _read("prove", words, more, ProvenRange)


def explain(schedule: str | os.PathLike[str], /, *, for_all: str = "M", **arguments: Any) -> Proof[ExplainedRange]:
    """Give makespan, bubble, memory and messages of a schedule as formulas of the number of microbatches (docs/every-m.md).

    Args:
        schedule: A name of the library, or the path of a `.pp` file.
        for_all: The free parameter.
        **arguments: The arguments of `compile`, without a value of the free parameter.

    Returns:
        The formulas, for each range of values.

    Raises:
        CompileError: The schedule has errors.
        UsageError: An option is unknown or does not fit the others.

    Examples:
        >>> import ppcc
        >>> found = ppcc.explain("one_f_one_b", P=4).at(M=100)
        >>> print(found.makespan, found.idle, found.memory, found.messages, sep="; ")
        3 M + 9; 36; 4; 6 M
    """
    words = (input_argument(schedule), *compile_arguments(for_all=for_all, **arguments))
    return _read("explain", words, [], ExplainedRange)


def _read(command: str, words: tuple[str, ...], more: list[str], kind: type[Range]) -> Proof[Range]:
    valid, text = run_verdict([command, *words, *more, "--format=json"])
    document = json.loads(text)
    names = document["for"].split(",")

    def formula(row: Mapping[str, Any] | None) -> Formula | None:
        if row is None:
            return None
        slopes = row["slopes"] if "slopes" in row else {names[-1]: row["slope"]}
        fractions = {name: Fraction(slope) for name, slope in slopes.items()}
        return Formula(fractions, Fraction(row["intercept"]), row["exact"])

    def ends(value: Any) -> tuple[Formula, ...]:
        if value is None:
            return ()
        if isinstance(value, int):
            return (Formula({}, Fraction(value), True),)
        return tuple(Formula({names[0]: Fraction(row["slope"])}, Fraction(row["intercept"]), True) for row in value)

    def values(row: Mapping[str, Any]) -> ParameterRange:
        return ParameterRange(row["modulus"], row["residue"], ends(row["from"]), ends(row["to"]))

    def read(row: Mapping[str, Any]) -> Range:
        parameters = {name: values(row[name]) for name in names} if len(names) > 1 else {names[0]: values(row)}
        figures = ("makespan", "work", "idle", "activations", "memory", "messages", "bytes")
        given = {name: formula(row[name]) for name in figures if name in row}
        return from_row(kind, row, parameters=parameters, **given)

    return from_row(Proof, document, for_all=document["for"], ranges=tuple(map(read, document["ranges"])), valid=valid, _arguments=(command, *words))
