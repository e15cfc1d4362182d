"""Hypotheses: what may be wrong with a candidate, each of them certified.

A hypothesis changes one thing: the problem (other_problems.py: another C, Ω, loss, no
bias, one kernel or sample left out) or the candidate (other_points.py: a sign, a
factor, an order, the α that belongs to the weights). It explains a failure when the
changed pair is certified a hundred times better, or thirty times and to ten times the
tolerance. Then the words are not a guess: they state for which problem the candidate IS
optimal.
"""

from __future__ import annotations

from collections.abc import Callable

from .case import Case, Explanations
from .other_points import (
    halves,
    infeasible,
    permuted_weights,
    scaled_dual,
    scaled_weights,
    stale,
    transformed_weights,
    wrong_bias,
    wrong_sign,
)
from .other_problems import (
    bias,
    ignored_kernels,
    ignored_samples,
    other_C,
    other_C_per_class,
    other_formulation,
    other_kernels,
    other_loss,
    single_precision,
)

HYPOTHESES: tuple[Callable[[Case], Explanations], ...] = (
    wrong_sign, infeasible, bias, other_C, other_C_per_class, other_formulation,
    other_loss, scaled_weights, transformed_weights, scaled_dual, permuted_weights,
    other_kernels, ignored_kernels, ignored_samples, single_precision, wrong_bias,
    stale, halves,
)  # fmt: skip
