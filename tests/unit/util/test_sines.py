"""Sine and cosine of compiled loops."""

import numpy as np

from mklopt.util.sines import waves

rng = np.random.default_rng(0)


def test_sines_and_cosines_are_accurate():
    angles = np.concatenate([rng.normal(size=4000) * s for s in (1e-8, 1, 30, 1e4)])
    angles = np.append(angles, np.arange(-40, 40) * np.pi / 4).reshape(-1, 20)
    out = np.empty((len(angles), 40))
    waves(angles, out, 0.5)
    np.testing.assert_allclose(out[:, :20], 0.5 * np.cos(angles), atol=1e-15)
    np.testing.assert_allclose(out[:, 20:], 0.5 * np.sin(angles), atol=1e-15)
