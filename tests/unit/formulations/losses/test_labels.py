"""Labels: what each kind of loss takes, and what it is told otherwise."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt.formulations.losses.labels import LABELS


@pytest.mark.parametrize(
    "kind, given",
    [
        ("real", [0.5, -2.0]),
        ("binary", [1, -1]),
        ("ones", [1, 1]),
        ("classes", [1.0, 0]),
    ],
)
def test_labels_are_taken(kind, given):
    found = LABELS[kind](np.array(given), "test")
    assert list(found) == given
    assert found.dtype == (np.int64 if kind == "classes" else float)


@pytest.mark.parametrize(
    "kind, given, words",
    [
        ("real", [np.nan, 1.0], "needs finite targets"),
        ("binary", [0, 1], r"labels \{0, 1\}; test needs −1/\+1: pass 2\*y − 1"),
        ("binary", [2, 3], r"labels \{2, 3\}; test needs −1/\+1$"),
        ("binary", [1, 1], r"only the label \+1"),
        ("ones", [1, -1], r"pass y = numpy.ones\(n\)"),
        ("classes", [0.5, 1], "must hold classes"),
        ("classes", [-1, 0], "must hold classes"),
        ("classes", [0, 2], "2 classes out of 3"),
        ("classes", [0, 0], "at least two classes"),
    ],
)
def test_other_labels_are_refused(kind, given, words):
    with pytest.raises(ValueError, match=words):
        LABELS[kind](np.array(given), "test")
