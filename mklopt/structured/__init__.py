"""Structured outputs: samples made of parts, and an oracle over their labels."""

from .chains import Chain, Structure
from .problem import StructuredProblem, StructuredResult, certify, solve

__all__ = [
    "Chain",
    "Structure",
    "StructuredProblem",
    "StructuredResult",
    "certify",
    "solve",
]
