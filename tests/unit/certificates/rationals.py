"""Primal and dual values in rationals and 60 digits, from textbook formulas alone."""

from __future__ import annotations

import base64
from fractions import Fraction
from itertools import combinations, product
from types import SimpleNamespace

import mpmath
import numpy as np
from mpmath import mpf

from mklopt import formulations as F
from mklopt.problem import losses_by_name

mpmath.mp.dps = 60
ZERO = Fraction(0)
LOSSES = {name: kind() for name, kind in losses_by_name().items()}


def digits(x: Fraction) -> mpf:
    return mpf(x.numerator) / x.denominator


def rational(array) -> list:
    return [Fraction(float(x)) for x in array]


def exact_kernel(grams, m):
    """Kernel m + δI: its entries, its rule, or the product of its factors."""
    if getattr(grams, "points", None):
        K = by_rule(grams, m)
    elif grams.factors is None:
        K = [rational(row) for row in grams.kernel(m)]
    else:
        L = [rational(row) for row in grams.factors[m]]
        K = [[sum((x * y for x, y in zip(a, b)), ZERO) for b in L] for a in L]
    for i, row in enumerate(K):
        row[i] += Fraction(float(grams.shift[m]))
    return K


def by_rule(grams, m):
    """Kernel m of points with 60 digits, as rationals."""
    name, terms = grams.rules[m]
    columns = [[mpf(float(x)) for x in grams.points[c]] for c in terms["columns"]]
    points = [[column[i] for column in columns] for i in range(grams.n)]
    K = [[rule(name, terms, x, z) for z in points] for x in points]
    for step in terms["divisors"]:
        row = type(step) is str
        r = array_of(step) if row else None
        for i, j in product(range(grams.n), repeat=2):
            K[i][j] /= mpf(float(r[i])) * mpf(float(r[j])) if row else mpf(step)
    unit = mpf(2) ** 200
    return [[Fraction(int(mpmath.nint(x * unit)), 1 << 200) for x in row] for row in K]


def rule(name, terms, x, z):
    if name == "gaussian":
        square = mpmath.fsum((a - b) ** 2 for a, b in zip(x, z))
        return mpmath.exp(-mpf(terms["rate"]) * square)
    inner = mpmath.fsum(a * b for a, b in zip(x, z))
    return (inner + mpf(terms["offset"])) ** terms["degree"]


def images(grams, columns):
    """K_m A and tr AᵀK_mA for one list of columns per kernel."""
    for m in range(grams.M):
        K, A = exact_kernel(grams, m), columns[m]
        KA = [[sum((k * x for k, x in zip(r, a) if x), ZERO) for r in K] for a in A]
        yield KA, sum((x * z for a, b in zip(A, KA) for x, z in zip(a, b)), ZERO)


def columns_of(A):
    """The columns of an (n,) or (n, k) array, as rationals."""
    return [rational(column) for column in A.reshape(len(A), -1).T]


def exact_dual(problem, alpha, shrink):
    """The dual value at shrink·α; α must be feasible exactly."""
    s, A = Fraction(float(shrink)), columns_of(alpha)
    if problem.bias:
        assert all(sum(a, ZERO) == 0 for a in A)
    v = [mpmath.sqrt(digits(s * s * q)) for _, q in images(problem.grams, [A] * len(
        problem.grams))]  # fmt: skip
    total = mpf(0)
    for i, (y, C) in enumerate(zip(problem.y, problem.costs)):
        a = [-s * column[i] / Fraction(float(C)) for column in A]
        total -= mpf(float(C)) * conjugate(problem.loss, a, y)
    return total - omega_conjugate(problem.formulation, v)


def exact_primal(problem, point, stretch, alpha):
    """The primal value at stretch·(w, b) of a certificate's point."""
    grams, t = problem.grams, Fraction(float(stretch))
    if point.coefficients is not None:
        theta, columns = [Fraction(1)] * grams.M, [*map(columns_of, point.coefficients)]
    else:
        theta, columns = rational(point.weights), [columns_of(alpha)] * grams.M
    k = len(columns[0])
    bias = [Fraction(float(b)) for b in [point.bias] * k] if k == 1 else None
    bias = bias or rational(point.bias if hasattr(point.bias, "__len__") else [0.0] * k)
    f, u = [[b] * grams.n for b in bias], []
    for w, (KA, quad) in zip(theta, images(grams, columns)):
        u.append(digits(w * t) * mpmath.sqrt(digits(quad)))
        for own, image in zip(f, KA):
            own[:] = [a + w * b for a, b in zip(own, image)]
    total = mpf(0)
    for i, (y, C) in enumerate(zip(problem.y, problem.costs)):
        total += mpf(float(C)) * value(problem.loss, [t * own[i] for own in f], y)
    return total + omega(problem.formulation, u)


