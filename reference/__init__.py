"""WHAT THE ANSWER IS: primal and dual programs, the interval of f*, stored answers."""

if not __name__.startswith("mklopt."):
    raise ImportError(
        "import mklopt.reference, not reference: a bare import would make second "
        "copies of every class"
    )

from .c_zero import C_zero
from .envelope import envelope_agreement
from .exact import Reference, at_weights, solve, solve_dual
from .largest_margin import HardMargin, hard_margin
from .oracle_program import conic_oracle
from .polishing import polish, solve_sharply
from .programs import dual, primal
from .store import Store

__all__ = [
    "C_zero",
    "HardMargin",
    "Reference",
    "Store",
    "at_weights",
    "conic_oracle",
    "dual",
    "envelope_agreement",
    "hard_margin",
    "polish",
    "primal",
    "solve",
    "solve_dual",
    "solve_sharply",
]
