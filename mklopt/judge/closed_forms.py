"""Closed forms of a formulation, judged by its declaration.

    value, conjugate, reach   against the same, derived from `penalty`
    weights                   Ω(u) + Ω*(g) = ⟨g, u⟩ for the slopes g = u/θ (Fenchel and
                              Young): θ holds a subgradient, whichever of them it is
    dual_weights              the same for v and the slopes θ v of Ω*
    prox                      its objective against that of the derived one, and
                              against small steps away from it
    prox_slope                against differences of prox

Arguments come out of an interior-point method to the root of its accuracy only: what
defines them is checked instead, to TOL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ..formulations import Formulation, stripped
from ..util.tables import plain_table

Array = np.ndarray
TOL = 1e-6
Errors = Iterator[tuple[float, str]]  # an error relative to 1 + size, and where


@dataclass(frozen=True)
class Row:
    """One operator: its largest error, and where that was."""

    operator: str
    closed: bool
    error: float
    where: str

    @property
    def holds(self) -> bool:
        return self.error <= TOL


@dataclass(frozen=True)
class Report:
    """What was found of each operator."""

    formulation: str
    M: int
    rows: tuple[Row, ...]

    @property
    def passed(self) -> bool:
        return all(row.holds for row in self.rows)

    @property
    def failures(self) -> list[Row]:
        return [row for row in self.rows if not row.holds]

    def __repr__(self) -> str:
        closed = [row for row in self.rows if row.closed]
        wrong = ", ".join(row.operator for row in self.failures)
        said = f"wrong: {wrong}" if wrong else f"{len(closed)} closed forms hold"
        return f"Report({self.formulation}, M = {self.M}: {said})"

    def __str__(self) -> str:
        from rich.console import Console

        table = plain_table("", ("operator", "form", "verdict"), ("error",))
        for row in self.rows:
            form = "closed" if row.closed else "derived"
            verdict = "holds" if row.holds else f"FAILS at {row.where}"
            error = f"{row.error:.1e}" if row.closed else ""
            table.add_row(row.operator, form, verdict if row.closed else "", error)
        console = Console(width=120, color_system=None)
        with console.capture() as shown:
            console.print(table)
        return f"{self!r}\n{shown.get().rstrip()}"


def judge(formulation: Formulation, M: int) -> Report:
    """Every closed form of a formulation for M kernels."""
    formulation.validate(M)
    rows = []
    for name, errors in CHECKS.items():
        closed, worst = formulation.closed(name), (0.0, "")
        if closed:
            found = errors(formulation, stripped(formulation), M)
            worst = max(found, key=lambda pair: _number(pair[0]), default=worst)
        rows.append(Row(name, closed, _number(worst[0]), worst[1]))
    return Report(formulation.name, M, tuple(rows))


def _number(error: float) -> float:
    return float("inf") if np.isnan(error) else float(error)


def _points(M: int) -> Iterator[Array]:
    """Drawn points, points with zeros, ties, and the axes."""
    rng = np.random.default_rng(1)
    yield from rng.uniform(0.05, 2.0, size=(5, M))
    yield from rng.uniform(0.05, 2.0, size=(3, M)) * (rng.random((3, M)) < 0.6)
    yield from (np.ones(M), 0.5 * np.eye(M)[0], np.zeros(M))


def _apart(found: float, wanted: float) -> float:
    """Two numbers, relatively to 1 + size; infinities must be the same."""
    if np.isinf(found) or np.isinf(wanted):
        return 0.0 if found == wanted else float("inf")
    return abs(found - wanted) / (1 + abs(wanted))


def _at(point: Array) -> str:
    return np.array2string(np.asarray(point), precision=3, separator=", ")


def _value(f: Formulation, declared: Formulation, M: int) -> Errors:
    for u in _points(M):
        yield _apart(f.value(u), declared.value(u)), f"u = {_at(u)}"


def _conjugate(f: Formulation, declared: Formulation, M: int) -> Errors:
    for v in _points(M):
        inside = v * min(
            1.0, declared.feasible_scale(v) * (1 - 1e-5)
        )  # off the very edge
        found, wanted = f.conjugate(inside), declared.conjugate(inside)
        yield _apart(found, wanted), f"v = {_at(inside)}"


def _reach(f: Formulation, declared: Formulation, M: int) -> Errors:
    for v in _points(M):
        far = 50 * v
        yield (
            _apart(f.feasible_scale(far), declared.feasible_scale(far)),
            f"v = {_at(far)}",
        )


def _weights(f: Formulation, declared: Formulation, M: int) -> Errors:
    for u in _points(M):
        if not np.isfinite(declared.value(u)):
            continue
        theta = f.weights(u)
        wrong = np.any(theta < 0) or np.any(np.isnan(theta))
        used = (u > 0) & np.isfinite(theta) & (theta > 0)
        slope = np.zeros(M)
        slope[used] = u[used] / theta[used]
        missed = np.any((u > 0) & (theta == 0))  # an infinite slope
        error = float("inf") if wrong or missed else _young(declared, u, slope)
        yield error, f"u = {_at(u)}"


def _dual_weights(f: Formulation, declared: Formulation, M: int) -> Errors:
    for v in _points(M):
        inside = v * min(1.0, declared.feasible_scale(v) * (1 - 1e-5))
        theta = f.dual_weights(inside)
        slope = np.multiply(theta, inside, where=inside > 0, out=np.zeros(M))
        yield _young(declared, slope, inside), f"v = {_at(inside)}"


def _young(declared: Formulation, u: Array, slope: Array) -> float:
    """How far Ω(u) + Ω*(g) is from ⟨g, u⟩: 0 exactly where g is a slope at u."""
    if not np.any(slope):
        return _apart(declared.value(u), declared.value(np.zeros(len(u))))
    inside = slope * min(1.0, declared.feasible_scale(slope))
    both = declared.value(u) + declared.conjugate(inside * (1 - 1e-9))
    outside = _apart(float(inside @ slope), float(slope @ slope))
    return max(_apart(both, float(inside @ u)), outside)


def _prox(f: Formulation, declared: Formulation, M: int) -> Errors:
    rng = np.random.default_rng(2)
    for u in _points(M):
        step = rng.uniform(0.1, 2.0, M)

        def objective(z: Array, u: Array = u, step: Array = step) -> float:
            return declared.value(z) + float(np.sum((z - u) ** 2 / (2 * step)))

        z = f.prox(u, step)
        if np.any(z < 0) or np.any(np.isnan(z)):
            yield float("inf"), f"u = {_at(u)}"
            continue
        rivals = [declared.prox(u, step), *_near(z)]
        better = objective(z) - min(map(objective, rivals))
        yield max(better, 0.0) / (1 + objective(z)), f"u = {_at(u)}, step = {_at(step)}"


def _near(z: Array) -> Iterator[Array]:
    for e in np.eye(len(z)):
        yield from (np.maximum(z + h * e, 0.0) for h in (1e-2, -1e-2))


def _prox_slope(f: Formulation, declared: Formulation, M: int) -> Errors:
    rng, h = np.random.default_rng(3), 1e-6
    for _ in range(4):
        u, step = rng.uniform(0.5, 3.0, M), rng.uniform(0.05, 1.0, M)
        used = np.flatnonzero(f.prox(u, step) > 0)
        sides = [np.flatnonzero(f.prox(u + s * h, step) > 0) for s in (-10, 10)]
        if not all(np.array_equal(side, used) for side in sides):
            continue  # next to a kink
        moved = [f.prox(u + h * e, step) - f.prox(u - h * e, step) for e in np.eye(M)]
        wanted = np.array(moved).T[np.ix_(used, used)] / (2 * h)
        found = f.prox_slope(u, step)
        same = found.shape == wanted.shape
        error = np.max(np.abs(found - wanted), initial=0.0) if same else float("inf")
        yield 1e-2 * float(error), f"u = {_at(u)}"  # differences are good to 1e-5


CHECKS: dict[str, Callable[[Formulation, Formulation, int], Errors]] = {
    "value": _value,
    "conjugate": _conjugate,
    "feasible_scale": _reach,
    "weights": _weights,
    "dual_weights": _dual_weights,
    "prox": _prox,
    "prox_slope": _prox_slope,
}
