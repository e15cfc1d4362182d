"""What the main job and its verification print."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from mklopt.campaign.job import Campaign, Selection
from mklopt.campaign.screen import certify_everything, newest, recompute_everything
from mklopt.campaign.screen import watch as watch_rows

ONE = Selection(
    solver=frozenset({"hessian"}),
    loss=frozenset({"hinge"}),
    formulation=frozenset({"BlockL1"}),
    data=frozenset({"small"}),
)


def console(terminal: bool = False) -> Console:
    options = {"force_terminal": terminal, "record": True, "width": 160}
    return Console(file=io.StringIO(), **options)  # type: ignore[arg-type]


def text(shown: Console) -> str:
    return " ".join(shown.export_text(styles=False).split())


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A finished campaign of one run, and what it printed."""
    job, shown = Campaign(tmp_path_factory.mktemp("one"), ONE), console()
    assert certify_everything(job, 1, "loky", shown)
    return job, text(shown)


def test_a_campaign_is_announced_tallied_and_summed_up(done):
    job, said = done
    assert said.startswith("1 runs: 1 solvers on 1 problems")
    assert "hessian 1 0" in said and "1 of 1 verdicts hold" in said
    assert (job.folder / "report.html").is_file()


def test_what_is_done_is_not_run_again(done):
    job, shown = Campaign(done[0].folder, ONE), console()
    assert not job.todo and certify_everything(job, 1, "loky", shown)
    assert "1 of them are done already" in text(shown)


def test_a_verdict_that_fails_is_told_and_returned(tmp_path):
    job, shown = Campaign(tmp_path, replace(ONE, limit=1e-9)), console()
    assert not certify_everything(job, 1, "loky", shown)
    said = text(shown)
    assert "FAILS hessian on small-BlockL1" in said and "limit on time" in said


def test_on_a_terminal_the_newest_runs_are_shown(done):
    (row,) = done[0].rows
    rows = [replace(row, id=str(i), C=float(i)) for i in range(7)]
    assert len(newest(rows).rows) == 5
    shown = console(terminal=True)
    watch_rows(iter(rows), [], len(rows), shown)
    assert "7/7" in shown.export_text()


def test_a_folder_is_computed_again(done):
    shown = console()
    assert recompute_everything(done[0].folder, (), shown)
    assert "1 of 1 rows are what their points say; 1 certificates" in text(shown)
