"""Where closed forms of a formulation are checked, against its declaration.

    value, conjugate,         against the same, derived from `penalty`
    feasible_scale
    weights                   Ω(u) + Ω*(g) = ⟨g, u⟩ for the slopes g = u/θ (Fenchel and
                              Young): g is a subgradient, whichever of them it is
    dual_weights              the same for v and the slopes θ v of Ω*
    prox                      its objective against that of the derived one, and
                              against small steps away from it
    prox_slope                against differences of prox

An interior-point method finds minimizers to the square root of its accuracy only. So
what defines them is checked instead, to TOL.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from ..formulations import Formulation, stripped
from ..util.tables import as_text, plain_table

Array = np.ndarray
INF = float("inf")
TOL = 1e-6
PROX_SLOPE_TOL = 1e-4  # differences of prox are good to 1e-5
Errors = Iterator[tuple[float, str]]  # an error relative to 1 + size, and where
Check = Callable[[Formulation, Formulation, int], Errors]


@dataclass(frozen=True)
class OperatorCheck:
    """One checked operator: its largest error, and where that was.

    Parameters
    ----------
    operator : str
        Its name, such as "prox".
    closed : bool
        Whether the formulation has a closed form for it; a derived one is not checked.
    error : float
        The largest error found, relative to 1 + size.
    where : str
        The point with that error.
    """

    operator: str
    closed: bool
    error: float
    where: str

    @property
    def holds(self) -> bool:
        """Whether the error is at most TOL."""
        return self.error <= TOL


@dataclass(frozen=True)
class FormulationReport:
    """What `mklopt.check_formulation` found of each operator; `print` shows the table.

    Parameters
    ----------
    formulation : str
        The name of the formulation.
    M : int
        The number of kernels.
    rows : tuple of OperatorCheck
        One for each operator.
    """

    formulation: str
    M: int
    rows: tuple[OperatorCheck, ...]

    @property
    def passed(self) -> bool:
        """Whether every closed form holds."""
        return not self.failures

    @property
    def failures(self) -> list[OperatorCheck]:
        """The operators whose closed form is wrong."""
        return [row for row in self.rows if not row.holds]

    def __repr__(self) -> str:
        wrong = ", ".join(row.operator for row in self.failures)
        count = sum(row.closed for row in self.rows)
        said = f"wrong: {wrong}" if wrong else f"{count} closed forms hold"
        return f"FormulationReport({self.formulation}, M = {self.M}: {said})"

    def __str__(self) -> str:
        table = plain_table("", ("operator", "form", "verdict"), ("error",))
        for row in self.rows:
            verdict = "holds" if row.holds else f"FAILS at {row.where}"
            cells = ("closed", verdict, f"{row.error:.1e}")
            table.add_row(row.operator, *(cells if row.closed else ("derived", "", "")))
        return f"{self!r}\n{as_text(table, 120)}"


def check_closed_forms(formulation: Formulation, M: int) -> FormulationReport:
    """Check every closed form of a formulation for M kernels."""
    formulation.validate(M)
    declared, rows = stripped(formulation), []
    for name, check in CHECKS.items():
        closed = formulation.closed(name)
        found = check(formulation, declared, M) if closed else ()
        errors = [(INF if np.isnan(e) else float(e), where) for e, where in found]
        worst = max(errors, key=itemgetter(0), default=(0.0, ""))
        rows.append(OperatorCheck(name, closed, *worst))
    return FormulationReport(formulation.name, M, tuple(rows))


def _points(M: int) -> Iterator[Array]:
    """Random points, points with zeros, ties, and an axis."""
    rng = np.random.default_rng(1)
    yield from rng.uniform(0.05, 2.0, size=(5, M))
    yield from rng.uniform(0.05, 2.0, size=(3, M)) * (rng.random((3, M)) < 0.6)
    yield from (np.ones(M), 0.5 * np.eye(M)[0], np.zeros(M))


def _apart(found: float, wanted: float) -> float:
    """|found − wanted| relative to 1 + size; infinities must be the same."""
    if np.isinf(found) or np.isinf(wanted):
        return 0.0 if found == wanted else INF
    return abs(found - wanted) / (1 + abs(wanted))


def _at(point: Array) -> str:
    return np.array2string(np.asarray(point), precision=3, separator=", ")


def _inside(declared: Formulation, v: Array) -> Array:
    """v, shrunk into the interior of the domain of Ω*."""
    return v * min(1.0, declared.feasible_scale(v) * (1 - 1e-5))


def _value(f: Formulation, declared: Formulation, M: int) -> Errors:
    for u in _points(M):
        yield _apart(f.value(u), declared.value(u)), f"u = {_at(u)}"


def _conjugate(f: Formulation, declared: Formulation, M: int) -> Errors:
    for v in (_inside(declared, v) for v in _points(M)):
        yield _apart(f.conjugate(v), declared.conjugate(v)), f"v = {_at(v)}"


def _feasible_scale(f: Formulation, declared: Formulation, M: int) -> Errors:
    for v in (50 * v for v in _points(M)):  # outside the domain, where it is bounded
        error = _apart(f.feasible_scale(v), declared.feasible_scale(v))
        yield error, f"v = {_at(v)}"


def _weights(f: Formulation, declared: Formulation, M: int) -> Errors:
    for u in _points(M):
        if not np.isfinite(declared.value(u)):
            continue
        theta, used = f.weights(u), u > 0
        valid = np.all(theta >= 0) and np.all(theta[used] > 0)  # 0: an infinite slope
        slope = np.divide(u, theta, where=used & (theta > 0), out=np.zeros(M))
        yield _fenchel_young(declared, u, slope) if valid else INF, f"u = {_at(u)}"


def _dual_weights(f: Formulation, declared: Formulation, M: int) -> Errors:
    for v in (_inside(declared, v) for v in _points(M)):
        slope = np.multiply(f.dual_weights(v), v, where=v > 0, out=np.zeros(M))
        yield _fenchel_young(declared, slope, v), f"v = {_at(v)}"


def _fenchel_young(declared: Formulation, u: Array, slope: Array) -> float:
    """How far Ω(u) + Ω*(g) is from ⟨g, u⟩: 0 exactly where g is a slope at u."""
    if not np.any(slope):
        return _apart(declared.value(u), declared.value(np.zeros(len(u))))
    inside = slope * min(1.0, declared.feasible_scale(slope))
    both = declared.value(u) + declared.conjugate(inside * (1 - 1e-9))
    outside = _apart(float(inside @ slope), float(slope @ slope))
    return max(_apart(both, float(inside @ u)), outside)


def _prox(f: Formulation, declared: Formulation, M: int) -> Errors:
    rng, moves = np.random.default_rng(2), 1e-2 * np.vstack([np.eye(M), -np.eye(M)])
    for u in _points(M):
        step = rng.uniform(0.1, 2.0, M)

        def objective(z: Array, u: Array = u, step: Array = step) -> float:
            return declared.value(z) + float(np.sum((z - u) ** 2 / (2 * step)))

        z, where = f.prox(u, step), f"u = {_at(u)}, step = {_at(step)}"
        if not np.all(z >= 0):
            yield INF, where
            continue
        near = np.maximum(z + moves, 0.0)
        better = objective(z) - min(map(objective, [declared.prox(u, step), *near]))
        yield max(better, 0.0) / (1 + objective(z)), where


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
        error = np.max(np.abs(found - wanted), initial=0.0) if same else INF
        yield TOL / PROX_SLOPE_TOL * float(error), f"u = {_at(u)}"


CHECKS: dict[str, Check] = {
    "value": _value,
    "conjugate": _conjugate,
    "weights": _weights,
    "dual_weights": _dual_weights,
    "prox": _prox,
    "prox_slope": _prox_slope,
    "feasible_scale": _feasible_scale,
}
