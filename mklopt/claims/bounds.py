"""Verdicts from repeats: an interval over the seeds, and what the number has to be.

A number is measured once for each seed. Its interval is one of

    t        mean ± t s/√k of the k numbers; with log=True of their logarithms
    range    the least and the largest: with k seeds it holds the median of the
             distribution with probability 1 − 2^{1−k}

With several numbers in one rule each t interval has the level 1 − 0.05/(how many), so
that all hold together with 95 %. The verdict of an interval and a bound:

    confirmed       all of the interval meets the bound
    partly          not so, but all of it meets the weaker bound `partly`
    refuted         no point of it meets even the weaker bound
    inconclusive    everything else
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

INTERVALS = ("t", "range")
LEVEL = 0.95
Interval = tuple[float, float]


@dataclass(frozen=True)
class Bound:
    """What a number has to be: inside an interval; `partly` is a larger one."""

    low: float
    high: float
    partly: Interval | None = None
    log: bool = False

    def __post_init__(self) -> None:
        low, high = self.weak
        if not (low <= self.low <= self.high <= high):
            raise ValueError(
                f"{self}: the least value is at most the largest, and what is enough "
                "for 'partly' is weaker than what is enough for 'confirmed'"
            )

    @property
    def weak(self) -> Interval:
        """What is enough for partly."""
        return self.partly or (self.low, self.high)

    def verdict(self, interval: Interval) -> str:
        """Of an interval of the measured number."""
        low, high = interval
        if np.isnan(low) or np.isnan(high):
            return "inconclusive"
        if self.low <= low and high <= self.high:
            return "confirmed"
        least, most = self.weak
        if least <= low and high <= most:
            return "partly"
        return "refuted" if high < least or low > most else "inconclusive"

    def words(self) -> str:
        """Such as "at least 10 (partly: 2)"."""
        said = _said((self.low, self.high))
        said += f" (partly: {_said(self.partly)})" if self.partly else ""
        return f"{said}, on a log scale" if self.log else said


def _said(interval: Interval) -> str:
    low, high = interval
    if high == np.inf:
        return f"at least {low:.12g}"
    most = f"{high:.12g}"
    return f"at most {most}" if low == -np.inf else f"between {low:.12g} and {most}"


def at_least(value: float, *, partly: float | None = None, log: bool = False) -> Bound:
    """The number has to be this or more; from `partly` on it is partly so.

    log: the interval is one of the logarithm, as for ratios.
    """
    weak = None if partly is None else (partly, np.inf)
    return Bound(value, np.inf, weak, log)


def at_most(value: float, *, partly: float | None = None, log: bool = False) -> Bound:
    """The number has to be this or less; up to `partly` it is partly so."""
    weak = None if partly is None else (-np.inf, partly)
    return Bound(-np.inf, value, weak, log)


def between(
    low: float, high: float, *, partly: Interval | None = None, log: bool = False
) -> Bound:
    """The number has to lie between the two; inside `partly` it is partly so."""
    return Bound(low, high, partly, log)


def interval(values: Sequence[float], kind: str, parts: int = 1, log: bool = False):
    """(low, middle, high) of one number per seed; one seed has no width.

    parts: how many numbers the rule has;  NaN where there is no interval
    """
    numbers = np.asarray(values, float)
    if kind == "range" or len(numbers) == 1:
        return numbers.min(), float(np.median(numbers)), numbers.max()
    if not np.all(np.isfinite(numbers)) or (log and np.any(numbers <= 0)):
        return np.nan, float(np.median(numbers)), np.nan
    numbers = np.log(numbers) if log else numbers
    k = len(numbers)
    quantile = stdtrit(k - 1, 1 - (1 - LEVEL) / (2 * parts))
    half = quantile * numbers.std(ddof=1) / np.sqrt(k)
    found = numbers.mean() + half * np.array([-1.0, 0.0, 1.0])
    return tuple(float(v) for v in (np.exp(found) if log else found))


def together(verdicts: Sequence[str]) -> str:
    """The verdict of a rule with several numbers: all of them have to be right."""
    if len(set(verdicts)) == 1:
        return verdicts[0]
    return "inconclusive" if "inconclusive" in verdicts else "partly"
