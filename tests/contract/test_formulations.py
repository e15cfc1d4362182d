"""Every closed form equals what the declaration gives.

Values and conjugates are compared directly with the operators derived from `penalty`.
Arguments (weights, prox) come out of an interior-point method only to the square root
of its accuracy, so they are checked by what defines them: weights through the slopes of
the value, prox through its own objective and through stationarity.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mklopt.formulations import Formulation, formulations, stripped
from mklopt.formulations.declared import Declared
from mklopt.formulations.lp_norm import LpNorm
from mklopt.formulations.mixed_norm import VSKL, Composite, thirds

TOL = 1e-7
INF = math.inf
ROOT2 = math.sqrt(2)


def tricky(M: int) -> list[Formulation]:
    """Ends and irrational exponents that `examples` leaves out."""
    from mklopt import formulations as F

    exponents = (1.01, ROOT2, math.pi, 64.0)
    return [
        *(F.LpNorm(p) for p in exponents),
        *(F.BlockNorm(q) for q in (1.001, ROOT2, math.pi, 40.0)),
        *(F.BlockPower(q) for q in (1.05, ROOT2, math.pi)),
        *(F.Tikhonov(p, 0.7) for p in exponents),
        *(F.WeightedLpNorm(p, 1 + np.arange(M)) for p in (1.0, ROOT2, INF)),
        *(VSKL(thirds(M), q) for q in (ROOT2, 8.0)),
        *(Composite(thirds(M), r, s) for r, s in ((ROOT2, 1.9), (1, 1), (2, 2))),
        F.ElasticNet(0.99),
    ]  # fmt: skip


def every(M: int) -> list[Formulation]:
    found = [f for cls in formulations().values() for f in cls.examples(M)]
    return found + tricky(M)


SIZES = (6, 1)
CASES = [
    pytest.param(M, i, id=f"M{M}-{f!r}") for M in SIZES for i, f in enumerate(every(M))
]

POINTS = st.lists(
    st.one_of(
        st.sampled_from([0.0, 0.5, 1.0]),  # zeros and ties
        st.floats(1e-3, 3.0, allow_nan=False),
    ),
    min_size=6,
    max_size=6,
).map(np.array)


def close(a, b, tol: float = TOL) -> bool:
    return bool(np.all(np.abs(np.asarray(a) - b) <= tol * (1 + np.abs(b))))


@pytest.mark.parametrize("M, which", CASES)
@given(point=POINTS)
def test_value_is_the_declared_one(M, which, point):
    formulation, u = every(M)[which], point[:M]
    closed, declared = formulation.value(u), stripped(formulation).value(u)
    if math.isinf(closed) or math.isinf(declared):
        assert closed == declared
    else:
        assert close(closed, declared)


@pytest.mark.parametrize("M, which", CASES)
@given(point=POINTS)
def test_conjugate_is_the_declared_one(M, which, point):
    formulation, v = every(M)[which], point[:M]
    v = v * min(
        1.0, formulation.feasible_scale(v) * (1 - 1e-6)
    )  # stay off the very edge
    closed = formulation.conjugate(v)
    if closed > 1e4:  # p near 1: a wall, where 1e-7 of v is worth more than 1e-7
        return
    assert close(closed, stripped(formulation).conjugate(v))


@pytest.mark.parametrize("M, which", CASES)
@given(point=POINTS)
def test_outside_the_domain_the_conjugate_is_infinite(M, which, point):
    formulation, v = every(M)[which], 50 * point[:M]
    s = formulation.feasible_scale(v)
    assert 0 < s <= 1
    if s < 1:
        assert math.isinf(formulation.conjugate(1.001 * s * v))
        assert math.isfinite(formulation.conjugate(0.999 * s * v))
        assert close(stripped(formulation).feasible_scale(v), s)


@pytest.mark.parametrize("M, which", CASES)
@given(point=POINTS)
def test_weights_are_u_over_the_slope(M, which, point):
    """u_m/θ_m is the derivative of Ω, by differences of the value tested above."""
    formulation, u = every(M)[which], 0.1 + point[:M]
    if not math.isfinite(formulation.value(u)) or _has_kink(formulation, u):
        return
    slope = u / formulation.weights(u)
    for m in range(M):
        h = 1e-3 * u[m]
        coarse, fine = (
            (formulation.value(u + e) - formulation.value(u - e)) / (2 * e[m])
            for e in (np.eye(M)[m] * h, np.eye(M)[m] * h / 2)
        )
        assert abs(slope[m] - (4 * fine - coarse) / 3) <= TOL * (1 + slope[m])


def _has_kink(formulation: Formulation, u: np.ndarray) -> bool:
    """Where the largest of several is asked for, the derivative jumps at ties."""
    q = getattr(formulation, "q", 1.0)
    return q > 20


@pytest.mark.parametrize("M, which", CASES)
@given(point=POINTS)
def test_weights_majorize(M, which, point):
    """½Σz²/θ + const touches Ω at u and lies above it where Ω is concave in z²."""
    formulation, u = every(M)[which], point[:M]
    theta = formulation.weights(u)
    assert np.all(theta >= 0) and not np.any(np.isnan(theta))
    if not math.isfinite(formulation.value(u)):
        return
    used = (u > 0) & np.isfinite(theta)
    slope = np.zeros(M)
    slope[used] = u[used] / theta[used]
    rest = formulation.conjugate(slope * (1 - 1e-12)) if np.any(slope) else 0.0
    if math.isfinite(rest) and rest < 1e4:  # Fenchel–Young with equality at a slope
        assert close(formulation.value(u) + rest, slope @ u, 1e-6)


@pytest.mark.parametrize("M, which", CASES)
@given(point=POINTS, steps=st.lists(st.floats(0.05, 3.0), min_size=6, max_size=6))
def test_prox_minimizes_its_objective(M, which, point, steps):
    """No worse than the prox derived from the declaration, and no step improves it."""
    formulation, u, step = every(M)[which], point[:M], np.array(steps)[:M]

    def objective(z):
        return formulation.value(z) + float(np.sum((z - u) ** 2 / (2 * step)))

    z = formulation.prox(u, step)
    assert np.all(z >= 0) and np.all(z <= u + 1e-5)
    if not formulation.closed("prox"):
        slack = 1e-8  # derived, as good as the interior-point method
    else:
        slack = 1e-13
        derived = np.maximum(stripped(formulation).prox(u, step), 0.0)
        assert np.max(np.abs(z - derived)) <= 2e-4
        assert objective(z) <= objective(derived) + slack
        active = z > 1e-3  # stationarity: (u − z)/step is the slope z/θ(z)
        if np.any(active) and not _has_kink(formulation, z):
            slope = z[active] / formulation.weights(z)[active]
            assert close((u - z)[active] / step[active], slope)
    for m in range(M):
        for h in (1e-6, -1e-6, 1e-3, -1e-3):
            moved = z.copy()
            moved[m] = max(0.0, moved[m] + h)
            assert objective(moved) >= objective(z) - slack * (1 + objective(z))


@pytest.mark.parametrize("M, which", CASES)
def test_prox_slope_is_the_slope_of_prox(M, which):
    """Closed or derived, against differences over the kernels that stay in use."""
    formulation = every(M)[which]
    rng = np.random.default_rng(0)
    tried = 0
    for _ in range(6):
        u, step = rng.uniform(0.2, 3.0, M), rng.uniform(0.05, 1.0, M)
        z = formulation.prox(u, step)
        used, closed = np.flatnonzero(z > 0), formulation.closed("prox")
        h = 1e-7 if closed else 1e-3  # the argmin of a program is known to 1e-6
        near = [formulation.prox(u + s * h, step) > 0 for s in (1, -1)]
        if np.any(near[0] != (z > 0)) or np.any(near[1] != (z > 0)):
            continue  # next to a kink
        found = formulation.prox_slope(u, step)
        assert found.shape == (len(used), len(used))
        columns = [
            (formulation.prox(u + h * e, step) - formulation.prox(u - h * e, step))[
                used
            ]
            for e in np.eye(M)[used]
        ]
        expected = np.array(columns).T.reshape(found.shape) / (2 * h)
        np.testing.assert_allclose(found, expected, atol=1e-6 if closed else 1e-2)
        tried += 1
    assert tried >= 2


def test_registry_finds_every_formulation_of_the_issue():
    names = {
        "GroupLasso", "BlockL1", "BlockNorm", "LpNorm", "WeightedLpNorm", "BlockPower",
        "Ivanov", "Tikhonov", "VSKL", "Composite", "NonIsotropic", "ElasticNet",
    }  # fmt: skip
    assert names <= set(formulations())


def test_stripping_deletes_every_closed_form():
    bare = stripped(LpNorm(2.0))
    for method in ("value", "conjugate", "weights", "prox", "feasible_scale"):
        assert not bare.closed(method)
    assert isinstance(bare, Declared)


def test_large_exponents_do_not_overflow():
    from mklopt import formulations as F

    u = np.array([1e200, 1e-200, 3e100])
    assert math.isfinite(F.LpNorm(64.0).weights(u).max())
    v = np.array([1e-160, 1e-170])
    assert F.BlockNorm(1.001).conjugate(v) >= 0


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda F: F.LpNorm(0.5), "p = 0.5"),
        (lambda F: F.LpNorm(math.nan), "p = nan"),
        (lambda F: F.BlockNorm(0.9), "q = 0.9"),
        (lambda F: F.Tikhonov(2.0, -1.0), "mu = -1.0"),
        (lambda F: F.ElasticNet(1.5), "l1_ratio"),
        (lambda F: F.VSKL([[0, 1], [1]], 2.0), "share no kernel"),
        (lambda F: F.VSKL([[0], []], 2.0), "non-empty"),
        (lambda F: F.Composite([[0]], 1.0, 3.0), "s = 3.0"),
        (lambda F: F.WeightedLpNorm(2.0, [1.0, 0.0]), "positive number per kernel"),
        (lambda F: F.NonIsotropic([[1.0, 2.0], [2.0, 1.0]]), "positive definite"),
        (lambda F: F.FixedWeights([-1.0]), "non-negative"),
    ],
)
def test_bad_parameters_get_one_clear_sentence(make, words):
    from mklopt import formulations as F

    with pytest.raises(ValueError, match=words):
        make(F)


# ---- traits ------------------------------------------------------------------


@pytest.mark.parametrize("M, which", CASES)
@given(one=POINTS, two=POINTS, t=st.floats(0.0, 1.0))
def test_reweighted_means_concave_in_the_squares(M, which, one, two, t):
    """Ω∘√ is concave, or Ω*∘√ is: what a reweighted step rests on."""
    formulation = every(M)[which]
    if "reweighted" not in formulation.traits:
        return
    a, b = one[:M], two[:M]
    middle = np.sqrt(t * a**2 + (1 - t) * b**2)
    primal = getattr(formulation, "exponent", 1.0) <= 2
    f = formulation.value if primal else formulation.conjugate
    chord = t * f(a) + (1 - t) * f(b) if 0 < t < 1 else f(a if t else b)
    if math.isinf(chord):  # a kernel of weight 0 that is used
        return
    assert f(middle) >= chord - 1e-9 * (1 + abs(chord))


@pytest.mark.parametrize("M, which", CASES)
@given(point=POINTS)
def test_dual_weights_are_the_slope_of_the_conjugate(M, which, point):
    formulation, v = every(M)[which], 0.1 + point[:M]
    if "smooth_dual" not in formulation.traits or formulation.conjugate(v) > 1e4:
        return
    slope = formulation.dual_weights(v) * v
    value = formulation.conjugate(v)
    assert close(formulation.value(slope) + value, slope @ v, 1e-9)  # Fenchel–Young


@pytest.mark.parametrize("M, which", CASES)
@given(point=POINTS)
def test_a_ball_is_what_the_weights_live_in(M, which, point):
    """Ω(u) = min of ½Σu²/θ over the ball, attained at weights(u)."""
    formulation, u = every(M)[which], 0.01 + point[:M]
    if "ball" not in formulation.traits:
        return
    theta, p = formulation.weights(u), formulation.ball
    size = np.max(theta) if p == INF else np.sum(theta**p) ** (1 / p)
    assert close(size, 1.0, 1e-9)
    assert close(0.5 * np.sum(u**2 / theta), formulation.value(u), 1e-9)
    assert ("simplex" in formulation.traits) == (p == 1)


@pytest.mark.parametrize("M, which", CASES)
@given(point=POINTS, other=POINTS)
def test_elasticities_are_the_slopes_of_reweighting(M, which, point, other):
    formulation = every(M)[which]
    theta, v = 0.1 + point[:M], 0.1 + other[:M]
    if "reweighted" not in formulation.traits or _has_kink(formulation, v):
        return
    by_difference = Formulation.elasticities(formulation, theta, v)
    for closed, other in zip(formulation.elasticities(theta, v), by_difference):
        np.testing.assert_allclose(closed, other, rtol=1e-5, atol=1e-6)
