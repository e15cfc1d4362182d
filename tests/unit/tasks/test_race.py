"""Races: fair runs, profiles, and everything that is saved."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import mklopt
from mklopt.cli import main
from mklopt.formulations import BlockL1, BlockNorm, LpNorm
from mklopt.tasks import race as race_module
from mklopt.tasks.race import Race, Run, performance_profile, race


def problem(seed=0, formulation=None, **how):
    rng = np.random.default_rng(seed)
    L = rng.normal(size=(4, 30, 3))
    y = np.sign(L[0, :, 0] + 0.4 * rng.normal(size=30))
    stack = mklopt.GramStack.from_factors(L)
    return mklopt.Problem(stack, y, "hinge", formulation or LpNorm(2), **how)


@pytest.fixture(scope="module")
def found():
    both = {"easy": problem(0, BlockL1()), "other": problem(1, BlockL1())}
    return race(both, ["analytic", "hessian", "lp_newton"], tol=1e-6, time_limit=10.0)


def test_every_solver_runs_on_the_same_problem_alone(found):
    assert found.problems == ["easy", "other"]
    assert found.solvers == ["analytic", "hessian"]  # lp_newton has no p = 1
    assert set(found.left_out) == {"lp_newton on easy", "lp_newton on other"}
    stacks = [run.result.problem.grams for run in found.runs]
    assert len({id(stack) for stack in stacks}) == len(stacks)
    for run in found.runs:
        trace = run.result.trace
        assert run.result.relative_gap <= 1e-6
        assert run.weights.shape == (len(trace), 4)
        assert run.time_to(1e-6) == trace["seconds"][np.argmax(trace["gap"] <= 1e-6)]
        assert run.time_to(0.0) == np.inf


def test_the_interval_contains_f_star_and_is_not_the_best_of_the_runs(found):
    for name, (lower, upper) in found.intervals.items():
        some = [r.result.certificate for r in found.runs if r.problem == name]
        exact = mklopt.reference.solve(some[0].problem)
        assert exact.lower - 1e-9 <= lower <= upper <= exact.upper + 1e-9
        assert found.width(name) < 1e-7


def test_only_solvers_that_draw_run_from_every_seed():
    one = problem(formulation=BlockNorm(1.5), bias=False)
    how = dict(tol=1e-2, time_limit=2.0, seeds=[0, 1], reference=False)
    runs = race(one, ["analytic", "obscure"], **how).runs  # type: ignore[arg-type]
    assert [(run.solver, run.seed) for run in runs] == [
        ("analytic", 0), ("obscure", 0), ("obscure", 1),
    ]  # fmt: skip
    first, second = (run.result.trace["primal"] for run in runs[1:])
    assert not np.array_equal(first, second)


def test_profiles_are_shares_of_problems_within_a_ratio():
    inf = np.inf
    times = [[1.0, 2.0], [4.0, 1.0], [3.0, inf], [inf, inf]]
    ratios, shares = performance_profile(times)
    np.testing.assert_allclose(ratios, [1, 2, 4])
    np.testing.assert_allclose(shares[:, 0], [0.5, 0.5, 0.75])
    np.testing.assert_allclose(shares[:, 1], [0.25, 0.5, 0.5])
    with pytest.raises(ValueError, match="inf for failures"):
        performance_profile([[np.nan]])


def run_of(seed, seconds, gap=0.0, bounds=(1.0, 2.0)):
    """A run that reaches the tolerance after so many seconds."""
    trace = {"gap": np.array([1.0, gap]), "seconds": np.array([0.0, seconds])}
    certificate = SimpleNamespace(lower=bounds[0], upper=bounds[1])
    result: Any = SimpleNamespace(trace=trace, certificate=certificate)
    return Run("one", "drawn", seed, result, np.zeros((2, 1)))


def test_times_are_means_over_seeds():
    runs = [run_of(0, 1.0), run_of(1, 2.0), run_of(2, 6.0)]
    assert Race(runs, {}, 1e-6, {}).times().tolist() == [[3.0]]
    runs[1] = run_of(1, 2.0, gap=0.5)  # one seed fails
    assert Race(runs, {}, 1e-6, {}).times().tolist() == [[np.inf]]


def test_the_interval_is_that_of_all_certificates_together():
    runs = [run_of(0, 1.0, bounds=(1.0, 2.5)), run_of(1, 1.0, bounds=(0.5, 2.0))]
    for some in (runs, runs[::-1]):
        assert race_module._interval(problem(), some, reference=False) == (1.0, 2.0)
    one = problem()
    known = mklopt.reference.solve(one)
    around = [run_of(0, 1.0, bounds=(0.0, 1e9))]
    assert race_module._interval(one, around, None) == (known.lower, known.upper)
    inside = [run_of(0, 1.0, bounds=(known.upper, known.upper))]
    assert race_module._interval(one, inside, True) == (known.upper, known.upper)


def test_times_and_tables_have_a_row_per_run(found):
    times = found.times()
    for i, name in enumerate(found.problems):
        for j, solver in enumerate(found.solvers):
            (run,) = [r for r in found.runs if (r.problem, r.solver) == (name, solver)]
            assert times[i, j] == run.time_to(found.tol) < np.inf
    assert np.all(found.times(tol=0.0) == np.inf)
    table, frame = found.table(), found.to_frame()
    assert [*table.columns[1].cells] == [run.solver for run in found.runs]
    assert list(frame.columns[:3]) == ["problem", "solver", "seed"]
    assert frame["width"].iloc[0] == found.width("easy")
    shown = str(found)
    assert "left out: lp_newton on easy" in shown and "converged" in shown


def test_the_command_line_writes_the_same(tmp_path):
    words = ["race", "--data", "wdbc", "--samples", "40", "--solvers", "analytic,auto"]
    words += ["--out", str(tmp_path / "out"), "--json"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    shown = json.loads(done.output)
    assert [run["solver"] for run in shown["runs"]] == ["analytic", "auto"]
    assert (tmp_path / "out" / "race.pdf").exists()
    wrong = CliRunner().invoke(main, ["race", "--data", "wdbc", "--solvers", "fast"])
    assert wrong.exit_code == 2 and "fast" in wrong.output
    words = ["race", "--data", "wdbc", "--solvers", "auto", "--seeds", "x"]
    wrong = CliRunner().invoke(main, words)
    assert wrong.exit_code == 2 and "such as 0,1,2" in wrong.output


def test_mistakes_are_explained():
    with pytest.raises(ValueError, match="a list of names"):
        race(problem(), "auto")
    with pytest.raises(ValueError, match="race takes a Problem"):
        race([1], ["auto"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="no solver takes"):
        race(problem(), ["simple"])
