"""Running papers: once, to the end, again from where it was stopped."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
import time

import pytest
from rich.console import Console

from mklopt.claims import records, registry
from mklopt.claims.items import Scale
from mklopt.claims.run import Outcome, perform, run_papers
from tests.faults import all_end, full_disk, workers
from tests.unit.claims.conftest import measured_toy


def outcome(**how) -> Outcome:
    return Outcome("toy2026", "claim", "some", **how)


def test_a_check_is_sound_when_its_perturbed_form_gets_the_opposite_verdict():
    assert outcome(verdict="confirmed", contrary="refuted").sound
    assert outcome(verdict="partly", contrary="refuted").sound
    assert outcome(verdict="not testable").sound and outcome(missing="data").sound
    assert not outcome(verdict="confirmed", contrary="confirmed").sound
    assert not outcome(verdict="confirmed", contrary="vacuous").sound
    assert not outcome(error="Traceback").sound


def test_the_verdict_of_what_did_not_run():
    assert outcome(missing="no data").judged == "not testable"
    failed = outcome(error="Traceback\nKeyError: 3")
    assert failed.judged == "failed" and failed.why_not == "KeyError: 3"
    assert outcome(verdict="partly").judged == "partly" and not outcome().why_not


def test_an_item_is_performed_and_its_verdict_kept(toy, tmp_path):
    scale = Scale("tiny", 0, tmp_path / "kept")
    found = perform(toy, "squares_are_positive", scale, tmp_path)
    assert (found.verdict, found.contrary) == ("confirmed", "refuted")
    assert found.studies == ("squares",) and found.numbers["least"] >= 0
    assert len(list((tmp_path / "kept").rglob("*.json"))) == 1
    again = perform(toy, "squares_are_positive", scale, tmp_path)
    assert again.evidence == found.evidence and again.studies == found.studies
    assert "ZeroDivisionError" in perform(toy, "broken", scale, tmp_path).error
    assert "MKLOPT_DATA" in perform(toy, "without_data", scale, tmp_path).missing


def test_what_is_finished_is_not_computed_again_and_figures_are_the_same(
    toy, run, tmp_path
):
    run(toy)
    results = tmp_path / "papers" / toy / "results"
    before = {p.name: p.read_bytes() for p in results.rglob("*.*")}
    assert (tmp_path / "mark").read_text() == "x"  # asked for by four, measured once
    run(toy)
    assert (tmp_path / "mark").read_text() == "x"
    assert before == {p.name: p.read_bytes() for p in results.rglob("*.*")}


def test_a_run_that_is_killed_goes_on(tmp_path, write, run):
    """SIGKILL while the claims are checked: the study is not measured again."""
    key = write("killed2026", pause=0.3)
    code = (
        "import pathlib, mklopt.claims.items as p, mklopt.claims.run as r\n"
        f"p.ROOT = pathlib.Path({str(tmp_path)!r})\n"
        f"r.run_papers([{key!r}], 'tiny', jobs=1)\n"
    )
    command = [sys.executable, "-c", code]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=tmp_path)
    work = tmp_path / "papers" / ".work"
    deadline = time.monotonic() + 60
    while not list(work.rglob("*.csv")) and time.monotonic() < deadline:
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    assert child.wait() in (-signal.SIGKILL, 0)
    assert len(list(work.rglob("*.csv"))) == 1
    run(key)
    assert (tmp_path / "mark").read_text() == "x"
    assert (tmp_path / "papers" / key / "README.md").exists()


def paper_process(folder, key: str, jobs: int = 2) -> subprocess.Popen[str]:
    """`run_papers` on a toy paper in a process of its own."""
    code = (
        "import pathlib, mklopt.claims.items as p, mklopt.claims.run as r\n"
        "from mklopt.cli.words import usage_errors\n"
        f"p.ROOT = r.ROOT = pathlib.Path({str(folder)!r})\n"
        f"with usage_errors(): r.run_papers([{key!r}], 'tiny', jobs={jobs})\n"
    )
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen([sys.executable, "-c", code], cwd=folder, **how)  # type: ignore[call-overload]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_run_leaves_no_workers(tmp_path, write, how):
    process = paper_process(tmp_path, write("left2026", pause=60.0))
    until = time.monotonic() + 60
    while len(left := workers(process.pid)) < 2 and time.monotonic() < until:
        time.sleep(0.01)
    assert len(left) >= 2
    process.send_signal(how)
    process.wait(20)
    assert all_end(left)
    process.communicate()


def test_a_full_disk_stops_the_run_and_refutes_nothing(toy, run, tmp_path):
    pytest.importorskip("joblib")  # which writes a file when it is imported
    for most in (0, 50):
        with full_disk(most), pytest.raises(OSError, match="too large"):
            run(toy)
        assert not (tmp_path / "papers" / toy / "README.md").exists()
    assert "2 confirmed" in run(toy)[1]


def test_a_folder_that_cannot_be_written_is_refused_before_anything_runs(
    toy, run, tmp_path
):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OSError, match="file"):
        run(toy, out=tmp_path / "file")
    assert not (tmp_path / "mark").exists()


def test_a_measured_claim_runs_once_it_is_registered(toy, tmp_path, monkeypatch):
    """Its verdict needs both sizes, the page has it with its registration."""
    paper = measured_toy(toy, tmp_path, monkeypatch)
    how = {"jobs": 1, "only": ("the_mean_is_small",), "console": Console(quiet=True)}
    assert not run_papers([toy], **how)
    page = tmp_path / "papers" / toy / "README.md"
    assert "| **not run** | registered and not run" in page.read_text("utf-8")
    registry.register(paper, {})
    assert run_papers([toy], **how) and run_papers([toy], "full", **how)
    results = page.parent / "results"
    found = records.read(results, "quick")["the_mean_is_small"]
    assert found["verdict"] == "confirmed" and found["controls"] == ["refuted"]
    assert found["registration"] == registry.registrations(toy)[0]["registration"]
    assert found["seeds"] == [0, 1, 2] and len(found["numbers"][""]) == 3
    assert "| **confirmed** | Quick, 3 seeds" in page.read_text("utf-8")
    rows = (results / "data" / "squares.csv").read_text().splitlines()
    assert rows[0].startswith("seed,") and len(rows) == 1 + 3 * 10
    with pytest.raises(ValueError, match="give --out, too"):
        run_papers([toy], seeds=(7, 8, 9), **how)
    again = tmp_path / "again"
    assert run_papers([toy], seeds=(7, 8, 9), out=again, **how)
    found = records.read(again / toy / "results", "quick")["the_mean_is_small"]
    assert found["seeds"] == [7, 8, 9]


def test_a_run_stops_when_its_time_is_over(toy, tmp_path):
    console = Console(width=200, record=True, file=io.StringIO())
    assert not run_papers([toy], "tiny", hours=-1, jobs=1, console=console)
    assert "the same command goes on" in console.export_text()
    assert not (tmp_path / "papers" / toy / "README.md").exists()
    assert run_papers([toy], "tiny", only=("squares_are_positive",), jobs=1)


def test_a_cluster_runs_a_paper(toy, run, tmp_path):
    pytest.importorskip("distributed")
    from distributed import LocalCluster

    how = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(processes=False, **how) as cluster:
        _, shown = run(toy, cluster=cluster.scheduler_address)
    assert "2 confirmed" in shown and (tmp_path / "mark").read_text() == "x"
