"""`mklopt verify`: a certificate that was touched, a folder, exit codes."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

import mklopt
from mklopt.campaign import screen
from mklopt.cli import main
from mklopt.formulations import LpNorm


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
    answers = iter([True, False])

    def fake(folder, files):
        asked.append((folder, files))
        return next(answers)

    monkeypatch.setattr(screen, "recompute_everything", fake)
    assert verify(tmp_path, "--data", "mine.npz").exit_code == 0
    assert verify(tmp_path).exit_code == 2
    assert asked == [(tmp_path, ("mine.npz",)), (tmp_path, ())]
    done = verify(tmp_path, "--json")
    assert done.exit_code == 2 and "is a folder" in done.output
