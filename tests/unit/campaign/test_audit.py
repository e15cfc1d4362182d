"""Every number of a report is computed again; whatever was touched is found."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from mklopt.campaign import runs
from mklopt.campaign.audit import Audit
from mklopt.campaign.ledger import Ledger, Row
from mklopt.campaign.runs import REFERENCE
from mklopt.certificates.checker import check
from mklopt.cli import main
from tests.unit.certificates.samples import resigned

ASKED = ("--loss", "hinge", "--loss", "huber", "--data", "small")
NAMES = ("--solver", "spicy", "--solver", REFERENCE)
KINDS = ("--formulation", "BlockL1", "--formulation", "LpNorm")


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, list(arguments))
    assert isinstance(done.exception, SystemExit | None), done.exception
    return done.exit_code, " ".join(done.output.split())


@pytest.fixture(scope="module")
def certified(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certified")
    code, said = run(
        "certify", "--jobs", "1", *ASKED, *NAMES, *KINDS, "--out", str(folder)
    )
    assert code == 0, said
    return folder


@pytest.fixture
def folder(certified, tmp_path) -> Path:
    return Path(shutil.copytree(certified, tmp_path / "copy"))


def rewritten(folder: Path, solver: str, **changes) -> Row:
    """The first row of a solver with other numbers and an honest checksum."""
    path = folder / "rows.jsonl"
    rows = Ledger(path).rows
    mine = [row for row in rows.values() if row.solver == solver]
    row = max(mine, key=lambda row: row.gap or 0.0)
    changed = replace(row, **{k: f(getattr(row, k)) for k, f in changes.items()})
    path.write_bytes(
        b"".join((changed if r is row else r).line() for r in rows.values())
    )
    return row


def test_every_number_of_every_row_is_what_its_point_says(folder):
    rows = Ledger(folder / "rows.jsonl").rows.values()
    proved = sum(bool(row.certificate) for row in rows)
    assert {row.solver for row in rows} == {"spicy", REFERENCE} and proved >= 2
    assert all((folder / "points" / f"{row.id}.npz").is_file() for row in rows)
    code, said = run("verify", str(folder))
    assert code == 0, said
    assert f"{len(rows)} of {len(rows)} rows are what their points say" in said
    assert f"{proved} certificates were checked in exact arithmetic" in said


BOUNDS = ("gap", "primal", "dual", "lower", "upper", "seconds", "reference_lower")
COUNTS = ("passes", "iterations")


@pytest.mark.parametrize(
    "solver, names", [("spicy", BOUNDS + COUNTS), (REFERENCE, BOUNDS)]
)
def test_each_number_that_was_changed_is_found(folder, solver, names):
    more = {
        name: lambda x: x + 1 if x == int(x) else 1.001 * x + 1e-7 for name in names
    }
    row = rewritten(folder, solver, holds=lambda x: not x, **more)
    code, said = run("verify", str(folder))
    assert code == 2 and said.count("refused") == len(names) + 1 + bool(row.certificate)
    for name in (*names, "holds"):
        assert f"refused: {solver} on {row.cell}: {name} is" in said


def test_a_point_that_is_missing_or_of_another_run_is_found(folder):
    one, two, *_ = sorted((folder / "points").iterdir())
    shutil.copy(one, two)
    code, said = run("verify", str(folder))
    assert code == 2 and "refused" in said
    two.unlink()
    one.write_bytes(b"PK nothing")
    code, said = run("verify", str(folder))
    assert code == 2 and said.count("its point cannot be read") == 2


def test_a_certificate_that_was_touched_is_found(folder):
    path = sorted((folder / "certificates").iterdir())[0]
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"bias": true', b'"bias":  true'))
    code, said = run("verify", str(folder))
    assert code == 2 and f"certificates/{path.name} proves nothing" in said


def test_a_certificate_of_another_problem_is_found(folder):
    """LpNorm(1) is BlockL1 under another name: the same bounds, another problem."""
    rows = Ledger(folder / "rows.jsonl").rows.values()
    row = next(r for r in rows if r.kind == "BlockL1" and r.certificate)
    path = folder / row.certificate
    claim = json.loads(path.read_bytes().partition(b"\n")[2])
    path.write_bytes(resigned(claim, formulation=["LpNorm", {"p": 1.0}]))
    assert check(path.read_bytes())["lower"] == row.lower
    code, said = run("verify", str(folder))
    assert code == 2 and said.count("refused") == 1
    assert f"{row.certificate} is of another problem than the row" in said


def test_the_certificate_of_another_row_is_found(folder):
    one, two, *_ = sorted((folder / "certificates").iterdir())
    shutil.copy(one, two)
    code, said = run("verify", str(folder))
    assert code == 2 and f"certificates/{two.name} is of another problem" in said


def test_what_is_no_file_is_not_waited_for(folder):
    certificate = sorted((folder / "certificates").iterdir())[0]
    point, *_ = sorted((folder / "points").iterdir())
    for path in (certificate, point):
        path.unlink()
        os.mkfifo(path)
    code, said = run("verify", str(folder))
    assert code == 2 and "its point cannot be read" in said
    assert f"certificates/{certificate.name} proves nothing (it is not a" in said


def test_a_complaint_is_one_line(folder):
    name = "x\nproved: 1 ≤ f* ≤ 1\x1b[2K\r"
    rewritten(folder, "spicy", certificate=lambda _: name)
    said = [line for found in Audit(folder).complaints() for line in found]
    assert len(said) == 1 and said[0].isprintable()
    assert r"x\nproved: 1 ≤ f* ≤ 1\x1b[2K\r proves nothing" in said[0]


def test_rows_of_other_code_are_left_out_and_said_to_be(folder, monkeypatch):
    monkeypatch.setattr("mklopt.campaign.audit.fingerprint", lambda: "other")
    code, said = run("verify", str(folder))
    assert code == 0 and "0 of 0 rows" in said and "rows are of other code" in said


def test_what_is_no_such_folder_gets_a_sentence(folder, tmp_path):
    code, said = run("verify", str(tmp_path))
    assert code == 2 and "has no rows.jsonl" in said
    with (tmp_path / "rows.jsonl").open("wb") as file:
        file.truncate(10 * 10**9)
    code, said = run("verify", str(tmp_path))
    assert code == 2 and "has no rows.jsonl of at most" in said
    (folder / "rows.jsonl").write_bytes(b"{}\n")
    code, said = run("verify", str(folder))
    assert code == 2 and "is not a row of this program" in said


def test_an_error_has_no_numbers_to_compute_again(tmp_path, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("out of luck")

    monkeypatch.setattr(runs, "solve", broken)
    only = ("--solver", "hessian", *ASKED, "--formulation", "BlockL1")
    code, _ = run("certify", "--jobs", "1", *only, "--out", str(tmp_path))
    assert code == 1
    code, said = run("verify", str(tmp_path))
    assert code == 0, said


def test_a_file_of_ones_own_is_named(tmp_path):
    L = np.random.default_rng(0).normal(size=(3, 12, 2))
    y = np.where(np.arange(12) % 2 == 0, 1.0, -1.0)
    mine, out = tmp_path / "mine.npz", str(tmp_path / "out")
    np.savez(mine, K=L @ L.transpose(0, 2, 1), y=y)
    only = ("--solver", "hessian", "--loss", "hinge", "--formulation", "BlockL1")
    own = ("--data", str(mine))
    code, _ = run("certify", "--jobs", "1", *only, *own, "--out", out)
    assert code == 0
    code, said = run("verify", out)
    assert code == 2 and "name its file with --data" in said
    assert run("verify", out, *own)[0] == 0
