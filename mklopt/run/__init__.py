"""One run of a solver: the loop, its trace and its result."""

from .loop import solve
from .result import Result
from .trace import Trace

__all__ = ["Result", "Trace", "solve"]
