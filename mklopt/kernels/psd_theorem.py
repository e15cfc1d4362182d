"""Positive semi-definite by theorem: δ for which K_m + δ_m I ⪰ 0, without a Cholesky.

Let K* be a kernel in exact arithmetic: of the points as they are, with the −1/scale,
the offset and the divisors that were stored. Gaussians and powers (⟨x, z⟩ + offset)^p
with offset ≥ 0 are positive semi-definite, and stay so when they are divided by a
number, or entry (i, j) by r_i r_j. With s_i² = K*_ii, entries as they are computed obey

    |K_ij − K*_ij| ≤ κ s_i s_j + a    so that    ‖K − K*‖ ≤ κ tr K* + n a =: δ

The steps, on d features, u the unit round-off and γ_k = k u/(1 − k u):

    Gaussian   ρ = γ_{d+4}: relative error of the exponent −x: differences, squares, d
               sums, one product; τ = (|rate| d + 1) 2^-1073 where these underflow
               κ = (1 + 2τ)(ρ (1 + 2ρ)/e + τ) + 3e-16     x e^{-x(1-ρ)} ≤ 1/(e (1 − ρ))
    power      κ = γ_{p(d+3)}: |t| ≤ g = r_i r_j + offset ≤ s_i s_j for p = 1, by
               Cauchy–Schwarz; a = p max(1, g)^{p-1} (d + 1) 2^-1072, underflow
    / number   κ + γ_2 (1 + κ), a / number
    / r_i r_j  κ + γ_4 (1 + κ), a / min r_i r_j; the diagonal is 1 and not
               k(x, x)/r_i²: this is off by 2u, and by the error of k(x, x)

κ is small: 10^-14 or less for 200 features. What is not known here is ∞: functions and
distances of users, centring, numbers near the ends of the range of float64.

References: Schoenberg (1938) for Gaussians, Schur (1911) for powers; Higham (2002),
chapters 2 and 3, for γ and underflow; util/exponential.py for the error 3e-16.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..util.arrays import Array
from ..util.rounding import TINY, U
from .learned import ROWS
from .table import GAUSSIAN

if TYPE_CHECKING:
    from .fitted import FittedKernels

EXP = 3e-16  # relative error of the exponential
LEAST = 2.0**-1074  # the smallest number
SLOWEST = 1e-300  # |rate| above which exp(rate · t) is 0 where t overflows
LARGEST = 1e300  # numbers below do not overflow by rounding
SMALL = 1e-7  # κ and a / min r² up to here


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def psd_shift(
    fitted: FittedKernels, index: Array, traces: Array | None = None
) -> Array:
    """δ_m for which K_m + δ_m I ⪰ 0 is a theorem; ∞ where it is not.

    Parameters
    ----------
    fitted : FittedKernels
    index : array of int (r,)
        The numbers of the kernels.
    traces : array (r,), optional
        Σ_i k_m(x_i, x_i) in float64, if they are known.

    Returns
    -------
    array (r,)
        Rounded up. It is for entries in float64, as grams() and lazy() compute them.
    """
    direct = fitted.kernels.direct[index]
    if "centre" in fitted.normalize or not np.any(direct):
        return np.full(len(index), np.inf)
    if not np.all(direct):
        out = np.full(len(index), np.inf)
        known = None if traces is None else traces[direct]
        out[direct] = psd_shift(fitted, index[direct], known)
        return out
    fitted.learn(index)
    kappa, a = _normalized(fitted, index, *_computed(fitted, index))
    traces, n = fitted.traces(index) if traces is None else traces, fitted.n
    exact = (traces * (1 + _gamma(n + 8)) + n * a) / (1 - kappa)  # s² ≤ (k + a)/(1 − κ)
    delta = (kappa * exact + n * a) * (1 + _gamma(16)) + TINY
    return np.where((kappa <= SMALL) & (delta <= SMALL * exact), delta, np.inf)


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def entry_errors(fitted: FittedKernels) -> Array:
    """E_m ≥ |K_ij − K*_ij| for all entries of each kernel; ∞ where it is not known.

    Parameters
    ----------
    fitted : FittedKernels

    Returns
    -------
    array (M,)
        κ max s² + a, rounded up, for entries in float64.
    """
    index = np.arange(fitted.M)
    if "centre" in fitted.normalize or not np.all(fitted.kernels.direct):
        return np.full(fitted.M, np.inf)
    fitted.learn(index)
    kappa, a = _normalized(fitted, index, *_computed(fitted, index))
    largest = np.array([np.max(fitted.squares(index[m : m + 1])) for m in index])
    errors = (kappa * (largest + a) / (1 - kappa) + a) * (1 + _gamma(16)) + TINY
    return np.where(kappa <= SMALL, errors, np.inf)


def _gamma(k: Array | int) -> Array:
    """γ_k; ∞ where k is too large for it."""
    ku = np.asarray(k, float) * U
    return np.where(ku < 0.5, ku / (1 - ku) * (1 + 4 * U), np.inf)


def _computed(fitted: FittedKernels, index: Array) -> tuple[Array, Array]:
    """κ and a of kernels before normalization."""
    table, (degrees, numbers) = fitted.kernels, fitted.rules(index)
    d = np.diff(table.ends)[table.base[index]].astype(float)
    gaussian = table.kinds[index] == GAUSSIAN
    rho, tau = _gamma(d + 4), (np.abs(numbers) * d + 1) * 2.0**-1073
    kappa = (1 + 2 * tau) * (rho * (1 + 2 * rho) * 0.36788 + tau) + EXP
    kappa[(tau > SMALL) | (np.abs(numbers) < SLOWEST)] = np.inf
    a = np.full(len(index), 4 * LEAST)
    power = np.flatnonzero(~gaussian)
    p = degrees[power].astype(float)
    g = (_lengths(fitted, index[power]) + numbers[power]) * (1 + 1e-9) + TINY
    kappa[power] = np.where(g**p < LARGEST, _gamma(p * (d[power] + 3)), np.inf)
    a[power] = p * np.maximum(1, g) ** (p - 1) * (d[power] + 1) * 2.0**-1072
    return kappa * (1 + _gamma(8)), a * (1 + _gamma(8))


def _lengths(fitted: FittedKernels, index: Array) -> Array:
    """Upper bounds of max_i ‖x_i‖², up to rounding: the sum of the largest squares."""
    table = fitted.kernels
    bases, place = np.unique(table.base[index], return_inverse=True)
    largest = np.max(np.abs(fitted.points), axis=1, initial=0.0) if len(bases) else 0.0
    squares = np.square(np.atleast_1d(largest))
    columns = (table.columns[table.ends[b] : table.ends[b + 1]] for b in bases)
    return np.array([float(np.sum(squares[some])) for some in columns])[place]


def _normalized(
    fitted: FittedKernels, index: Array, kappa: Array, a: Array
) -> tuple[Array, Array]:
    """κ and a after every step of the normalization."""
    for step, learned in zip(fitted.normalize, fitted.learned.steps):
        if step in ROWS:
            least, error = np.square(learned.least()[index]), _gamma(4)
            valid = (least >= 2.0**-1000) & (kappa <= SMALL) & (a <= SMALL * least)
            kappa = np.where(valid, kappa, np.inf)
        else:
            least, error = learned[index], _gamma(2)
        kappa = (kappa + error * (1 + kappa)) * (1 + _gamma(4))
        a = a / least * (1 + _gamma(8)) + 4 * LEAST
    return kappa, a
