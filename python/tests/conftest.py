"""What pytest says first."""

import importlib.util


def pytest_report_header() -> str:
    found = importlib.util.find_spec("torch") is not None
    return "interop: with PyTorch" if found else "interop: NOT RUN because PyTorch is not installed (./dev interop)"
