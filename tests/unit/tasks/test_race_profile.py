"""Performance profiles: shares of problems, and their figure."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt.tasks.race_profile import mean_times, performance_profile, profile_figure
from tests.unit.tasks.test_race_table import traces


def test_profiles_are_shares_of_problems_within_a_ratio():
    inf = np.inf
    times = [[1.0, 2.0], [4.0, 1.0], [3.0, inf], [inf, inf]]
    ratios, shares = performance_profile(times)
    np.testing.assert_allclose(ratios, [1, 2, 4])
    np.testing.assert_allclose(shares[:, 0], [0.5, 0.5, 0.75])
    np.testing.assert_allclose(shares[:, 1], [0.25, 0.5, 0.5])
    with pytest.raises(ValueError, match="inf for failures"):
        performance_profile([[np.nan]])


def test_the_figure_draws_the_shares_with_a_legend():
    rows = traces({("p", "a"): [1.0, 3.0], ("p", "b"): [6.0], ("q", "b"): [1.0]})
    times = mean_times(rows, 1e-6)
    assert times.tolist() == [[2.0, 6.0], [np.inf, 1.0]]
    drawn = profile_figure(rows, 1e-6, width=3.25, labels={"b": "ours"})
    (legend,) = drawn.legends
    assert [text.get_text() for text in legend.texts] == ["a", "ours"]
    ratios, shares = performance_profile(times)
    for line, share in zip(drawn.axes[0].lines, shares.T):
        np.testing.assert_allclose(line.get_xdata()[:-1], ratios)
        np.testing.assert_allclose(line.get_ydata()[:-1], share)
    assert drawn.get_figwidth() == 3.25
