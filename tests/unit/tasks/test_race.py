"""Races: fair runs, profiles, and everything that is saved."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import mklopt
from mklopt.cli import main
from mklopt.formulations import BlockL1, BlockNorm, LpNorm
from mklopt.tasks import race as race_module
from mklopt.tasks.race import Race, Run, race


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
    shown = json.loads(done.stdout)
    assert [run["solver"] for run in shown["runs"]] == ["analytic", "auto"]
    assert (tmp_path / "out" / "race.pdf").exists()
    wrong = CliRunner().invoke(main, ["race", "--data", "wdbc", "--solvers", "fast"])
    assert wrong.exit_code == 2 and "fast" in wrong.output
    words = ["race", "--data", "wdbc", "--solvers", "auto", "--seeds", "x"]
    wrong = CliRunner().invoke(main, words)
    assert wrong.exit_code == 2 and "such as 0,1,2" in wrong.output


def test_repeats_go_round_all_solvers():
    found = race(problem(), ["analytic", "smo_mkl"], repeats=2, reference=False)
    order = [(run.solver, run.repeat) for run in found.runs]
    assert order == [("analytic", 0), ("smo_mkl", 0), ("analytic", 1), ("smo_mkl", 1)]
    first, _, second, _ = (run.result.trace for run in found.runs)
    np.testing.assert_array_equal(first["gap"], second["gap"])  # the same run, timed
    assert found.to_frame()["repeat"].tolist().count(1) > 0
    with pytest.raises(ValueError, match="repeats = 0"):
        race(problem(), ["auto"], repeats=0)


def interrupted_at(monkeypatch, count):
    """From its count-th call on, `solve` ends as after Ctrl-C."""
    calls, before = [], race_module.solve

    def solve(*given, **how):
        calls.append(given)
        result = before(*given, **how)
        return replace(result, status="interrupted") if len(calls) >= count else result

    monkeypatch.setattr(race_module, "solve", solve)


def test_ctrl_c_keeps_the_runs_that_are_complete(monkeypatch):
    interrupted_at(monkeypatch, 4)  # two runs that compile, one that counts, Ctrl-C
    monkeypatch.setattr(race_module, "exact", lambda _: pytest.fail("too slow now"))
    found = race(problem(), ["analytic", "smo_mkl"])
    assert [run.solver for run in found.runs] == ["analytic"]
    assert found.stopped == "stopped by Ctrl-C after 1 of 2 runs"
    assert found.stopped in str(found) and found.stopped in found._repr_html_()


def test_ctrl_c_inside_a_reference_loses_no_run(monkeypatch):
    calls = []

    def refuse(problem):
        calls.append(problem)
        raise KeyboardInterrupt

    monkeypatch.setattr(race_module, "exact", refuse)
    found = race({"one": problem(), "two": problem(1)}, ["analytic"])
    assert len(found.runs) == 2 and len(calls) == 1  # no other reference is begun
    lower, upper = found.intervals["two"]
    assert 0.0 < lower <= upper
    assert found.stopped == "stopped by Ctrl-C before references were solved"


def test_ctrl_c_before_the_first_run_is_raised(monkeypatch):
    interrupted_at(monkeypatch, 1)
    with pytest.raises(KeyboardInterrupt):
        race(problem(), ["analytic"])


def test_progress_names_the_run(monkeypatch, capsys):
    monkeypatch.setattr("mklopt.run.progress.LINE_SECONDS", 0.0)
    race(problem(), ["analytic"], verbose=True)
    said = capsys.readouterr().err
    assert "compiling analytic on problem" in said
    assert "run 1 of 1, analytic on problem: gap" in said


def test_a_notebook_shows_the_table(found):
    shown = found._repr_html_()
    assert shown.count("<tr>") == 1 + len(found.runs)
    assert "<p>left out: lp_newton on easy" in shown


def test_mistakes_are_explained():
    with pytest.raises(ValueError, match="a list of names"):
        race(problem(), "auto")
    with pytest.raises(ValueError, match="race takes a Problem"):
        race([1], ["auto"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="no solver takes"):
        race(problem(), ["simple"])