def value(loss, f, y):
    """V(f, y) of every loss that declares closed forms."""
    name, y0 = loss.name, y
    if name in ("multiclass_hinge", "multinomial"):
        own = f[int(y)]
        if name == "multiclass_hinge":
            return digits(max(g + (j != y) for j, g in enumerate(f)) - own)
        return mpmath.log(mpmath.fsum(mpmath.exp(digits(g - own)) for g in f))
    f, y = f[0], Fraction(float(y0))
    if name in ("hinge", "one_class"):
        return digits(max(ZERO, 1 - y * f))
    if name == "logistic":
        return mpmath.log1p(mpmath.exp(digits(-y * f)))
    r = f - y
    if name == "squared":
        return digits(r * r / 2)
    if name == "eps_insensitive":
        return digits(max(ZERO, abs(r) - Fraction(loss.eps)))
    if name == "huber":
        d = Fraction(loss.delta)
        return digits(r * r / 2 if abs(r) <= d else d * abs(r) - d * d / 2)
    tau = Fraction(loss.tau)
    return digits(max(-tau * r, (1 - tau) * r))


def conjugate(loss, a, y):
    """V*(a, y); asserts that a lies in its domain."""
    name = loss.name
    if name in ("multiclass_hinge", "multinomial"):
        g = [x + (j == y) for j, x in enumerate(a)]
        assert min(g) >= 0 and sum(g) == 1
        if name == "multiclass_hinge":
            return digits(a[int(y)])
        return mpmath.fsum(digits(x) * mpmath.log(digits(x)) for x in g if x)
    a, y = a[0], Fraction(float(y))
    if name in ("hinge", "one_class", "logistic"):
        t = -a * y
        assert 0 <= t <= 1
        if name != "logistic":
            return digits(-t)
        return mpmath.fsum(digits(x) * mpmath.log(digits(x)) for x in (t, 1 - t) if x)
    if name == "squared":
        return digits(a * a / 2 + a * y)
    if name == "eps_insensitive":
        assert abs(a) <= 1
        return digits(a * y + Fraction(loss.eps) * abs(a))
    if name == "huber":
        assert abs(a) <= Fraction(loss.delta)
        return digits(a * y + a * a / 2)
    assert -Fraction(loss.tau) <= a <= 1 - Fraction(loss.tau)
    return digits(a * y)


def norm(x, q):
    if q == mpmath.inf:
        return max(x)
    return mpmath.fsum(a**q for a in x) ** (1 / q) if any(x) else mpf(0)


def dual_exponent(q):
    return mpmath.inf if q == 1 else mpf(1) if q == mpmath.inf else q / (q - 1)


def exponent(form):
    """q of ½‖u‖_q², from the parameter as a real number."""
    if hasattr(form, "p"):
        p = mpf(form.p)
        return mpf(2) if p == mpmath.inf else 2 * p / (p + 1)
    return mpf(form.q) if hasattr(form, "q") else mpf(1)


def mixed(form, x, r, s):
    return norm([norm([x[k] for k in group], r) for group in form.groups], s)


def omega(form, u):
    """Ω(u)."""
    if isinstance(form, F.GroupLasso):
        return mpmath.fsum(u)
    if isinstance(form, F.ElasticNet):
        rho = mpf(form.l1_ratio)
        return rho * mpmath.fsum(u) + (1 - rho) / 2 * mpmath.fsum(x * x for x in u)
    if isinstance(form, F.BlockPower):
        return mpmath.fsum(x ** mpf(form.q) for x in u if x) / 2
    if isinstance(form, F.FixedWeights):
        assert all(t or not x for x, t in zip(u, form.theta))
        return mpmath.fsum(x * x / mpf(t) for x, t in zip(u, form.theta) if t) / 2
    if isinstance(form, F.VSKL | F.Composite):
        return mixed(form, u, *map(mpf, form.exponents)) ** 2 / 2
    if isinstance(form, F.NonIsotropic):  # good to 1e-9 only
        return mpf(form.value(np.array(u, float))) * (1 - mpf(10) ** -9)
    if isinstance(form, F.WeightedLpNorm):
        u = [x / mpmath.sqrt(mpf(w)) for x, w in zip(u, form.prior)]
    N = norm(u, exponent(form))
    if isinstance(form, F.Tikhonov):
        third = mpf(1) / 3
        return 3 * mpf(2) ** (-4 * third) * mpf(form.mu) ** third * N ** (4 * third)
    if isinstance(form, F.SparseBlockNorm):
        return N**2 / 2 + mpf(form.a) * mpmath.fsum(u)
    return N**2 / 2


