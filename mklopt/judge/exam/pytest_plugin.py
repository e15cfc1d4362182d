"""A pytest plugin: one test per graded problem for a solver of your own.

    @pytest.mark.mklopt_solver("mysolver:solve", losses=["hinge"], tol=1e-5)
    def test_my_solver(mklopt_verdict):
        assert mklopt_verdict.passed, mklopt_verdict.diagnosis

The marker takes what `mklopt.check_solver` takes. Nothing of mklopt is imported before
a test asks for the fixture.
"""

from __future__ import annotations

from typing import Any

import pytest


def pytest_configure(config: Any) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers",
        "mklopt_solver(solver, **asked): one test per graded problem of mklopt's "
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
    from .plan import find_solver, plan

    asked = dict(marker.kwargs)
    limit = asked.pop("time_limit", 10.0)
    try:
        solver = find_solver(marker.args[0])
        questions = plan(solver, **asked).questions
    except (ValueError, TypeError) as error:
        raise pytest.UsageError(f"{metafunc.definition.name}: {error}") from None
    cases = [pytest.param((solver, [q], limit), id=q.title) for q in questions]
    metafunc.parametrize("mklopt_verdict", cases, indirect=True)


@pytest.fixture
def mklopt_verdict(request: Any) -> Any:
    """The result of one graded problem: a `mklopt.judge.exam.exam.ProblemResult`."""
    from .exam import examine

    (found,) = examine(*request.param)
    return found
