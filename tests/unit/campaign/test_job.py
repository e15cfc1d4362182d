"""The main job: what it runs, how it survives, what it says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from mklopt.campaign import runs
from mklopt.campaign.job import Campaign, Selection, covering
from mklopt.campaign.runs import REFERENCE
from mklopt.certificates.checker import check
from mklopt.cli import main
from mklopt.formulations import formulations, losses_by_name
from mklopt.solvers import Iterate, solvers
from tests.faults import all_end, enlarge, full_disk, small_disk, workers

TINY = ("--solver", "hessian", "--loss", "hinge", "--formulation", "BlockL1")
SMALL = ("--solver", "hessian", "--data", "small")


def certify(*arguments: str, code: int = 0) -> str:
    """The command, here; its exit code is checked."""
    done = CliRunner().invoke(main, ["certify", "--jobs", "1", *arguments])
    assert isinstance(done.exception, SystemExit | None), done.exception
    assert done.exit_code == code, done.output
    return done.output


def lines(folder: Path) -> list[bytes]:
    """The whole rows of a folder."""
    path = folder / "rows.jsonl"
    return path.read_bytes().split(b"\n")[:-1] if path.exists() else []


PARTS = (
    lambda cell: cell.data,
    lambda cell: cell.C,
    lambda cell: cell.loss.name,
    lambda cell: cell.formulation.name,
)


# ---- what is run ----------------------------------------------------------------


@pytest.fixture(scope="module")
def everything():
    return Selection().runs(Path("nowhere"))


def test_quick_covers_every_solver_formulation_loss_and_C(everything):
    quick = Selection(quick=True).runs(Path("nowhere"))
    assert len(quick) < len(everything) / 8
    assert {run.solver for run in quick} == {*solvers(), REFERENCE}
    for name in solvers():
        mine = [run.cell for run in quick if run.solver == name]
        able = [run.cell for run in everything if run.solver == name]
        for part in PARTS:
            assert set(map(part, mine)) == set(map(part, able)), name
    judged = {(run.cell.loss.name, run.cell.formulation.name) for run in quick}
    assert len(judged) == len(losses_by_name()) * len(formulations())


def test_every_run_has_an_id_of_its_own(everything):
    assert len({run.id for run in everything}) == len(everything) > 3000


def test_covering_takes_few():
    items = [{1}, {2}, {1, 2, 3}, {3, 4}, {4}]
    assert covering(items, lambda item: item) == [{1, 2, 3}, {3, 4}]
    assert covering([], lambda item: item) == []


def test_certify_leaves_rows_a_summary_and_a_page(tmp_path):
    said = certify(*TINY, "--data", "small", "--out", str(tmp_path))
    assert "1 of 1 verdicts hold" in said
    (row,) = map(json.loads, lines(tmp_path))
    assert row["holds"] and row["gap"] <= 1e-6 and row["theorem"]
    assert row["reference_lower"] <= row["upper"]
    assert row["trace"]["gap"][-1] == float(f"{row['gap']:.4g}")
    assert "| hessian | 1 | 0 |" in (tmp_path / "summary.md").read_text("utf-8")
    assert row["id"] in (tmp_path / "report.html").read_text("utf-8")
    proved = check((tmp_path / row["certificate"]).read_bytes())
    assert (proved["lower"], proved["upper"]) == (row["lower"], row["upper"])
    before = lines(tmp_path)
    assert "1 of them are done already" in certify(
        *TINY, "--data", "small", "--out", str(tmp_path)
    )
    assert lines(tmp_path) == before


def test_an_error_in_a_solver_becomes_a_row(tmp_path, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("out of luck")

    monkeypatch.setattr(runs, "solve", broken)
    said = certify(*TINY, "--data", "small", "--out", str(tmp_path), code=1)
    assert "it raised RuntimeError: out of luck" in " ".join(said.split())


def test_other_code_is_run_again(tmp_path, monkeypatch):
    arguments = (*TINY, "--data", "small", "--out", str(tmp_path))
    certify(*arguments)
    monkeypatch.setattr(runs, "fingerprint", lambda: "other")
    certify(*arguments)
    assert len(lines(tmp_path)) == 2
    assert "1 of 1 verdicts" in (tmp_path / "summary.md").read_text("utf-8")


@pytest.mark.parametrize("backend", ["threading", "multiprocessing"])
def test_other_backends_find_the_same(tmp_path, backend):
    """Threads share kernels, neither counts nor memory; processes return lists."""
    chosen = Selection(
        solver=frozenset({"hessian"}), data=frozenset({"small"}),
        formulation=frozenset({"BlockL1"}),
    )  # fmt: skip
    plain = Campaign(tmp_path / "plain", chosen)
    other = Campaign(tmp_path / backend, chosen)
    found = [list(job.run(jobs, how)) for job, jobs, how in (
        (plain, 1, "loky"), (other, 2, backend))]  # fmt: skip
    one, two = ({r.id: (r.gap, r.passes, r.holds) for r in rows} for rows in found)
    assert one == two and len(one) >= 7


# ---- killed, interrupted ------------------------------------------------------------


def started(folder: Path, *arguments: str, jobs: int = 1) -> subprocess.Popen[str]:
    code = "from mklopt.cli import main; main()"
    words = ("certify", "--jobs", str(jobs), *arguments, "--out", str(folder))
    return subprocess.Popen(
        [sys.executable, "-c", code, *words],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip


def wait_for(process: subprocess.Popen, folder: Path, rows: int) -> None:
    until = time.monotonic() + 120
    while len(lines(folder)) < rows and process.poll() is None:
        assert time.monotonic() < until, "no rows for two minutes"
        time.sleep(0.002)


@pytest.mark.parametrize(
    "times, jobs", [(3, 1), pytest.param(20, 2, marks=pytest.mark.full)]
)
def test_killed_at_any_moment_it_goes_on_with_every_finished_row(tmp_path, times, jobs):
    rng = np.random.default_rng(times)
    selection = Selection(solver=frozenset({"hessian"}), data=frozenset({"small"}))
    total = len(selection.runs(tmp_path))
    kept: list[bytes] = []
    for _ in range(times):
        process = started(tmp_path, *SMALL, jobs=jobs)
        # Some before the first row, some after a few.
        wait_for(process, tmp_path, len(kept) + int(rng.integers(0, 3)))
        time.sleep(rng.uniform(0, 0.05))
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()  # ends when its workers, too, are gone
        now = lines(tmp_path)
        assert now[: len(kept)] == kept  # nothing lost, nothing changed
        kept = now
    assert 0 < len(kept) <= total
    process = started(tmp_path, *SMALL)
    said, _ = process.communicate()
    assert process.returncode == 0 and f"{total} of {total} verdicts hold" in said
    assert f"{len(kept)} of them are done already" in said
    now = lines(tmp_path)
    assert now[: len(kept)] == kept and len(now) == total
    assert len({json.loads(line)["id"] for line in now}) == total


def test_interrupted_it_reports_what_is_there(tmp_path):
    process = started(tmp_path, *SMALL)
    wait_for(process, tmp_path, 2)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate()
    assert process.returncode == 1 and "goes on from here" in said
    assert "Traceback" not in said and "still to be done" in said
    assert "runs are still to be done" in (tmp_path / "summary.md").read_text("utf-8")
    assert all(json.loads(line)["holds"] for line in lines(tmp_path))


# ---- faults of the machine: no verdict on a solver -------------------------------


def test_a_full_disk_is_no_verdict(tmp_path):
    """Files of at most so many bytes: point, certificate, row or page is cut short."""
    pytest.importorskip("joblib")  # which writes a file when it is imported
    arguments = (*TINY, "--data", "small", "--out", str(tmp_path))
    stopped = 0
    for most in (0, 100, 1_000, 2_000, 4_000, 6_000, 10_000, 20_000):
        with full_disk(most):
            done = CliRunner().invoke(main, ["certify", "--jobs", "1", *arguments])
        assert isinstance(done.exception, SystemExit | None), done.exception
        assert "FAILS" not in done.output and "Traceback" not in done.output
        stopped += "File too large" in " ".join(done.output.split())
        assert done.exit_code in (1, 2) or lines(tmp_path)
        assert all(json.loads(line)["holds"] for line in lines(tmp_path))
    assert stopped >= 4
    assert "1 of 1 verdicts hold" in certify(*arguments)
    assert len(lines(tmp_path)) == 1


def test_a_full_disk_stops_workers_and_the_rest_is_run_later(tmp_path):
    disk, few = tmp_path / "disk", (*SMALL, "--loss", "hinge")
    with small_disk(disk, "60k"):
        first, _ = started(disk, *few, jobs=2).communicate(timeout=120)
        assert "No space left on device" in first and "Traceback" not in first
        assert "FAILS" not in first
        kept = lines(disk)
        enlarge(disk, "200m")
        process = started(disk, *few)
        said, _ = process.communicate(timeout=120)
        total = len({json.loads(line)["id"] for line in lines(disk)})
        assert process.returncode == 0 and f"{total} of {total} verdicts hold" in said
        assert len(kept) < total and lines(disk)[: len(kept)] == kept
        verified = CliRunner().invoke(main, ["verify", str(disk)])
        assert verified.exit_code == 0, verified.output


@pytest.mark.parametrize("inside", [False, True])
def test_too_little_memory_is_no_verdict(tmp_path, monkeypatch, inside):
    """Real requests for memory that is not there, in the job or inside a solver."""
    arguments = (*TINY, "--data", "small", "--out", str(tmp_path))
    real = runs.solve

    def greedy(*_, **__):
        return np.empty((10**7, 10**7))

    def greedy_inside(problem, name, **how):
        how |= {"callback": None, "tol": 0.0}
        return real(problem, replace(solvers()[name], steps=later), **how)

    def later(problem):
        yield Iterate(np.zeros(problem.shape), weights=np.ones(problem.grams.M))
        greedy()

    monkeypatch.setattr(runs, "solve", greedy_inside if inside else greedy)
    said = " ".join(certify(*arguments, code=1).split())
    assert "not judged: hessian on small" in said and "out of memory" in said
    assert not lines(tmp_path) and "FAILS" not in said
    monkeypatch.undo()
    assert "1 of 1 verdicts hold" in certify(*arguments)


def test_without_a_reference_nothing_is_judged(tmp_path, monkeypatch):
    def broken(problem):
        raise RuntimeError("the interior-point method gave up")

    monkeypatch.setattr(runs.STORE, "load", broken)
    arguments = (*TINY, "--data", "small", "--out", str(tmp_path))
    said = " ".join(certify(*arguments, code=1).split())
    assert "it has no reference (the interior-point method gave up)" in said
    assert not lines(tmp_path)


def test_a_killed_worker_is_no_verdict(tmp_path):
    process = started(tmp_path, *SMALL, jobs=2)
    wait_for(process, tmp_path, 2)
    os.kill(max(workers(process.pid)), signal.SIGKILL)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 1 and "a worker process was killed" in said
    assert "Traceback" not in said and "FAILS" not in said
    assert all(json.loads(line)["holds"] for line in lines(tmp_path))


@pytest.mark.parametrize("how, rows", [(signal.SIGKILL, 0), (signal.SIGTERM, 1)])
def test_a_killed_job_leaves_no_workers(tmp_path, how, rows):
    """Neither workers that have just been started, nor busy ones."""
    process = started(tmp_path, *SMALL, jobs=2)
    until = time.monotonic() + 60
    while len(workers(process.pid)) < 2 and time.monotonic() < until:
        time.sleep(0.01)
    wait_for(process, tmp_path, rows)
    left = workers(process.pid)
    assert len(left) >= 2
    process.send_signal(how)
    process.wait(20)
    assert all_end(left)
    process.communicate()
