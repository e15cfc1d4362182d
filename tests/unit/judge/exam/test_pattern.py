"""What separates failures from passes is told, and nothing else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mklopt.judge.exam.pattern import pattern

USUAL = {
    "n": 30, "M": 4, "C": 1.0, "storage": "packed", "bias": True, "loss": "hinge()",
    "formulation": "LpNorm(p=2)", "grade": "fresh",
}  # fmt: skip


def rows(*failed: dict, passed: Any = ({}, {}, {})) -> list:
    some = [(x, False) for x in failed] + [(x, True) for x in passed]
    return [SimpleNamespace(**USUAL | x, passed=good) for x, good in some]


@pytest.mark.parametrize(
    "failed, words",
    [
        ([{"n": 163}, {"n": 400}], "n ≥ 163"),
        ([{"n": 2}, {"n": 5}], "n ≤ 5"),
        ([{"C": 1e4}, {"C": 2345.6}], "C ≥ 2346"),
        ([{"storage": "full"}] * 2, "storage full"),
        ([{"bias": False}] * 3, "bias False"),
        ([{"loss": "huber(delta=1)"}, {"loss": "huber(delta=2)"}], "loss huber"),
        ([{"loss": "squared()"}, {"loss": "huber()"}], "loss other than hinge"),
        ([{"n": 163, "storage": "full"}] * 2, "n ≥ 163 and storage full"),
    ],
)  # fmt: skip
def test_what_separates_failures_is_told(failed, words):
    told = pattern(rows(*failed))
    assert told.endswith(f" have {words}")
    count = f"all {len(failed)} failures, and none of the 3 problems passed"
    assert told.startswith(count)


def test_what_separates_nothing_is_not_told():
    assert pattern(rows({"n": 163}, {"n": 20})) == ""  # on both sides
    assert pattern(rows({"n": 163}, {"n": 400}, passed=[{"n": 200}, {}])) == ""
    assert pattern(rows({"n": 163})) == ""  # one failure is no pattern
    assert pattern(rows({"n": 163}, {"n": 400}, passed=[{}])) == ""
    assert pattern(rows()) == pattern([]) == ""
    some = rows(
        {"storage": "full"}, {"storage": "factors"}, passed=[{}, {"bias": False}]
    )
    assert pattern(some).endswith("have storage other than packed")
