"""What benchmarks share: names, clocks, the unit of time, the files they write."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from benchmarks import __main__ as command
from benchmarks import harness, multiclass, streaming
from mklopt import data
from mklopt.util import style
from mklopt.util.tables import plain_table

ROOT = Path(__file__).resolve().parents[2]
NAMES = {"flagship", "certificate", "wrappers", "spicy", "epochs", "multiclass",
         "streaming", "operators", "estimators", "from_x", "million", "disk",
         "cluster", "digits", "features", "many_samples", "exact", "checkers",
         "library"}  # fmt: skip


def test_names_are_the_files_and_the_docstring_has_them_all():
    import benchmarks

    assert set(command.names()) == NAMES
    text = (benchmarks.__doc__ or "").splitlines()
    assert {line.split()[0] for line in text if line.startswith("    ")} >= NAMES


@pytest.mark.parametrize("given", [["spicey"], []])
def test_an_unknown_name_gets_one_sentence_with_all_names(given):
    run = [sys.executable, "-m", "benchmarks", *given]
    done = subprocess.run(run, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 1 and done.stdout == ""
    (line,) = done.stderr.strip().split("\n")
    assert all(name in line for name in NAMES)
    assert not given or "there is no benchmark 'spicey'" in line


def test_a_name_runs_its_main_with_the_other_arguments(monkeypatch):
    seen = []
    monkeypatch.setattr("benchmarks.epochs.main", lambda: seen.append(sys.argv))
    monkeypatch.setattr(sys, "argv", ["benchmarks", "epochs", "--samples", "7"])
    command.main()
    assert seen == [["python -m benchmarks epochs", "--samples", "7"]]


@pytest.mark.parametrize("bench", [multiclass, streaming])
def test_missing_data_gets_a_sentence(bench, monkeypatch):
    def nowhere(name, **options):
        raise data.DataNotFound(f"{name} was not found: MKLOPT_DATA is not set")

    monkeypatch.setattr(data, "load", nowhere)
    monkeypatch.setattr(sys, "argv", ["bench"])
    with pytest.raises(SystemExit, match=r"(mfeat|mnist5k) was not found"):
        bench.main()


def test_medians_take_turns(monkeypatch):
    """Three rounds of a then b; the clock says 1, 2, 30 s for a and 5 s for b."""
    calls, took = [], iter([1.0, 5.0, 2.0, 5.0, 30.0, 5.0])
    now = [0.0]

    def call(name):
        calls.append(name)
        now[0] += next(took)

    monkeypatch.setattr(harness.time, "perf_counter", lambda: now[0])
    found = harness.medians(lambda: call("a"), lambda: call("b"), rounds=3)
    assert "".join(calls) == "ababab" and found == [2.0, 5.0]


def test_one_pass_multiplies_the_whole_stack():
    K = np.arange(18.0).reshape(2, 3, 3)
    np.testing.assert_array_equal(harness.one_pass(K)(), K.sum(axis=2).ravel())
    assert harness.pass_time(K, rounds=1) > 0


def test_kernels_on_subsets_are_gaussians():
    K, y = harness.subset_gaussians(30, 4)
    assert K.shape == (4, 30, 30) and set(y) == {-1.0, 1.0}
    np.testing.assert_array_equal(K, K.transpose(0, 2, 1))
    np.testing.assert_allclose(np.diagonal(K, axis1=1, axis2=2), 1.0)
    assert all(np.linalg.eigvalsh(kernel)[0] > -1e-12 for kernel in K)
    assert not np.array_equal(K, harness.subset_gaussians(30, 4, seed=1)[0])


@pytest.mark.parametrize("text", ["0", "-1", "x", "1.5"])
def test_positive_numbers_are_whole_and_at_least_one(text):
    assert harness.positive("12") == 12
    with pytest.raises(Exception, match="whole number ≥ 1"):
        harness.positive(text)


def test_a_report_shows_and_writes_tables_and_verdicts(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(style, "FOLDER", tmp_path / "new")
    table = plain_table("title", ("a",), ("b",))
    table.add_row("x", "1")
    about = "First.\n\nWhat was measured.\n\nMore."
    lines = [harness.at_most("passes", 7.0, 6.0), harness.at_most("passes", 5.0, 6.0)]
    assert [line[:4] for line in lines] == ["FAIL", "pass"]
    harness.report(Console(width=100), "trial", about, [table], lines)
    shown = capsys.readouterr().out
    assert "title" in shown and "FAIL  passes: 7.00 ≤ 6" in shown
    text = (tmp_path / "new" / "trial.md").read_text()
    assert "**title**\n\n| a | b |\n|---|--:|\n| x | 1 |" in text
    assert "* pass  passes: 5.00" in text
    assert "What was measured." in text and "More." not in text
    assert f"numpy {np.__version__}" in text


def test_figures_are_written_twice(tmp_path, monkeypatch):
    monkeypatch.setattr(style, "FOLDER", tmp_path / "new")
    figure, axes = style.panels(3)
    assert len(axes) == 3
    axes[0].plot([1, 2], [3, 4], **style.look(0))
    paths = style.save(figure, "trial")
    assert [p.name for p in paths] == ["trial.png", "trial.pdf"]
    assert all(p.stat().st_size > 1000 for p in paths)
