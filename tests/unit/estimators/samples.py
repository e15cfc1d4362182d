"""Samples that the tests of estimators share."""

from __future__ import annotations

import numpy as np

from mklopt import data


def two_classes(n=60, seed=0):
    """Labels that depend on the first of three features alone."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=n) > 0, "yes", "no")
    return X, y


def three_classes(n=90):
    drawn = data.load("waveform", n=n)
    return drawn.X, np.array(["a", "b", "c"])[drawn.y]
