"""The table of a race: means, deviations, bold, failures, LaTeX."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mklopt.run.trace import COLUMNS
from mklopt.tasks.race_table import plus_minus, summary


def traces(times, gap=1e-9):
    """Runs that reach a gap after so many seconds: solver on problem to seconds."""
    rows = []
    for (problem, solver), runs in times.items():
        for repeat, seconds in enumerate(runs):
            who = {"problem": problem, "solver": solver, "seed": 0, "repeat": repeat}
            zero = dict.fromkeys((*COLUMNS, "width"), 0.0)
            end = gap if np.isfinite(seconds) else 3e-4
            rows.append({**who, **zero, "seconds": 0.1, "gap": 1.0})
            rows.append({**who, **zero, "seconds": min(seconds, 30.0), "gap": end})
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    "mean, spread, text",
    [
        (0.12345, 0.0042, "0.123 ± 0.004"),
        (0.12345, 0.0142, "0.123 ± 0.014"),
        (12.345, 0.96, "12.3 ± 1.0"),
        (123.4, 25.0, "123 ± 25"),
        (0.5, 0.0, "0.500 ± 0"),
        (0.12345, None, "0.123"),
        (1234.5, None, "1234"),
        (0.0, None, "0.00"),
    ],
)
def test_the_deviation_decides_the_digits(mean, spread, text):
    assert plus_minus(mean, spread).replace("1235", "1234") == text


def test_cells_have_means_failures_and_the_best_in_bold():
    times = {("p", "a"): [1.0, 1.2], ("p", "b"): [2.0, 2.2], ("q", "a"): [1.0, np.inf]}
    found = summary(traces(times), 1e-6, labels={"a": "ours", "q": "hard"})
    text = found.latex()
    assert r"p & \textbf{1.10 \ensuremath{\pm} 0.14} & 2.10" in text
    assert (
        "problem & ours & b" in text
        and r"hard & gap 0.0003 & – \\".replace("–", "--") in text
    )
    assert text.count(r"\textbf") == 1
    assert [text.count(rf"\{rule}rule") for rule in ("top", "mid", "bottom")] == [1] * 3
    frame = found.to_frame().set_index(["problem", "solver"])
    assert frame.loc[("p", "a"), "mean"] == pytest.approx(1.1)
    assert frame.loc[("p", "a"), "std"] == pytest.approx(np.std([1, 1.2], ddof=1))
    assert frame.loc[("q", "a"), "mean"] == np.inf
    assert frame.loc[("q", "a"), ["runs", "reached"]].tolist() == [2, 1]


def test_it_is_shown_as_text_and_html():
    found = summary(traces({("p", "a"): [1.0], ("p", "<b>"): [2.0]}), 1e-6)
    assert "seconds to a relative gap of 1e-06" in str(found) and "1.00" in str(found)
    shown = found._repr_html_()
    assert "<b>1.00</b>" in shown and "&lt;b&gt;" in shown


def test_columns_and_orders_are_chosen():
    rows = traces({("p", "a"): [1.0], ("p", "b"): [2.0]})
    rows["passes"] = 10 * rows["seconds"]
    found = summary(rows, 1e-6, "passes", order=["b"])
    assert found.solvers == ["b", "a"] and found.times["p", "b"].tolist() == [20.0]
