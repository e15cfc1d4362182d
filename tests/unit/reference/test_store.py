"""Stored references survive crashes, and are believed after a fresh certificate."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from mklopt import Problem, reference
from mklopt.formulations import GroupLasso, LpNorm
from mklopt.reference.contract_problems import load
from mklopt.util.archives import read_member

GRAMS, TARGETS = load("small")
PROBLEM = Problem(GRAMS, TARGETS["binary"], "hinge", LpNorm(2.0))


def test_what_is_stored_comes_back_to_the_last_bit(tmp_path):
    store = reference.Store(tmp_path / "deep" / "folder")
    first = store.solve(PROBLEM)
    again = store.load(PROBLEM)
    assert again is not None
    assert (again.lower, again.upper) == (first.lower, first.upper)
    np.testing.assert_array_equal(again.dual, first.dual)
    np.testing.assert_array_equal(again.weights, first.weights)
    assert len(list(store)) == 1
    assert store.load(PROBLEM.with_(C=2.0)) is None


def test_gram_matrices_are_proved_before_they_are_hashed(tmp_path):
    """Two stacks of the same singular matrices find the same file."""
    store, K = reference.Store(tmp_path), GRAMS.dense()
    first = store.solve(Problem(K, TARGETS["binary"], "hinge", LpNorm(2.0)))
    fresh = Problem(K, TARGETS["binary"], "hinge", LpNorm(2.0))
    again = store.load(fresh)
    assert again is not None and again.certificate.assumptions == []
    assert fresh.grams.shift.max() > 0
    assert first.lower <= again.upper and again.lower <= first.upper
    assert again.relative_gap <= 1e-8


@pytest.mark.parametrize("key", ["alpha", "problem", "formulation", "checksum"])
def test_a_changed_file_is_not_believed(tmp_path, key):
    store = reference.Store(tmp_path)
    store.solve(PROBLEM)
    path = store.path(PROBLEM)
    body = json.loads(path.read_text())
    if key == "alpha":
        body["alpha"][0] += 1e-9
    else:
        body[key] = "0" * 64
    path.write_text(json.dumps(body))
    assert store.load(PROBLEM) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"checksum": 1}'])
def test_half_a_file_counts_as_none(tmp_path, text):
    store = reference.Store(tmp_path)
    store.path(PROBLEM).write_text(text)
    assert store.load(PROBLEM) is None
    assert store.solve(PROBLEM).relative_gap <= 1e-8  # and is replaced


def test_packed_references_have_the_same_bytes(tmp_path):
    store = reference.Store(tmp_path)
    found, path = store.solve(PROBLEM), store.path(PROBLEM)
    store.solve(PROBLEM.with_(C=2.0))
    content, names = path.read_bytes(), store.names()
    archive = store.pack("all.zip", names)
    assert not list(store) and store.names() == names and len(names) == 2
    assert read_member(archive, path.name) == content
    again = store.load(PROBLEM)
    assert (again.lower, again.upper) == (found.lower, found.upper)


def test_a_loose_file_goes_before_a_packed_one(tmp_path):
    store = reference.Store(tmp_path)
    wide = reference.solve(PROBLEM, solver="SCS", options={"max_iters": 50})
    store.save(PROBLEM, wide)
    store.pack("all.zip", store.names())
    store.save(PROBLEM, reference.solve(PROBLEM))
    assert store.load(PROBLEM).relative_gap <= 1e-8 < wide.relative_gap
    store.pack("all.zip", store.names())  # and takes its place
    assert not list(store) and store.load(PROBLEM).relative_gap <= 1e-8


WRITER = """
import itertools, sys
from mklopt import Problem, reference
from mklopt.formulations import GroupLasso
from mklopt.reference.contract_problems import load
grams, targets = load("small")
problem = Problem(grams, targets["binary"], "hinge", GroupLasso())
store = reference.Store(sys.argv[1])
found = reference.solve(problem)
print("ready", flush=True)
for _ in itertools.count():
    store.save(problem, found)
"""


def test_a_killed_writer_leaves_a_whole_file(tmp_path):
    """A real process, writing without pause, killed at many different moments."""
    problem = Problem(GRAMS, TARGETS["binary"], "hinge", GroupLasso())
    store = reference.Store(tmp_path)
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE
    )
    assert writer.stdout is not None and writer.stdout.readline() == b"ready\n"
    for _ in range(20):
        time.sleep(0.01)
        found = store.load(problem)  # while it is being rewritten
        assert found is None or found.relative_gap <= 1e-8
    os.kill(writer.pid, signal.SIGKILL)
    writer.wait()
    writer.stdout.close()
    found = store.load(problem)
    assert found is not None and found.relative_gap <= 1e-8
    assert all(path.suffix == ".json" for path in store)


def test_a_crash_before_the_rename_leaves_the_old_file(tmp_path, monkeypatch):
    store = reference.Store(tmp_path)
    found = store.solve(PROBLEM)
    before = store.path(PROBLEM).read_text()

    def crash(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", crash)
    worse = reference.solve(PROBLEM, solver="SCS", options={"max_iters": 50})
    with pytest.raises(KeyboardInterrupt):
        store.save(PROBLEM, worse)
    assert store.path(PROBLEM).read_text() == before
    assert [path.name for path in tmp_path.iterdir()] == [store.path(PROBLEM).name]
    again = store.load(PROBLEM)
    assert again is not None and again.upper == found.upper
