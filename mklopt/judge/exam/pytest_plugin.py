"""A pytest plugin: one test per problem for a solver of your own.

    @pytest.mark.mklopt_solver("mysolver:solve", losses=["hinge"], tol=1e-5)
    def test_my_solver(mklopt_verdict):
        assert mklopt_verdict.passed, mklopt_verdict.diagnosis

The marker takes what `mklopt.check_solver` takes. Nothing of mklopt is imported before
a test asks for the fixture.
"""

from __future__ import annotations

import os
import zlib
from dataclasses import replace
from typing import Any

import pytest


def pytest_configure(config: Any) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers",
        "mklopt_solver(solver, **asked): one test per problem of mklopt's "
        "exam for solvers; use the fixture mklopt_verdict",
    )


def pytest_generate_tests(metafunc: Any) -> None:
    """Make one test of each question that a marked test asks for."""
    if "mklopt_verdict" not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker("mklopt_solver")
    if marker is None or len(marker.args) != 1:
        raise pytest.UsageError(
            f"{metafunc.definition.name} uses mklopt_verdict: mark it with "
            "@pytest.mark.mklopt_solver(solver)"
        )
    from .exam import TIME_LIMIT
    from .plan import plan
    from .target import find_solver

    asked = {"seed": _shared_seed(), **marker.kwargs}
    limit = asked.pop("time_limit", TIME_LIMIT)
    try:
        target = find_solver(marker.args[0])
        made = plan(target.stated or target.solver, **asked)
    except (ValueError, TypeError) as error:
        raise pytest.UsageError(f"{metafunc.definition.name}: {error}") from None
    cases = [
        pytest.param((target.solver, q, limit, made.seed), id=q.title)
        for q in made.questions
    ]
    metafunc.parametrize("mklopt_verdict", cases, indirect=True)


@pytest.fixture
def mklopt_verdict(request: Any) -> Any:
    """The result of one problem: a `mklopt.judge.exam.exam.ProblemResult`."""
    from .exam import examine

    solver, question, limit, seed = request.param
    rows, refused = examine(solver, [question], limit)
    if not rows:
        pytest.skip(f"refused: {refused[0]}")
    (found,) = rows
    return found if found.passed else _with_seed(found, seed)


def _shared_seed() -> int | None:
    """One seed for all workers of a run with xdist, so that they ask the same."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    return None if run is None else zlib.crc32(run.encode()) % 10**6


def _with_seed(found: Any, seed: int) -> Any:
    """A failure that tells how to repeat it."""
    if found.grade != "fresh":
        return found
    size = f"n = {found.n}, M = {found.M}, C ≤ {found.C:.4g}, {found.storage}"
    words = f"{found.diagnosis} ({size}; seed={seed} draws it again)"
    return replace(found, diagnosis=words)
