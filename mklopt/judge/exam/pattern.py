"""What all failures have in common, and no problem that was passed: a fact, no guess.

    all 4 failures, and none of the 98 problems passed, have n ≥ 163

A number separates failures from passes when all of the one lie above all of the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

FEWEST = 2  # failures, and as many passes: less is no pattern
NUMBERS = ("n", "M", "C")
NAMES = ("storage", "bias", "loss", "formulation", "grade")


def pattern(rows: Sequence[Any]) -> str:
    """One sentence about the failures; empty where nothing separates them.

    rows: results with `passed`, and the attributes in NUMBERS and NAMES
    """
    failed = [row for row in rows if not row.passed]
    passed = [row for row in rows if row.passed]
    if min(len(failed), len(passed)) < FEWEST:
        return ""
    found = [*_numbers(failed, passed), *_names(failed, passed)]
    if not found:
        return ""
    return (
        f"all {len(failed)} failures, and none of the {len(passed)} problems passed, "
        f"have {' and '.join(found)}"
    )


def _numbers(failed: list, passed: list) -> Iterator[str]:
    for name in NUMBERS:
        low, high = ([getattr(row, name) for row in rows] for rows in (failed, passed))
        if min(low) > max(high):
            yield f"{name} ≥ {min(low):.4g}"
        elif max(low) < min(high):
            yield f"{name} ≤ {max(low):.4g}"


def _names(failed: list, passed: list) -> Iterator[str]:
    for name in NAMES:
        values = {_kind(row, name) for row in failed}
        others = {_kind(row, name) for row in passed}
        if len(values) == 1 and not values & others:
            yield f"{name} {next(iter(values))}"
        elif len(others) == 1 and not values & others:
            yield f"{name} other than {next(iter(others))}"


def _kind(row: Any, name: str) -> str:
    """A value without parameters: LpNorm(p=2) is LpNorm."""
    return str(getattr(row, name)).partition("(")[0]
