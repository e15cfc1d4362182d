"""The commands of the library."""

from __future__ import annotations

import json

from click.testing import CliRunner

import mklopt
from mklopt import library
from mklopt.certificates.checker import check
from mklopt.cli import main


def run(*words):
    return CliRunner().invoke(main, ["library", *map(str, words)])


def test_list_shows_and_filters():
    assert "wine-one-class" in run("list", "--tag", "one_class").output
    rows = json.loads(run("list", "--tag", "one_class", "--json").output)
    assert [row["name"] for row in rows] == library.names("one_class")
    assert rows[0]["lower"] <= rows[0]["upper"]
    wrong = run("list", "--tag", "one_clas")
    assert wrong.exit_code == 2 and "did you mean" in wrong.output


def test_get_writes_a_problem_and_a_certificate(tmp_path):
    path = tmp_path / "tiny.txt"
    assert "≤ f* ≤" in run("get", "tiny-hinge", "--out", path).output
    problem = library.get("tiny-hinge")
    assert library.read_problem(path).digest() == problem.digest()
    cert = tmp_path / "tiny.cert"
    done = run("get", "tiny-hinge", "--certificate", "--out", cert, "--json")
    assert json.loads(done.output)["digest"] == problem.digest()
    assert check(cert.read_bytes())["problem"] == problem.digest()
    assert "did you mean 'tiny-hinge'" in run("get", "tiny-hing").output


def test_submit_and_check(tmp_path, monkeypatch):
    monkeypatch.setenv("MKLOPT_LIBRARY", str(tmp_path / "own"))
    result = mklopt.solve(library.get("tiny-hinge"), tol=1e-4)
    result.save_certificate(tmp_path / "mine.cert")
    assert "nothing changes" in run("submit", tmp_path / "mine.cert").output
    verdict = json.loads(run("submit", tmp_path / "mine.cert", "--json").output)
    assert verdict["name"] == "tiny-hinge" and not verdict["kept"]
    done = run("check", "tiny-hinge")
    assert done.exit_code == 0 and "1 proved, 0 skipped, 0 wrong" in done.output
    rows = json.loads(run("check", "tiny-hinge", "--json").output)
    assert rows[0]["status"] == "proved"
    monkeypatch.setattr("mklopt.library.checking.reference_of", lambda problem: None)
    assert run("check", "tiny-hinge").exit_code == 2


def test_pages_are_written(tmp_path):
    done = run("pages", tmp_path, "--json")
    assert "leaderboard.html" in json.loads(done.output)["files"]
