"""`mklopt verify`: a certificate that was touched, a folder, exit codes."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

import mklopt
from mklopt.campaign import screen
from mklopt.cli import main
from mklopt.formulations import LpNorm
from tests.unit.certificates.samples import resigned


def verify(*words: object):
    return CliRunner().invoke(main, ["verify", *map(str, words)])


@pytest.fixture
def certificate(tmp_path):
    L = np.random.default_rng(0).integers(-8, 9, size=(2, 8, 2)) / 8.0
    y = np.tile([1.0, -1.0], 4)
    stack = mklopt.GramStack.from_factors(L)
    result = mklopt.solve(mklopt.Problem(stack, y, "hinge", LpNorm(2)))
    result.save_certificate(tmp_path / "a.cert")
    return tmp_path / "a.cert", result.certificate


def test_what_is_proved_is_printed(certificate):
    path, found = certificate
    done = verify(path)
    assert done.exit_code == 0 and f"proved: {found.lower!r} ≤ f*" in done.output
    shown = json.loads(verify(path, "--json").output)
    assert shown["proved"] and shown["upper"] == found.upper


def test_an_invalid_certificate_has_exit_code_2(certificate):
    path, _ = certificate
    path.write_bytes(path.read_bytes().replace(b'"bias": true', b'"bias": false'))
    done = verify(path, "--json")
    assert done.exit_code == 2 and not json.loads(done.output)["proved"]
    assert verify(path).exit_code == 2


def test_a_folder_is_computed_again(tmp_path, monkeypatch):
    asked = []
    answers = iter([True, False, False])

    def fake(folder, files, console):
        asked.append((folder, files))
        return next(answers)

    monkeypatch.setattr(screen, "recompute_everything", fake)
    assert verify(tmp_path, "--data", "mine.npz").exit_code == 0
    assert verify(tmp_path).exit_code == 2
    assert asked == [(tmp_path, ("mine.npz",)), (tmp_path, ())]
    done = verify(tmp_path, "--json")
    shown = {"proved": False, "folder": str(tmp_path)}
    assert done.exit_code == 2 and json.loads(done.stdout) == shown


@pytest.mark.parametrize("kind", ["/dev/zero", "fifo", "huge"])
def test_what_is_no_file_of_bounded_size_is_refused_at_once(tmp_path, kind):
    path = tmp_path / "a.cert"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "huge":
        with path.open("wb") as file:
            file.truncate(10 * 10**9)
    else:
        path.symlink_to(kind)
    for more in ((), ("--json",)):
        done = verify(path, *more)
        assert done.exit_code == 2 and ("regular file" in done.output or kind == "huge")
    assert json.loads(done.output)["proved"] is False


def test_an_ascii_terminal(certificate, tmp_path, monkeypatch):
    path, found = certificate

    def ascii_verify(*words):
        done = CliRunner(charset="ascii").invoke(main, ["verify", *map(str, words)])
        assert not isinstance(done.exception, UnicodeError)
        return done.exit_code, done.stdout

    code, said = ascii_verify(path)
    assert code == 0 and f"proved: {found.lower!r} <= f* <= {found.upper!r}" in said
    shown = json.loads(ascii_verify(path, "--json")[1])
    assert "LpNorm(p=2)" in shown["statement"]
    claim = json.loads(path.read_bytes().partition(b"\n")[2])
    path.write_bytes(resigned(claim, lower=0.0, upper=-1.0))
    assert ascii_verify(path)[0] == 2
    dual = {**claim["dual"], "integers": [1] * 8}
    path.write_bytes(resigned(claim, dual=dual))
    assert "Σα" in json.loads(ascii_verify(path, "--json")[1])["reason"]

    def complain(*_):
        Console().print("refused: Σα ≤ 0")
        return False

    monkeypatch.setattr(screen, "recompute_everything", complain)
    code, said = ascii_verify(tmp_path)
    assert code == 2 and "refused: " in said
