"""An evaluator of primal and dual values in rationals and mpmath; no code of mklopt.

    P(w, b) = Σ C_i V(f_i, y_i) + Ω(‖w_1‖, …, ‖w_M‖),   f = Σ_m K_m β_m + b
    D(α)    = −Σ C_i V*(−α_i/C_i, y_i) − Ω*(‖α‖_{K_1}, …, ‖α‖_{K_M})

Floats are read as the rational numbers they are. Predictions and quadratic forms are
exact. Roots, powers and logarithms have PRECISION bits; a verdict needs a difference of
more than SLACK times the sum of all magnitudes, which is far above their error.

Every value is a pair (below, above): the two are one number where Ω has a closed form,
and otherwise come from feasible points of the minimum that defines it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
from mpmath import mp, mpf

PRECISION = 320  # bits, about 96 digits
SLACK = mpf(10) ** -60
ROUNDED = Fraction(1, 10**80)
HUGE = 10**20  # above this exponent a norm is enclosed, not computed
INF = math.inf
mp.prec = PRECISION

Array = np.ndarray
Pair = tuple[Any, Any]


class Indefinite(ValueError):
    """A quadratic form of a kernel is negative: weak duality does not hold."""


# ---- numbers ---------------------------------------------------------------------


def rational(x: Any) -> Fraction:
    """A finite float as the rational number it is."""
    return Fraction(float(x))


def real(x: Any) -> Any:
    """A rational number, a float or ±∞ with PRECISION bits."""
    if isinstance(x, Fraction):
        return mpf(x.numerator) / x.denominator
    return mpf(x)


def dyadic(values: Any) -> tuple[Array, Fraction]:
    """Finite floats as integers times one power of two."""
    flat = np.asarray(values, float)
    ratios = [float(x).as_integer_ratio() for x in flat.ravel()]
    bits = max((d.bit_length() - 1 for _, d in ratios), default=0)
    whole = np.empty(len(ratios), object)
    whole[:] = [k << (bits - d.bit_length() + 1) for k, d in ratios]
    return whole.reshape(flat.shape), Fraction(1, 1 << bits)


def gram(L: Any) -> list[list[Fraction]]:
    """L Lᵀ in rationals."""
    whole, unit = dyadic(L)
    K = whole @ whole.T
    return [[x * unit * unit for x in row] for row in K]


def matrix(K: Any) -> list[list[Fraction]]:
    """The entries of a matrix of floats."""
    return [[rational(x) for x in row] for row in np.asarray(K, float)]


# ---- the problem -----------------------------------------------------------------


class Kernels:
    """Symmetric matrices K_m + δ_m I of rational numbers.

    Of kernels that are rounded to PRECISION bits, `rounded`, a quadratic form may be
    negative by as little.
    """

    def __init__(
        self,
        matrices: list[list[list[Fraction]]],
        shift: Sequence[float],
        rounded: bool = False,
    ):
        self.M, self.n, self.rounded = len(matrices), len(matrices[0]), rounded
        self.parts = [self._integers(K, rational(d)) for K, d in zip(matrices, shift)]

    def _integers(self, K: list, delta: Fraction) -> tuple[Array, Fraction]:
        den = math.lcm(delta.denominator, *(x.denominator for r in K for x in r))
        out = np.empty((self.n, self.n), object)
        for i, row in enumerate(K):
            for j, x in enumerate(row):
                entry = x + delta if i == j else x
                out[i, j] = entry.numerator * (den // entry.denominator)
        return out, Fraction(1, den)

    def apply(self, m: int, block: tuple[Array, Fraction]) -> tuple[Array, Fraction]:
        """K_m β and βᵀK_mβ, for β = integers times a unit."""
        (K, unit), (whole, scale) = self.parts[m], block
        product = K @ whole
        square = Fraction(int(np.sum(whole * product))) * unit * scale * scale
        if square < 0 and self.rounded:
            size = np.abs(whole).sum() ** 2 * max(K[i, i] for i in range(self.n))
            if -square <= ROUNDED * size * unit * scale * scale:
                square = Fraction(0)
        if square < 0:
            raise Indefinite(f"kernel {m} has a negative quadratic form")
        factor = unit * scale
        out = np.empty(product.shape, object)
        out.ravel()[:] = [Fraction(int(x)) * factor for x in product.ravel()]
        return out, square

    def definite(self, m: int) -> bool:
        """Whether kernel m is positive semi-definite: elimination in integers.

        Bareiss: pivots are minors, and every division is exact.
        """
        A = [[int(x) for x in row] for row in self.parts[m][0]]
        before = 1
        for i in range(self.n):
            pivot = A[i][i]
            if pivot < 0 or (pivot == 0 and any(A[i][i + 1 :])):
                return False
            if pivot == 0:
                continue
            for j in range(i + 1, self.n):
                for k in range(j, self.n):
                    A[j][k] = (pivot * A[j][k] - A[i][j] * A[i][k]) // before
            before = pivot
        return True


@dataclass
class Exact:
    """One problem in numbers that are not rounded.

    Parameters
    ----------
    kernels : Kernels
    y : labels as rationals (or classes as int)
    C : one rational per sample
    loss, penalty : (name, parameters), the parameters as floats
    bias : bool
    """

    kernels: Kernels
    y: list
    C: list[Fraction]
    loss: tuple[str, dict]
    penalty: tuple[str, dict]
    bias: bool

    @property
    def classes(self) -> int:
        """k of a multi-class loss, else 0."""
        return max(self.y) + 1 if self.loss[0] in MULTI else 0

    def primal(self, blocks: list[tuple[Array, Fraction]], b: Any = 0) -> Pair:
        """P at w_m = Σ_i β_mi ψ_m(x_i) and bias b; blocks are β_m."""
        f, u = None, []
        for m, block in enumerate(blocks):
            Kb, square = self.kernels.apply(m, block)
            f = Kb if f is None else f + Kb
            u.append(mpmath.sqrt(real(square)))
        return self.primal_at(f + _bias(b, self.classes), u)

    def primal_of_features(
        self, factors: list[Array], parts: list[tuple[Array, Fraction]], b: Any = 0
    ) -> Pair:
        """P at feature weights w_m: f = Σ_m L_m w_m + b, and u_m = ‖w_m‖."""
        f, u = None, []
        for L, (whole, scale) in zip(factors, parts):
            left, unit = dyadic(L)
            product = left @ whole
            image = np.empty(product.shape, object)
            image.ravel()[:] = [int(x) * unit * scale for x in product.ravel()]
            f = image if f is None else f + image
            square = Fraction(int(np.sum(whole * whole))) * scale * scale
            u.append(mpmath.sqrt(real(square)))
        return self.primal_at(f + _bias(b, self.classes), u)

    def primal_at(self, f: Array, u: list) -> Pair:
        """P from exact predictions and block norms."""
        value = LOSSES[self.loss[0]][0]
        terms = [
            real(C) * real(value(self.loss[1], f_i, y))
            for C, f_i, y in zip(self.C, f, self.y)
        ]
        below, above = OMEGA[self.penalty[0]][0](self.penalty[1], u)
        total = mpmath.fsum(terms)
        size = total + abs(above) if mpmath.isfinite(above) else total
        return total + below - SLACK * size, total + above + SLACK * size

    def dual(self, block: tuple[Array, Fraction]) -> Pair:
        """D at a dual point; (−∞, −∞) outside the domain."""
        nothing = (-mpmath.inf, -mpmath.inf)
        whole, scale = block
        alpha = np.empty(whole.shape, object)
        alpha.ravel()[:] = [Fraction(int(x)) * scale for x in whole.ravel()]
        if self.bias and np.any(np.sum(alpha, axis=0) != 0):
            return nothing
        conjugate, terms = LOSSES[self.loss[0]][1], []
        for C, a, y in zip(self.C, alpha, self.y):
            term = conjugate(self.loss[1], a, C, y)
            if term is None:
                return nothing
            terms.append(real(term))
        v = [
            mpmath.sqrt(real(self.kernels.apply(m, block)[1]))
            for m in range(self.kernels.M)
        ]
        below, above = OMEGA[self.penalty[0]][1](self.penalty[1], v)
        total = mpmath.fsum(terms)
        size = mpmath.fsum(map(abs, terms))
        size += abs(below) if mpmath.isfinite(below) else 0
        return -total - above - SLACK * size, -total - below + SLACK * size

    def feasible(self, alpha: Any) -> tuple[Array, Fraction] | None:
        """A feasible dual point near α, in rationals: clipped, then balanced.

        Only for losses whose domain is a box; None for multi-class losses.
        """
        if self.classes:
            return None
        name, parameters = self.loss
        point = []
        for a, C, y in zip(np.asarray(alpha, float), self.C, self.y):
            low, high = BOX[name](parameters, y)
            value = rational(a)
            value = value if high is None else min(value, C * high)
            point.append(value if low is None else max(value, C * low))
        if self.bias:
            plus = sum((a for a in point if a > 0), Fraction(0))
            minus = -sum((a for a in point if a < 0), Fraction(0))
            if plus == 0 or minus == 0:
                return None
            up, down = min(Fraction(1), minus / plus), min(Fraction(1), plus / minus)
            point = [a * (up if a > 0 else down) for a in point]
        return integers(point)


def integers(point: list[Fraction]) -> tuple[Array, Fraction]:
    """Rational numbers as integers times one unit."""
    den = math.lcm(*(a.denominator for a in point))
    whole = np.empty(len(point), object)
    whole[:] = [a.numerator * (den // a.denominator) for a in point]
    return whole, Fraction(1, den)


def _bias(b: Any, classes: int) -> Any:
    if not classes:
        return b if isinstance(b, Fraction) else rational(np.asarray(b).item())
    if isinstance(b, Fraction) or np.asarray(b).dtype.kind == "O":
        return b
    out = np.empty(classes, object)
    out[:] = [rational(x) for x in np.broadcast_to(np.asarray(b, float), (classes,))]
    return out


# ---- losses: V(f, y), C V*(−α/C, y), and the box of α/C ------------------------------
# A conjugate returns None outside its domain.


def _log1p_exp(x: Any) -> Any:
    """An upper bound of log(1 + exp x), to PRECISION bits where |x| < 1e6."""
    x = real(x)
    if x > 10**6:
        return x + mpf(10) ** -1000
    return mpmath.log1p(mpmath.exp(max(x, mpf(-(10**6)))))


def _entropy(t: Fraction) -> Any:
    return mpf(0) if t == 0 else real(t) * mpmath.log(real(t))


def _within(t: Fraction, low: Any, high: Any) -> bool:
    return (low is None or t >= low) and (high is None or t <= high)


def _boxed(name: str, formula: Callable) -> Callable:
    """C V*(−α/C) by a formula in (parameters, α, C, y); None outside the box."""

    def conjugate(p: dict, alpha: Fraction, C: Fraction, y: Any) -> Any:
        inside = _within(alpha / C, *BOX[name](p, y))
        return formula(p, alpha, C, y) if inside else None

    return conjugate


def _logistic_conjugate(p: dict, alpha: Fraction, C: Fraction, y: Any) -> Any:
    t = alpha * y / C
    return real(C) * (_entropy(t) + _entropy(1 - t))


def _huber(p: dict, f: Fraction, y: Fraction) -> Fraction:
    r, delta = abs(f - y), rational(p["delta"])
    return r * r / 2 if r <= delta else delta * r - delta * delta / 2


def _quantile(p: dict, f: Fraction, y: Fraction) -> Fraction:
    tau, r = rational(p["tau"]), y - f
    return max(tau * r, (tau - 1) * r)


def _crammer(p: dict, f: Array, y: int) -> Fraction:
    return max(f[j] + (j != y) for j in range(len(f))) - f[y]


def _multinomial(p: dict, f: Array, y: int) -> Any:
    best = max(range(len(f)), key=lambda j: f[j])
    others = [
        mpmath.exp(max(real(f[j] - f[best]), mpf(-(10**6))))
        for j in range(len(f))
        if j != best
    ]
    return real(f[best] - f[y]) + mpmath.log1p(mpmath.fsum(others))


def _share(alpha: Array, C: Fraction, y: int) -> list[Fraction] | None:
    """g = e_y − α/C, if it is in the simplex."""
    g = [(j == y) - a / C for j, a in enumerate(alpha)]
    return g if sum(g) == 1 and min(g) >= 0 else None


def _crammer_conjugate(p: dict, alpha: Array, C: Fraction, y: int) -> Any:
    return None if _share(alpha, C, y) is None else -alpha[y]


def _multinomial_conjugate(p: dict, alpha: Array, C: Fraction, y: int) -> Any:
    g = _share(alpha, C, y)
    return None if g is None else real(C) * mpmath.fsum(map(_entropy, g))


ZERO, ONE = Fraction(0), Fraction(1)
MULTI = ("multiclass_hinge", "multinomial")
BOX: dict[str, Callable[[dict, Any], tuple]] = {  # of α/C
    "hinge": lambda p, y: (ZERO, ONE) if y > 0 else (-ONE, ZERO),
    "steep_hinge": lambda p, y: (ZERO, 3 * ONE) if y > 0 else (-3 * ONE, ZERO),
    "squared_hinge": lambda p, y: (ZERO, None) if y > 0 else (None, ZERO),
    "one_class": lambda p, y: (ZERO, ONE),
    "logistic": lambda p, y: (ZERO, ONE) if y > 0 else (-ONE, ZERO),
    "squared": lambda p, y: (None, None),
    "eps_insensitive": lambda p, y: (-ONE, ONE),
    "huber": lambda p, y: (-rational(p["delta"]), rational(p["delta"])),
    "quantile": lambda p, y: (rational(p["tau"]) - 1, rational(p["tau"])),
}
LOSSES: dict[str, tuple[Callable, Callable]] = {
    "hinge": (
        lambda p, f, y: max(ZERO, 1 - y * f),
        _boxed("hinge", lambda p, a, C, y: -a * y),
    ),
    "steep_hinge": (
        lambda p, f, y: 3 * max(ZERO, 1 - y * f),
        _boxed("steep_hinge", lambda p, a, C, y: -a * y),
    ),
    "squared_hinge": (
        lambda p, f, y: max(ZERO, 1 - y * f) ** 2,
        _boxed("squared_hinge", lambda p, a, C, y: -a * y + a * a / (4 * C)),
    ),
    "one_class": (
        lambda p, f, y: max(ZERO, 1 - f),
        _boxed("one_class", lambda p, a, C, y: -a),
    ),
    "logistic": (
        lambda p, f, y: _log1p_exp(-y * f),
        _boxed("logistic", _logistic_conjugate),
    ),
    "squared": (
        lambda p, f, y: (f - y) ** 2 / 2,
        _boxed("squared", lambda p, a, C, y: a * a / (2 * C) - a * y),
    ),
    "eps_insensitive": (
        lambda p, f, y: max(ZERO, abs(f - y) - rational(p["eps"])),
        _boxed(
            "eps_insensitive",
            lambda p, a, C, y: rational(p["eps"]) * abs(a) - a * y,
        ),
    ),
    "huber": (
        _huber,
        _boxed("huber", lambda p, a, C, y: a * a / (2 * C) - a * y),
    ),
    "quantile": (
        _quantile,
        _boxed("quantile", lambda p, a, C, y: -a * y),
    ),
    "multiclass_hinge": (_crammer, _crammer_conjugate),
    "multinomial": (_multinomial, _multinomial_conjugate),
}


# ---- Ω(u) and Ω*(v), both as pairs (below, above) ------------------------------------


def exponent(x: Any) -> Any:
    """An exponent as a rational, or ∞."""
    return INF if x == INF else rational(x)


def partner(q: Any) -> Any:
    """q* with 1/q + 1/q* = 1."""
    if q == INF:
        return Fraction(1)
    return INF if q == 1 else q / (q - 1)


def block(p: Any) -> Any:
    """q = 2p/(p + 1)."""
    return Fraction(2) if p == INF else 2 * p / (p + 1)


def norm(x: list, q: Any) -> Pair:
    """‖x‖_q for x ≥ 0."""
    top = max(x)
    if q == INF or top == 0:
        return top, top
    if q == 1:
        total = mpmath.fsum(x)
        return total, total
    if q > HUGE:  # top ≤ ‖x‖_q ≤ M^(1/q) top
        return top, top * (1 + 2 * mpf(len(x)) / real(q))
    shares = [(a / top) ** real(q) for a in x if a > 0]
    found = top * mpmath.fsum(shares) ** (1 / real(q))
    return found, found


def of_pair(pair: Pair, function: Callable) -> Pair:
    """An increasing function of an enclosed number."""
    return function(pair[0]), function(pair[1])


def same(value: Any) -> Pair:
    """A number that is known."""
    return value, value


def indicator(inside: bool) -> Pair:
    """0 inside a set, ∞ outside."""
    return same(mpf(0) if inside else mpmath.inf)


def half_square(pair: Pair) -> Pair:
    """½x²."""
    return of_pair(pair, lambda x: x * x / 2)


def mixed(x: list, groups: Any, r: Any, s: Any) -> Pair:
    """‖(‖x_j‖_r)_j‖_s."""
    inner = [norm([x[k] for k in group], r) for group in groups]
    return norm([a for a, _ in inner], s)[0], norm([b for _, b in inner], s)[1]


def _powers(q: Fraction) -> tuple[Callable, Callable]:
    """½Σu^q and its conjugate."""

    def conjugate(v: list) -> Pair:
        if q == 1:
            return indicator(max(v) <= mpf(1) / 2)
        star = real(partner(q))
        terms = [(2 * a / real(q)) ** star for a in v if a > 0]
        return same((real(q) - 1) / 2 * mpmath.fsum(terms))

    return lambda u: same(mpmath.fsum(a ** real(q) for a in u if a > 0) / 2), conjugate


def _elastic(p: dict, u: list) -> Pair:
    rho = real(rational(p["l1_ratio"]))
    square = mpmath.fsum(a * a for a in u)
    return same(rho * mpmath.fsum(u) + (1 - rho) / 2 * square)


def _elastic_conjugate(p: dict, v: list) -> Pair:
    rho = real(rational(p["l1_ratio"]))
    if rho == 1:
        return indicator(max(v) <= 1)
    over = mpmath.fsum(max(a - rho, mpf(0)) ** 2 for a in v)
    return same(over / (2 * (1 - rho)))


def _fixed(p: dict, u: list) -> Pair:
    terms = []
    for a, theta in zip(u, p["theta"]):
        if a > 0 and theta == 0:
            return same(mpmath.inf)
        terms.append(a * a / (2 * mpf(theta)) if a > 0 else mpf(0))
    return same(mpmath.fsum(terms))


def _tikhonov(p: dict, u: list) -> Pair:
    # 3 · 2^(−4/3) μ^(1/3) N^(4/3)
    N = norm(u, block(exponent(p["p"])))
    third = mpf(1) / 3
    scale = 3 * mpf(2) ** (-4 * third) * mpf(p["mu"]) ** third
    return of_pair(N, lambda x: scale * x ** (4 * third))


def _tikhonov_conjugate(p: dict, v: list) -> Pair:
    N = norm(v, partner(block(exponent(p["p"]))))
    return of_pair(N, lambda x: x**4 / (16 * mpf(p["mu"])))


def _weighted(p: dict, u: list) -> Pair:
    scaled = [a / mpmath.sqrt(mpf(w)) for a, w in zip(u, p["prior"])]
    return half_square(norm(scaled, block(exponent(p["p"]))))


def _weighted_conjugate(p: dict, v: list) -> Pair:
    scaled = [a * mpmath.sqrt(mpf(w)) for a, w in zip(v, p["prior"])]
    return half_square(norm(scaled, partner(block(exponent(p["p"])))))


def _sparse_block(p: dict, u: list) -> Pair:
    plain = mpf(p["a"]) * mpmath.fsum(u)
    return of_pair(norm(u, exponent(p["q"])), lambda x: x * x / 2 + plain)


def _sparse_block_conjugate(p: dict, v: list) -> Pair:
    over = [max(x - mpf(p["a"]), mpf(0)) for x in v]
    return half_square(norm(over, partner(exponent(p["q"]))))


def _ellipsoid(p: dict, u: list) -> Pair:
    """Ω ≤ ½Σu²/θ at a feasible θ, found in floats and scaled exactly to the edge."""
    top = max(u)
    if top == 0:
        return same(mpf(0))
    E = np.array(p["E"], float)
    theta = _ellipsoid_weights(E, np.array([float(a / top) for a in u]))
    if theta is None:
        return mpf(0), mpmath.inf
    size = mpmath.sqrt(_inverse_form(E, theta))
    return mpf(0), mpmath.fsum(a * a * size / (2 * mpf(t)) for a, t in zip(u, theta))


def _ellipsoid_weights(E: Array, u: Array) -> Array | None:
    from scipy.optimize import minimize

    P, square = np.linalg.inv(E), np.maximum(u, 1e-9) ** 2

    def objective(t: Array) -> tuple[float, Array]:
        theta = np.exp(t)
        value = np.sum(square / theta) + theta @ P @ theta
        return value, -square / theta + 2 * theta * (P @ theta)

    start = np.log(np.maximum(u, 1e-3))
    options = {"gtol": 1e-9}
    with np.errstate(all="ignore"):  # what is not finite is refused below
        found = minimize(objective, start, jac=True, method="BFGS", options=options)
        theta = np.exp(found.x)
    return theta if np.all(np.isfinite(theta) & (theta > 0)) else None


def _inverse_form(E: Array, theta: Array) -> Any:
    """θᵀE⁻¹θ with PRECISION bits."""
    A = mpmath.matrix([[mpf(float(x)) for x in row] for row in E])
    b = mpmath.matrix([mpf(float(x)) for x in theta])
    return (b.T * mpmath.lu_solve(A, b))[0]


def _ellipsoid_conjugate(p: dict, v: list) -> Pair:
    """Ω* ≤ ½‖v² + s‖_E at any s ≥ 0, with s = 0 the best where E ≥ 0 entrywise."""
    from scipy.optimize import nnls

    top = max(v)
    if top == 0:
        return same(mpf(0))
    E = np.array(p["E"], float)
    R = np.linalg.cholesky(E)
    x = [(a / top) ** 2 for a in v]
    s = np.zeros(len(v))
    if np.any(E < 0):
        s, _ = nnls(R.T, -(R.T @ np.array([float(a) for a in x])))
    z = [a + mpf(float(b)) for a, b in zip(x, s)]
    rows = (mpmath.fsum(mpf(float(e)) * b for e, b in zip(row, z)) for row in E)
    square = mpmath.fsum(a * b for a, b in zip(z, rows))
    above = top * top * mpmath.sqrt(square) / 2
    return (mpf(0) if np.any(E < 0) else above), above


def _k_support(p: dict, u: list) -> Pair:
    """r kernels with θ = 1, the others with θ = u/τ: the best r for which θ ≤ 1."""
    k, order = int(p["k"]), sorted(u, reverse=True)
    best = mpmath.inf
    if sum(a > 0 for a in u) <= k:
        best = mpmath.fsum(a * a for a in u) / 2
    for r in range(min(k, len(u))):
        rest = mpmath.fsum(order[r:])
        if order[r] * (k - r) <= rest:
            whole = mpmath.fsum(a * a for a in order[:r])
            best = min(best, (whole + rest * rest / (k - r)) / 2)
    return same(best)


def _owl_conjugate(p: dict, v: list) -> Pair:
    total, allowed = mpf(0), mpf(0)
    for a, lam in zip(sorted(v, reverse=True), p["lam"]):
        total, allowed = total + a, allowed + mpf(lam)
        if total > allowed:
            return indicator(False)
    return indicator(True)


def _sparse_group(p: dict, u: list) -> Pair:
    a = mpf(p["a"])
    across = mpmath.fsum(norm([u[k] for k in g], Fraction(2))[0] for g in p["groups"])
    return same(a * mpmath.fsum(u) + (1 - a) * across)


def _sparse_group_conjugate(p: dict, v: list) -> Pair:
    a = mpf(p["a"])
    over = [max(x - a, mpf(0)) for x in v]
    sizes = [norm([over[k] for k in g], Fraction(2))[0] for g in p["groups"]]
    return indicator(max(sizes) <= 1 - a)


def _latent(p: dict, u: list) -> Pair:
    """Ω ≤ Σ‖z_g‖ at a split z of u, found by reweighting in floats."""
    top = max(u)
    if top == 0:
        return same(mpf(0))
    groups, plain = p["groups"], np.array([float(a / top) for a in u])
    t = np.ones(len(groups))
    owners = [[g for g in range(len(groups)) if m in groups[g]] for m in range(len(u))]
    for _ in range(200):
        total = [sum(t[g] for g in owner) for owner in owners]
        z = [[plain[m] * t[g] / total[m] for m in groups[g]] for g in range(len(t))]
        t = np.maximum([float(np.linalg.norm(part)) for part in z], 1e-200)
    whole = [mpmath.fsum(mpf(t[g]) for g in owner) for owner in owners]
    parts = [[u[m] * mpf(t[g]) / whole[m] for m in groups[g]] for g in range(len(t))]
    return mpf(0), mpmath.fsum(norm(part, Fraction(2))[0] for part in parts)


def _latent_conjugate(p: dict, v: list) -> Pair:
    sizes = [norm([v[k] for k in g], Fraction(2))[0] for g in p["groups"]]
    return indicator(max(sizes) <= 1)


def _barrier(p: dict, u: list) -> Pair:
    mu, c = mpf(p["mu"]), mpf(p["c"])
    terms = []
    for a in u:
        theta = (mu + mpmath.sqrt(mu * mu + 2 * c * a * a)) / (2 * c)
        terms.append(a * a / (2 * theta) + c * theta - mu * mpmath.log(theta))
    return same(mpmath.fsum(terms))


def _barrier_conjugate(p: dict, v: list) -> Pair:
    mu, c = mpf(p["mu"]), mpf(p["c"])
    left = [c - a * a / 2 for a in v]
    if min(left) <= 0:
        return indicator(False)
    return same(mpmath.fsum(mu * (mpmath.log(mu / x) - 1) for x in left))


def _tree(p: dict, u: list) -> Pair:
    lam = mpf(p["lam"])
    across = mpmath.fsum(norm([u[k] for k in g], Fraction(2))[0] for g in p["groups"])
    return same(mpmath.fsum(u) + lam * across)


def _smooth_elastic_conjugate(p: dict, v: list) -> Pair:
    over = mpmath.fsum(max(a - 1, mpf(0)) ** 2 for a in v)
    return same(over / (4 * mpf(p["kappa"])))


OMEGA: dict[str, tuple[Callable[[dict, list], Pair], Callable[[dict, list], Pair]]] = {
    "LpNorm": (
        lambda p, u: half_square(norm(u, block(exponent(p["p"])))),
        lambda p, v: half_square(norm(v, partner(block(exponent(p["p"]))))),
    ),
    "WeightedLpNorm": (_weighted, _weighted_conjugate),
    "BlockNorm": (
        lambda p, u: half_square(norm(u, exponent(p["q"]))),
        lambda p, v: half_square(norm(v, partner(exponent(p["q"])))),
    ),
    "BlockL1": (
        lambda p, u: half_square(norm(u, Fraction(1))),
        lambda p, v: half_square(norm(v, INF)),
    ),
    "BlockPower": (
        lambda p, u: _powers(exponent(p["q"]))[0](u),
        lambda p, v: _powers(exponent(p["q"]))[1](v),
    ),
    "ElasticNet": (_elastic, _elastic_conjugate),
    "FixedWeights": (
        _fixed,
        lambda p, v: same(
            mpmath.fsum(mpf(t) * a * a / 2 for t, a in zip(p["theta"], v))
        ),
    ),
    "GroupLasso": (
        lambda p, u: same(mpmath.fsum(u)),
        lambda p, v: indicator(max(v) <= 1),
    ),
    "Tikhonov": (_tikhonov, _tikhonov_conjugate),
    "VSKL": (
        lambda p, u: half_square(mixed(u, p["groups"], 1, 2 * exponent(p["q"]))),
        lambda p, v: half_square(
            mixed(v, p["groups"], INF, partner(2 * exponent(p["q"])))
        ),
    ),
    "Composite": (
        lambda p, u: half_square(
            mixed(u, p["groups"], exponent(p["r"]), exponent(p["s"]))
        ),
        lambda p, v: half_square(
            mixed(v, p["groups"], partner(exponent(p["r"])), partner(exponent(p["s"])))
        ),
    ),
    "NonIsotropic": (_ellipsoid, _ellipsoid_conjugate),
    "SparseBlockNorm": (_sparse_block, _sparse_block_conjugate),
    # from the gallery, and declared by a user
    "k_support": (
        _k_support,
        lambda p, v: same(
            mpmath.fsum(a * a for a in sorted(v, reverse=True)[: int(p["k"])]) / 2
        ),
    ),
    "owl": (
        lambda p, u: same(
            mpmath.fsum(mpf(c) * a for c, a in zip(p["lam"], sorted(u, reverse=True)))
        ),
        _owl_conjugate,
    ),
    "sparse_group": (_sparse_group, _sparse_group_conjugate),
    "latent_groups": (_latent, _latent_conjugate),
    "log_barrier": (_barrier, _barrier_conjugate),
    "prior_l1": (
        lambda p, u: same(mpmath.fsum(a / mpf(w) for a, w in zip(u, p["prior"]))),
        lambda p, v: indicator(all(a * mpf(w) <= 1 for a, w in zip(v, p["prior"]))),
    ),
    "tree": (_tree, lambda p, v: (mpf(0), mpmath.inf)),
    "smooth_elastic": (
        lambda p, u: same(mpmath.fsum(a + mpf(p["kappa"]) * a * a for a in u)),
        _smooth_elastic_conjugate,
    ),
    "twice": (
        lambda p, u: same(2 * mpmath.fsum(u)),
        lambda p, v: indicator(max(v) <= 2),
    ),
}
OMEGA["Ivanov"] = OMEGA["LpNorm"]
OMEGA["budget"] = OMEGA["BlockL1"]
OMEGA["plain_sum"] = OMEGA["GroupLasso"]
