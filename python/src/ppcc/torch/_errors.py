from .._diagnostics import Error


class RuntimeMisuse(Error, RuntimeError):
    """A program and its stages, process group or batch do not fit together."""
