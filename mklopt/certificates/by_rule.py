"""Certificates for kernels by family and data: the kernels K* in exact arithmetic.

A file can state kernels by a rule of points, in place of n² numbers for each. Then the
bounds are for K*, and K* ⪰ 0 is a theorem: no δ. What was computed with K in float64,
|K_ij − K*_ij| ≤ E, bounds K* as well. With ‖α‖₁ = Σ_i |α_i|,

    |αᵀK*α − αᵀKα| ≤ E ‖α‖₁²        |(K*α)_i − (Kα)_i| ≤ E ‖α‖₁

so that norms and the errors of f are widened by so much (for every class).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels.psd_theorem import entry_errors
from ..kernels.table import GAUSSIAN
from ..util.rounding import TINY, U
from .certificate import Certificate, certify
from .enclosure import enclose, point_bounds
from .products import ERROR_MARGIN, PointBounds
from .reading import MAX_DEGREE

if TYPE_CHECKING:
    from ..kernels.fitted import FittedKernels

Array = np.ndarray


def by_rule(certificate: Certificate, fitted: FittedKernels) -> Certificate:
    """The certificate of the same points for the exact kernels of a family."""
    errors = _checked(fitted, certificate)
    problem = certificate.problem.with_(grams=fitted.stack())
    points = (certificate.enclosure.alpha, certificate.weights)
    found = certify(problem, *points, coefficients=certificate.coefficients)
    found = replace(found, alpha=found.enclosure.alpha, bounds=None)
    dual, primal = point_bounds(found)
    sizes = np.abs(found.alpha).reshape(problem.grams.n, -1).sum(axis=0)
    wide = _Widened(dual, errors, sizes, np.ones(problem.grams.M))
    weights, B = found.weights, found.coefficients
    if B is not None:
        sizes = np.abs(B).reshape(*B.shape[:2], -1).sum(axis=1)
        weights = np.ones(problem.grams.M)
    other = _Widened(primal, errors, sizes, np.asarray(weights))
    return replace(found, bounds=enclose(found, _Both(wide, other)))


def _checked(fitted: FittedKernels, certificate: Certificate) -> Array:
    """E of every kernel, if a file can state all of them."""
    shape = certificate.problem.grams.M, certificate.problem.grams.n
    if (fitted.M, fitted.n) != shape:
        raise ValueError(
            f"kernels has {fitted.M} kernels on {fitted.n} points, the problem has "
            f"{shape[0]} on {shape[1]}: give the kernels that it was made with"
        )
    errors = entry_errors(fitted)
    degrees = fitted.kernels.degrees
    if not np.all(np.isfinite(errors)) or np.max(degrees, initial=0) > MAX_DEGREE:
        raise ValueError(
            "a certificate file states Gaussians, linear and polynomial kernels "
            f"(degree ≤ {MAX_DEGREE}) by their family, not centred, and within the "
            "range of float64; leave out `kernels`, so that entries are stored"
        )
    return errors


class _Widened:
    """Bounds at a point with K, made bounds with K*.

    sizes: ‖·‖₁ for every class, (k,) or (M, k); theta: what multiplies it
    """

    def __init__(self, bounds: PointBounds, errors: Array, sizes: Array, theta: Array):
        self._bounds, sizes = (
            bounds,
            np.broadcast_to(sizes, (len(theta), *sizes.shape[-1:])),
        )
        self._squares = errors * theta**2 * np.sum(sizes**2, axis=1) * ERROR_MARGIN
        self._error = (errors * theta) @ sizes * ERROR_MARGIN
        self.above = _longer(bounds.above, self._squares)

    def predictions(self, bias: Any) -> tuple[Array, Array, Array]:
        """f, a bound of its error, and upper bounds of u_m = ‖w_m‖."""
        f, error, u = self._bounds.predictions(bias)
        return f, (error + self._error) * ERROR_MARGIN, _longer(u, self._squares)


class _Both:
    """The norms of the dual point, the predictions of the primal point."""

    def __init__(self, dual: PointBounds, primal: PointBounds):
        self.above, self.predictions = dual.above, primal.predictions


def _longer(norms: Array, squares: Array) -> Array:
    return np.sqrt(norms**2 + squares) * (1 + 8 * U) + TINY


def rules_of(fitted: FittedKernels) -> dict[str, Any]:
    """`kernels` and `points` of a file."""
    fitted.learn(np.arange(fitted.M))
    table, (degrees, numbers) = fitted.kernels, fitted.rules()
    divisors, place, rows = fitted.divisors()
    kernels: list[list] = []
    for m in range(fitted.M):
        base = table.base[m]
        columns = table.columns[table.ends[base] : table.ends[base + 1]].tolist()
        steps = [
            float(D) if r < 0 else rows[r]
            for D, r in zip(divisors[:, m], place[:, m])
            if r >= 0 or D != 1
        ]
        number = float(numbers[m])
        terms: dict[str, Any] = {"degree": int(degrees[m]), "offset": number}
        gaussian = table.kinds[m] == GAUSSIAN
        terms = {"rate": -number} if gaussian else terms
        terms |= {"columns": columns, "divisors": steps}
        kernels.append(["gaussian" if gaussian else "power", terms])
    return {"kernels": kernels, "points": list(fitted.points)}
