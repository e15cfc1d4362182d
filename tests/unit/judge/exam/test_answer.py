"""Answers survive the way as bytes, and nothing else is taken for one."""

from __future__ import annotations

import json
import math
import pickle
from typing import Any

import numpy as np
import pytest

from mklopt.judge.exam.answer import Answer, Candidate, pack, unpack

POINT = Candidate(np.array([1.0, -2.0]), None, np.arange(6.0).reshape(3, 2))
FULL = Answer(
    "converged", "α ✓", POINT, Candidate(None, np.array([0.5])), POINT, (0.1, math.inf),
    [np.ones(3), np.zeros(3)], 1e-4, ("a", "b"),
)  # fmt: skip


def test_an_answer_comes_back_as_it_was():
    found: Any = unpack(pack(FULL))
    for name in ("ended", "words", "gaps", "tol", "inputs"):
        assert getattr(found, name) == getattr(FULL, name)
    np.testing.assert_array_equal(found.given.dual, POINT.dual)
    np.testing.assert_array_equal(found.made.coefficients, POINT.coefficients)
    assert found.given.weights is None and found.last.dual is None
    np.testing.assert_array_equal(found.earlier, FULL.earlier)
    nothing = unpack(pack(Answer("raised", "x")))
    assert nothing.given is nothing.last is nothing.made is None
    assert math.isnan(nothing.tol)


def forged(**changes: object) -> bytes:
    head, _, numbers = pack(FULL).partition(b"\n")
    return json.dumps(json.loads(head) | changes).encode() + b"\n" + numbers


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\n",
        b"[1, 2]\n",
        pickle.dumps(FULL.ended),
        pack(FULL)[:-8],
        pack(FULL) + 8 * b"\0",
        pack(FULL)[:-3],
        forged(shapes={"gaps": [-1]}),
        forged(shapes={"gaps": [10**30]}),
        forged(shapes={"gaps": ["2"]}),
        forged(shapes=[]),
        forged(tol="much"),
        forged(inputs=3),
        b"[" * 100_000,
    ],
    ids=range(14),
)
def test_anything_else_is_refused(message):
    with pytest.raises(ValueError, match="is no answer"):
        unpack(message)