def omega_conjugate(form, v):
    """Ω*(v); asserts that it is finite."""
    if isinstance(form, F.GroupLasso):
        assert max(v) <= 1
        return mpf(0)
    if isinstance(form, F.ElasticNet):
        rho = mpf(form.l1_ratio)
        if rho == 1:
            assert max(v) <= 1
            return mpf(0)
        return mpmath.fsum(max(x - rho, 0) ** 2 for x in v) / (2 * (1 - rho))
    if isinstance(form, F.BlockPower):
        q = mpf(form.q)
        if q == 1:
            assert max(v) <= 0.5
            return mpf(0)
        return (q - 1) / 2 * mpmath.fsum((2 * x / q) ** (q / (q - 1)) for x in v if x)
    if isinstance(form, F.NonIsotropic):
        return ellipsoid(form, [x * x for x in v])
    if isinstance(form, F.FixedWeights):
        return mpmath.fsum(mpf(t) * x * x for x, t in zip(v, form.theta)) / 2
    if isinstance(form, F.VSKL | F.Composite):
        r, s = (dual_exponent(mpf(e)) for e in form.exponents)
        return mixed(form, v, r, s) ** 2 / 2
    if isinstance(form, F.WeightedLpNorm):
        v = [x * mpmath.sqrt(mpf(w)) for x, w in zip(v, form.prior)]
    if isinstance(form, F.SparseBlockNorm):
        v = [max(x - mpf(form.a), mpf(0)) for x in v]
    N = norm(v, dual_exponent(exponent(form)))
    if isinstance(form, F.Tikhonov):
        return N**4 / (16 * mpf(form.mu))
    return N**2 / 2


# ---- from the content of a certificate file alone --------------------------------


def array_of(text):
    return np.frombuffer(base64.b64decode(text), "<f8")


def part_of(stated):
    """The loss or formulation of this name and these parameters."""
    name = stated[0]
    kind = type(LOSSES[name]) if name in LOSSES else getattr(F, name)
    return kind(**stated[1])


def values_of(claim):
    """The dual and the primal value at a claim's points; no triangles of kernels."""
    y, C, shift = (array_of(claim[key]) for key in ("y", "C", "shift"))
    loss, form = part_of(claim["loss"]), part_of(claim["formulation"])
    n, several = len(y), loss.labels == "classes"
    k = int(max(y)) + 1 if several else 1
    stack = SimpleNamespace(n=n, M=len(shift), shift=shift)
    if "points" in claim:
        stack.rules = claim["kernels"]
        stack.points = [array_of(text) for text in claim["points"]]
    else:
        stack.factors = [array_of(a).reshape(n, -1) for a in claim["kernels"]]
    dual, primal = claim["dual"], claim["primal"]
    unit = Fraction(2) ** -dual["exponent"]
    A = [[unit * x for x in dual["integers"][j::k]] for j in range(k)]
    s, t = Fraction(dual["shrink"]), Fraction(primal["stretch"])
    assert 0 <= s <= 1 and len(dual["integers"]) == n * k
    assert not claim["bias"] or all(sum(a) == 0 for a in A)
    at_alpha = [*images(stack, [A] * stack.M)]
    low = -omega_conjugate(form, [mpmath.sqrt(digits(s * s * q)) for _, q in at_alpha])
    for i in range(n):
        a = [-s * column[i] / Fraction(float(C[i])) for column in A]
        low -= mpf(float(C[i])) * conjugate(loss, a, y[i])
    theta = rational(array_of(primal["weights"]))
    assert len(theta) == stack.M and min(theta) >= 0
    bias = rational(array_of(primal["bias"])) if several else [Fraction(primal["bias"])]
    assert len(bias) == k and (claim["bias"] or not any(bias))
    f = [[t * b] * n for b in bias]
    for w, (KA, _) in zip(theta, at_alpha):
        f = [[a + t * w * z for a, z in zip(b, c)] for b, c in zip(f, KA)]
    u = [
        digits(abs(w * t)) * mpmath.sqrt(digits(q))
        for w, (_, q) in zip(theta, at_alpha)
    ]
    up = omega(form, u)
    for i in range(n):
        up += mpf(float(C[i])) * value(loss, [b[i] for b in f], y[i])
    return low, up


def ellipsoid(form, x):
    """½ min over s ≥ 0 of ‖x + s‖_E, x ≥ 0: over all sets of s > 0."""
    E, M = mpmath.matrix([[mpf(e) for e in row] for row in form.E]), len(x)
    lengths = []
    for size in range(M):
        for S in map(list, combinations(range(M), size)):
            z = mpmath.matrix(x)
            if S:
                inner = mpmath.matrix([[E[i, j] for j in S] for i in S])
                right = mpmath.matrix(
                    [-sum(E[i, j] * x[j] for j in range(M)) for i in S]
                )
                s = mpmath.lu_solve(inner, right)
                if min(s) < 0:
                    continue
                for place, i in enumerate(S):
                    z[i] += s[place]
            lengths.append(mpmath.sqrt((z.T * E * z)[0]))
    return min(lengths) / 2
