"""What steps have found: a line of JSON each, in the file $PPCC_RESULTS, so that what a killed step has found stays."""

from __future__ import annotations

import json
import os
import time
from typing import Any


def seconds_left() -> float:
    """Until the step should be over; the clock is the same in all processes."""
    return float(os.environ["PPCC_END"]) - time.monotonic()


def _add(**fields: Any) -> None:
    line = json.dumps(fields) + "\n"
    with open(os.environ["PPCC_RESULTS"], "a") as file:
        file.write(line)
    print(line, end="", flush=True)


def passed(name: str) -> None:
    _add(check=name, result="passed")


def failed(name: str, why: object) -> None:
    _add(check=name, result="failed", why=str(why).strip()[-2000:])


def skipped(name: str, why: str, count: int = 1) -> None:
    _add(check=name, result="skipped", why=why, count=count)


def check(name: str, is_right: bool, why: object = "") -> None:
    passed(name) if is_right else failed(name, why)


def figure(name: str, value: object, unit: str = "") -> None:
    _add(figure=name, value=round(value, 4) if isinstance(value, float) else value, unit=unit)
