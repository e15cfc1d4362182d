"""Each benchmark from end to end on small problems: what it prints, what can fail."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest

from benchmarks import (
    certificate,
    checkers,
    digits,
    disk,
    epochs,
    exact,
    features,
    from_x,
    harness,
    many_samples,
    million,
    multiclass,
    operators,
    spicy,
    streaming,
    wrappers,
)
from mklopt import GramStack, Problem, certify, data, formulation
from mklopt.formulations import FixedWeights, GroupLasso, LpNorm
from mklopt.kernels import by_rows
from mklopt.util import style


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    """Benchmarks write here, and run in this process."""
    monkeypatch.setattr(style, "FOLDER", tmp_path)
    monkeypatch.setattr(harness, "alone", lambda function, *given: function(*given))
    return tmp_path


def run(bench, monkeypatch, capsys, *words: str) -> str:
    """What a benchmark prints."""
    monkeypatch.setattr(sys, "argv", ["bench", *words])
    bench.main()
    return capsys.readouterr().out


# ---- certificate -----------------------------------------------------------------


@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("loss", ["hinge", "squared"])
def test_the_points_of_the_certificate_benchmark_are_optimal(loss, C):
    K, y = harness.subset_gaussians(40, 3)
    theta = np.full(3, 1 / 3)
    grams = GramStack(K)
    point = {"hinge": certificate.hinge_point, "squared": certificate.ridge_point}
    alpha = point[loss](grams.combine(theta), y, C)
    problem = Problem(grams, y, loss, FixedWeights(theta), C)
    assert 0 <= certify(problem, dual=alpha, weights=theta).relative_gap <= 1e-12


def test_the_cost_of_a_certificate_is_shown(monkeypatch, capsys, folder):
    small, medians = harness.subset_gaussians(30, 3), harness.medians
    monkeypatch.setattr(harness, "subset_gaussians", lambda n, M: small)
    monkeypatch.setattr(harness, "medians", lambda *f: medians(*f, rounds=1))
    monkeypatch.setattr(certificate, "SIZE", (30, 3))
    out = run(certificate, monkeypatch, capsys)
    assert out.count("GroupLasso, C=") == 2 and "building the stack:" in out
    assert "| squared, FixedWeights, C=1 |" in (folder / "certificate.md").read_text()


# ---- single solvers --------------------------------------------------------------


def test_wrappers_stand_beside_svc():
    table = wrappers.table(40, 4, [(2.0, 1.0)], ["analytic", "lp_newton"])
    solvers = list(table.columns[1].cells)
    gaps = [float(str(cell)) for cell in table.columns[6].cells]
    assert solvers == ["SVC", "analytic", "lp_newton"]
    assert max(gaps[1:]) <= 1e-6 < gaps[0] < 0.1
    assert all(float(str(cell)) > 0 for cell in table.columns[2].cells)


def test_spicy_runs_at_every_size_and_is_held_to_its_limits(monkeypatch, capsys):
    monkeypatch.setattr(spicy, "SIZES", (5, 10, 40))
    whole = spicy.problem
    monkeypatch.setattr(
        spicy, "problem", lambda n, M, loss: whole(30, min(M, 10), loss)
    )
    for largest, lines in (("10", 4), ("40", 8)):
        out = run(spicy, monkeypatch, capsys, "--largest", largest)
        assert "M = 10 done" in out and ("M = 40 done" in out) == (lines == 8)
        assert len(re.findall(r"^(pass|FAIL)  ", out, re.MULTILINE)) == lines
        assert out.count("path of 20") == 2 and "time_limit" not in out


def test_epochs_are_counted_in_passes():
    lines = epochs.cost(60, k=3, M=2, rounds=2)
    assert [line.split()[2] for line in lines] == ["1,", "2,"]
    updates = [int(re.findall(r"(\d+)% updates", line)[0]) for line in lines]
    assert min(updates) > 80  # labels without a pattern


def test_the_batch_solver_on_a_small_mfeat(monkeypatch):
    """The table, with two random views in place of the real ones."""
    rng = np.random.default_rng(2)
    y = np.arange(50) % 3
    X = {f"view {m}": rng.normal(size=(50, 2)) + y[:, None] for m in range(2)}
    toy = data.Dataset("toy", np.hstack(list(X.values())), y, X, "classes")
    monkeypatch.setattr(data, "load", lambda name: toy)
    table = multiclass.batch(1e-6)
    gaps = [float(str(cell)) for cell in table.columns[2].cells]
    assert len(gaps) == 18 and max(gaps) <= 1e-6


# ---- kernels on the fly ----------------------------------------------------------


@pytest.fixture
def images(monkeypatch):
    """Images of ten digits that are easy to tell apart."""
    rng = np.random.default_rng(4)
    y = np.arange(120) % 10
    X = np.clip(60.0 * y[:, None] + 50 * rng.normal(size=(120, 784)), 0, 255)
    digits = data.Dataset("digits", X, y, kind="classes")
    monkeypatch.setattr(data, "load", lambda name: digits)


def test_on_the_fly_and_in_memory_are_compared(images, monkeypatch, capsys):
    monkeypatch.setattr(streaming, "alone", streaming.run)
    monkeypatch.setattr(streaming, "RUNS", {"analytic": {"tol": 1e-6}})
    words = ("--samples", "100", "--cache", "90kB")
    out = run(streaming, monkeypatch, capsys, *words)
    assert "pass  analytic: objectives differ by" in out and "FAIL" not in out
    assert "packed" in out and "lazy" in out
    stored, lazy = (streaming.run(60, "analytic", cache) for cache in (None, "0"))
    lazy.primal *= 1 + 1e-8
    assert streaming.comparison(stored, lazy).startswith("FAIL")


def test_epochs_over_digits_on_the_fly(monkeypatch, capsys, folder):
    """Both stages on images that are easy to tell apart, with a certificate."""
    rng = np.random.default_rng(4)
    y = np.arange(150) % 10
    X = np.clip(25.0 * y[:, None] + 15 * rng.normal(size=(150, 784)), 0, 255)
    whole = data.Dataset("digits", X[:120], y[:120], kind="classes")
    test = data.Dataset("digits", X[120:], y[120:], kind="classes")
    parts = {"train": whole, "test": test}
    monkeypatch.setattr(data, "load", lambda name, part="train": parts[part])
    monkeypatch.setattr(digits, "PART", 20)
    words = ("--samples", "100", "--epochs", "6", "--certify")
    out = run(digits, monkeypatch, capsys, *words)
    assert "pass  minutes" in out and "pass  GB" in out and "≤ f* ≤" in out
    error = float(re.findall(r"test error ([\d.]+) %", out)[0])
    assert error <= 40  # 90 by chance
    text = (folder / "digits.md").read_text()
    assert "OBSCURE on 100 digits, 12 kernels, C = 1" in text
    slow = digits.Row(10, 61.0, 5, 5.0, 5, 2.0)
    assert [line[:4] for line in digits.verdicts([slow], 9.0)[:2]] == ["FAIL", "FAIL"]


def test_many_samples_are_solved_by_rows(images, monkeypatch, capsys, folder):
    monkeypatch.setattr(by_rows, "MATRIX_BYTES", by_rows.MATRIX_BYTES)
    words = ("--samples", "110", "--cases", "l4/3", "l1")
    out = run(many_samples, monkeypatch, capsys, *words)
    assert by_rows.MATRIX_BYTES < 8 * 110**2
    assert out.count("pass  ") == 6 and "FAIL" not in out
    assert "| l1 | converged | 110 | 50 |" in (folder / "many_samples.md").read_text()
    bad = many_samples.Run("l1", 9, "", 601.0, 1.0, 2e-3, (0, 1), 1.0, 1, 1, 1, 11.0)
    lines = many_samples.judged([bad, bad._replace(name="all")])
    assert [line[:4] for line in lines] == ["FAIL"] * 3 + ["pass", "FAIL"]


def test_many_kernels_are_fitted_solved_and_judged(monkeypatch, capsys, folder):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(40, 5))
    toy = data.Dataset("toy", X, np.sign(X[:, 0] + 0.3 * rng.normal(size=40)))
    monkeypatch.setattr(data, "load", lambda name: toy)
    monkeypatch.setattr(million, "SIZES", (20, 60))
    monkeypatch.setattr(million, "SHORTEST", 0.01)
    words = ("--largest", "60", "--cases", "ℓ1", "ℓ2", "spg")
    out = run(million, monkeypatch, capsys, *words)
    assert out.count("≤ 0.001") == 4 and "FAIL  ℓ1, C = 100: gap" not in out
    assert len(re.findall(r"^(pass|FAIL)  ", out, re.MULTILINE)) == 4 + 3 * 4
    assert "| spg | finished | 100 |" in (folder / "million.md").read_text()
    slow = million.Run(60, "ℓ1", 100.0, quad=1.0, took=7.0, gap=2e-3, peak_mb=1.0)
    lines = million.judged([million.Run(60, quad=1.0, computed=1.0)], [slow])
    assert [line[:4] for line in lines[4:]] == ["FAIL", "FAIL", "pass"]


# ---- checkers --------------------------------------------------------------------


def test_slow_checkers_are_named(monkeypatch, capsys, tmp_path):
    program = tmp_path / "program"
    program.write_text("")
    monkeypatch.setattr(checkers, "COMPILED", [str(program)])
    slow = checkers.Case("rules", 8, 2, {"Python": 0.0})
    good = checkers.Case("factors", 8, 2, {"Python": 10.0})
    monkeypatch.setattr(checkers, "CASES", (good, slow))
    out = run(checkers, monkeypatch, capsys)
    assert "FAIL  not proved, or above the limit: rules, n = 8, M = 2, Python" in out
    program.unlink()
    with pytest.raises(SystemExit, match="run `make checker` first"):
        run(checkers, monkeypatch, capsys)


# ---- operators -------------------------------------------------------------------


def test_slow_operators_are_named(monkeypatch, capsys):
    chosen = {"quick": LpNorm(2.0), "slow": GroupLasso()}
    monkeypatch.setattr(operators, "cases", lambda M: chosen)
    monkeypatch.setattr(
        operators, "measured", lambda f, M: [25.0 if f == GroupLasso() else 1.0] * 5
    )
    again = {"GroupLasso": (GroupLasso(), formulation(GroupLasso().penalty))}
    monkeypatch.setattr(operators, "twin_cases", lambda M: again)
    small = ("--kernels", "7", "--samples", "30", "--twins", "4")
    out = run(operators, monkeypatch, capsys, *small)
    assert "slower than their twins" in out and "GroupLasso" in out
    assert "M = 7" in out and "FAIL  formulations above 20 ms: slow" in out


def test_every_operator_is_called_after_a_first_time():
    called: list[int] = []
    assert operators.best_of(lambda: called.append(1), times=3) >= 0
    assert len(called) == 4
    assert len(operators.measured(LpNorm(2.0), 4)) == len(operators.OPERATORS)
    assert {"LpNorm", "owl, derived", "log_barrier"} <= set(operators.cases(10))


# ---- from X ----------------------------------------------------------------------


def test_from_x_builds_solves_and_starts(monkeypatch, capsys, folder):
    small = {
        "a few": (from_x.on_subsets, 40, 3, 1e9),
        "w": (from_x.of_widths, 30, 4, 0),
    }
    monkeypatch.setattr(from_x, "BUILDING", small)
    solving, started = from_x.solving, []
    monkeypatch.setattr(from_x, "solving", lambda rounds: solving(rounds, 30, 4))

    def seconds(command, env):
        started.append(command)
        return 0.5

    monkeypatch.setattr(from_x, "_seconds", seconds)
    out = run(from_x, monkeypatch, capsys, "--rounds", "1")
    assert re.search(r"pass +a few: ns per entry, one thread", out)
    assert re.search(r"FAIL +w: ns per entry, one thread", out)
    assert "from X to 1e-6, n = 30, 4 widths" in out
    assert len(started) == 5 and started[-1][1:3] == ["solve", "wdbc"]
    assert "pass  first solve of a new process, cold: seconds: 0.50 ≤ 8" in out
    assert "| what | one thread |" in (folder / "from_x.md").read_text()


def test_the_stacks_of_from_x_are_what_they_say():
    subsets, widths = from_x.on_subsets(30, 3)(), from_x.of_widths(30, 4)()
    assert (subsets.M, widths.M) == (3, 4)
    np.testing.assert_allclose(np.sum(subsets.diag(), axis=1), 1.0)
    assert not np.allclose(subsets.kernel(0), subsets.kernel(1))


def test_a_program_that_fails_is_an_error():
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        from_x._seconds([sys.executable, "-c", "1/0"], {})


# ---- disk ------------------------------------------------------------------------


def test_the_benchmark_of_kernels_on_disk(monkeypatch, capsys, folder):
    """The bits agree; the time of a small problem says nothing."""
    words = ("--kernels", "12", "--samples", "60", "--folder", str(folder), "--check")
    said = run(disk, monkeypatch, capsys, *words, "--streamed")
    assert "pass  ℓ4/3, on the fly: gap" in said
    assert said.count("has the bits of that in memory") == 2
    assert not re.search("FAIL .*bits", said)
    assert not list(folder.glob("kernels-*"))
    row = disk.Row("ℓ1", 3.0, 2e9, 1e9, 4e9, ("0x1p+0",), 1e-4)
    lines = disk.verdicts(row, ("0x1p+1",))
    assert [line[:4] for line in lines] == ["pass", "FAIL", "pass", "FAIL"]


# ---- features --------------------------------------------------------------------


def test_the_benchmark_of_factors(monkeypatch, capsys):
    """Small sizes: times say nothing, gaps and counts do."""
    monkeypatch.setattr(features, "warmed_up", lambda: None)
    small, kernel = (
        (features.small, (1500, 3, 4)),
        (features.one_kernel, 1500),
    )
    monkeypatch.setattr(features, "small", lambda name: small[0](name, small[1]))
    monkeypatch.setattr(
        features, "one_kernel", lambda n, C: kernel[0](kernel[1], C, rank=5)
    )
    monkeypatch.setattr(features, "SIZES", (1000, 1500))
    said = run(features, monkeypatch, capsys, "--cases", "small", "counts")
    assert said.count("converged") == 12  # shown twice
    assert "pass  counts, one kernel, n = 1,500, C = 100: products" in said
    rival = features.against_liblinear(1500, 0.01, 1e-3, rank=5)
    assert rival.status == "converged" and 0 < rival.epochs < 100
    never = features.liblinear_time(*features.columns(1500, 5), 100.0, -1.0, 1e-9, 0.0)
    assert np.isinf(never[0]) and never[1] >= 1
    lost = features.Run("", 9, seconds={1e-3: 4.0}, other=np.inf, epochs=7)
    assert "pass" in features.judged("liblinear", [lost])[0]
    assert "not reached in 7 epochs" in features.judged("liblinear", [lost])[0]
    slow = features.Run("ℓ1", 10, seconds={1e-6: 4.0}, peak_mb=10.0)
    lines = features.judged("small", [slow])
    assert [line[:4] for line in lines] == ["FAIL", "pass"]
    rows = [features.Run("", n, seconds={1e-6: n**1.2}) for n in (10, 100)]
    assert features.power(rows) == pytest.approx(1.2)


# ---- exact -----------------------------------------------------------------------


def few_points() -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).normal(size=(300, 3))
    return X, np.sign(X[:, 0] * X[:, 1] + 0.1)


def killed_at_once(n, C, path):
    return 7.0


def test_the_benchmark_of_exact_kernels(monkeypatch, capsys):
    monkeypatch.setattr(features, "covertype", few_points)
    monkeypatch.setattr(features, "chosen_penalty", lambda: 200.0)
    monkeypatch.setattr(exact, "killed", killed_at_once)
    monkeypatch.setattr(data, "load", lambda name: None)
    monkeypatch.setattr(features, "LANDMARKS", 10)
    monkeypatch.setattr(exact, "LANDMARKS", (5, 30))
    said = run(exact, monkeypatch, capsys, "--samples", "200")
    assert "pass  sweep, n = 200, C = 1: minutes: 0.1" in said  # 7 s of the killed one
    assert said.count("gap in %") == 2


def test_limits_of_the_benchmark_of_exact_kernels():
    bounds = [(50.0, 100.0), (85.0, 100.0)]
    slow = exact.Run("sweep", 9, 1.0, 200, 1501.0, 3.0, 5, bounds[:1])
    far = exact.Run("improve", 9, 1.0, 200, 1.0, 1.0, 5, bounds)
    assert far.gaps == [50.0, 15.0]
    lines = exact.judged([slow, far])
    assert [line[:4] for line in lines] == ["FAIL", "pass", "FAIL"]
