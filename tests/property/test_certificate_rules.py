"""The rules of the checker: V, V*, Ω and Ω* from the safe side, and tight."""

from __future__ import annotations

import json
from decimal import localcontext
from fractions import Fraction
from math import inf

import mpmath
import numpy as np
import pytest

from mklopt import formulations as F
from mklopt.certificates import checker, portable
from mklopt.formulations import losses
from mklopt.problem import losses_by_name
from tests.unit.certificates import rationals
from tests.unit.certificates.samples import tiny

M = 4
TWO = ((0, 2), (1, 3))
FORMULATIONS = (
    F.GroupLasso(),
    F.BlockL1(),
    *map(F.BlockNorm, (1.0, 1.25, 2**0.5, 2.0, 3.0, 1e6, 1 + 2.0**-40, inf)),
    *map(F.LpNorm, (1.0, 3.0, 2**0.5, 1 + 2.0**-40, inf)),
    F.Ivanov(3.0),
    F.WeightedLpNorm(3.0, (0.5, 1.0, 3.0, 0.125)),
    F.Tikhonov(3.0, 0.7),
    F.Tikhonov(1.0, 2.0),
    F.Tikhonov(inf, 1e-3),
    *map(F.BlockPower, (1.0, 1.25, 2.0, 3.75)),
    *map(F.ElasticNet, (0.0, 0.3, 1.0)),
    F.SparseBlockNorm(1.5, 0.3),
    F.SparseBlockNorm(2**0.5, 2.0),
    F.FixedWeights((1.0, 0.0, 0.3, 7.0)),
    *(F.VSKL(TWO, q) for q in (1.0, 1.5, 2.0, inf)),
    *(F.Composite(TWO, *pair) for pair in ((1.0, 1.5), (1.25, 1.0), (2**0.5, 2.0))),
    F.NonIsotropic(0.5 ** np.abs(np.subtract.outer(range(M), range(M)))),
    F.NonIsotropic((-0.4) ** np.abs(np.subtract.outer(range(M), range(M)))),
)
LOSSES = (
    losses.Hinge(),
    losses.Logistic(),
    losses.OneClass(),
    losses.MulticlassHinge(),
    losses.Multinomial(),
    losses.Squared(),
    losses.EpsInsensitive(0.3),
    losses.Huber(0.8),
    losses.Quantile(0.25),
    losses.Quantile(1.0),
)
SOME = mpmath.mpf(10) ** -28  # how loose a rule may be
FEW, MANY = 8, pytest.param(400, marks=pytest.mark.full)


def claim_with(loss=None, formulation=None, k=1):
    """A claim of the checker for rules alone: four kernels, k classes."""
    said = tiny(shift=portable._text([0.0] * M), kernels=[tiny()["kernels"][0]] * M)
    for key, part in (("loss", loss), ("formulation", formulation)):
        if part is not None:
            said[key] = json.loads(json.dumps([part.name, vars(part)]))
    said["bias"] = False
    labels = loss.labels if loss else ""
    y = {"classes": (0.0, k - 1.0), "ones": (1.0, 1.0)}.get(labels, (1.0, -1.0))
    return checker.Claim({**said, "y": portable._text(y)})


def number(x):
    """A Decimal as a number of mpmath, with every digit."""
    n, d = x.as_integer_ratio()
    return mpmath.mpf(n) / d


def squared(x):
    return [Fraction(float(a)) ** 2 for a in x]


def witnessed(claim, form, u, v):
    if isinstance(form, F.NonIsotropic):
        claim.claim["primal"]["direction"] = portable._text(form.direction(u))
        claim.claim["dual"]["slack"] = portable._text(form.slack(v))
    return claim


def some_norms(rng, form, sparse):
    """Norms u ≥ 0 of any size; v inside the domain of Ω*."""
    u, v = np.exp(rng.normal(scale=2, size=(2, M)))
    if sparse:
        u[rng.integers(M)] = v[rng.integers(M)] = 0.0
    if isinstance(form, F.FixedWeights):
        u[np.array(form.theta) == 0] = 0.0
    return u, v * form.feasible_scale(v) * (1 - 1e-12)


@pytest.mark.parametrize("count", [FEW, MANY], ids=str)
@pytest.mark.parametrize("form", FORMULATIONS, ids=repr)
def test_formulations_from_the_safe_side(form, count):
    """Ω and Ω* are never below 60 digits of the truth, and above by 1e-28 at most."""
    claim, rng = claim_with(formulation=form), np.random.default_rng(count)
    for turn in range(count):
        u, v = some_norms(rng, form, turn % 2)
        witnessed(claim, form, u, v)
        with localcontext(checker.DIGITS), mpmath.workdps(80):
            up = number(claim._penalty(squared(u)) * (1 + checker.OUTWARD))
            star = number(claim._conjugate(squared(v)) * (1 + checker.OUTWARD))
            exact_u, exact_v = ([mpmath.mpf(float(x)) for x in a] for a in (u, v))
            value = rationals.omega(form, exact_u)
            conjugate = rationals.omega_conjugate(form, exact_v)
            loose = 1 + (1e-8 if isinstance(form, F.NonIsotropic) else SOME)
            assert value <= up <= value * loose, (u, form)
            assert conjugate <= star <= conjugate * loose, (v, form)
        assert float(up) == pytest.approx(form.value(u), rel=1e-9)
        assert float(star) == pytest.approx(form.conjugate(v), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("form", FORMULATIONS, ids=repr)
def test_fenchel_young_is_tight(form):
    """Ω(u) + Ω*(v) ≥ ⟨u, v⟩ in rationals, and equal at the slopes v = u/θ of Ω."""
    claim, rng = claim_with(formulation=form), np.random.default_rng(3)
    for _ in range(4):
        u, v = some_norms(rng, form, False)
        theta = form.weights(u)
        slope = np.divide(u, theta, out=np.zeros(M), where=theta > 0)
        for some, tight in ((v, False), (slope, True)):
            v = some * (1 - 1e-12)
            if not np.all(np.isfinite(v)) or form.feasible_scale(v) < 1:
                continue
            witnessed(claim, form, u, v)
            with localcontext(checker.DIGITS):
                total = claim._penalty(squared(u)) + claim._conjugate(squared(v))
            inner = sum(Fraction(float(a)) * Fraction(float(b)) for a, b in zip(u, v))
            total = Fraction(*(total * (1 + checker.OUTWARD)).as_integer_ratio())
            assert total >= inner
            assert not tight or total <= inner * (1 + Fraction(1, 10**8))


def test_outside_the_domain_of_the_conjugate_nothing_is_claimed():
    """v = 1 + 2^−50 for Σu, ½ + 2^−50 for ½Σu: refused, not rounded."""
    hair = Fraction(1, 1 << 50)
    cases = ((F.GroupLasso(), 1), (F.ElasticNet(1.0), 1), (F.BlockPower(1.0), 0.5))
    for form, end in cases:
        claim = claim_with(formulation=form)
        with localcontext(checker.DIGITS):
            inside = [Fraction(end) ** 2] * M
            assert claim._conjugate(inside) == 0
            with pytest.raises(checker.Refused, match="αᵀK_mα >"):
                claim._conjugate([*inside[1:], (Fraction(end) + hair) ** 2])


def test_a_kernel_without_weight_is_not_used():
    claim = claim_with(formulation=F.FixedWeights((1.0, 0.0, 0.3, 7.0)))
    with localcontext(checker.DIGITS), pytest.raises(checker.Refused, match="weight 0"):
        claim._penalty([Fraction(0), Fraction(1, 10**40), Fraction(0), Fraction(0)])


def test_witnesses_of_an_ellipsoid():
    """Any slack ≥ 0 and any direction with E z ≥ 0 are safe; all else is refused."""
    form = F.NonIsotropic((-0.4) ** np.abs(np.subtract.outer(range(M), range(M))))
    claim, rng = claim_with(formulation=form), np.random.default_rng(0)
    u, v = np.exp(rng.normal(size=(2, M)))
    point, dual = claim.claim["primal"], claim.claim["dual"]
    with localcontext(checker.DIGITS):
        for _ in range(20):
            theta = np.exp(rng.normal(size=M))
            z = np.linalg.solve(np.array(form.E), theta)
            point["direction"] = portable._text(z)
            dual["slack"] = portable._text(rng.exponential(size=M))
            assert float(claim._penalty(squared(u))) >= form.value(u)
            assert float(claim._conjugate(squared(v))) >= form.conjugate(v)
        unused = np.array(form.E)[:, 0] @ np.linalg.inv(form.E)
        cases = [(-z, "negative"), (0 * z, "is used"), (unused, "negative|is used")]
        for wrong, why in (*cases, (z[:2], "one number per kernel")):
            point["direction"] = portable._text(wrong)
            with pytest.raises(checker.Refused, match=why):
                claim._penalty(squared(u))
        for s, why in (([-1e-9, 1, 1, 1], "< 0"), ([1.0], "one number per kernel")):
            dual["slack"] = portable._text(s)
            with pytest.raises(checker.Refused, match=why):
                claim._conjugate(squared(v))
        dual["slack"] = portable._text([1.0] * M)
        for last in (-1.0, 0.0):
            claim.terms["E"] = np.diag([1.0, 1.0, 1.0, last]).tolist()
            claim.E = [[Fraction(x) for x in row] for row in claim.terms["E"]]
            with pytest.raises(checker.Refused, match="not proved positive definite"):
                claim._conjugate(squared(v))


def test_roots_are_moved_up_before_they_are_compared():
    """v − a = 1.7e-58 has no digits left: what is taken for it is larger."""
    a, least = Fraction(0.3), Fraction(1, 10**58)
    claim = claim_with(formulation=F.SparseBlockNorm(1.5, 0.3))
    with localcontext(checker.DIGITS), mpmath.workdps(200):
        found = number(claim._conjugate([a * a + least] * M))
        v = mpmath.sqrt(rationals.digits(a * a + least)) - rationals.digits(a)
        assert found >= rationals.norm([v] * M, mpmath.mpf(3)) ** 2 / 2 > 0


def test_a_tiny_power_does_not_vanish():
    """What underflows even in `decimal` is still above 0."""
    with localcontext(checker.DIGITS):
        found = checker.power(checker.Decimal("0.1"), Fraction(10**30))
        assert 0 < found < checker.Decimal("1e-99999999")
        assert checker.power(checker.ZERO, Fraction(3)) == 0


# ---- losses ----------------------------------------------------------------------


def predictions(rng, k):
    scale = 2.0 ** rng.integers(-30, 6)
    return [Fraction(float(x)) for x in scale * rng.normal(size=k)]


def dual_point(rng, loss, y, k):
    """Some −a with a in the domain of V*, often at an end of it."""
    if k > 1:
        mass = rng.integers(0, 4, size=k) * (1 << 40) + rng.integers(0, 2, size=k)
        total = max(1, int(sum(mass)))
        g = [Fraction(int(x), total) for x in mass] if sum(mass) else None
        g = g or [Fraction(int(j == y)) for j in range(k)]
        return [(j == y) - x for j, x in enumerate(g)]
    box = loss.domain(np.array([y]))
    low, high = max(-box.high[0], -3.0), min(-box.low[0], 3.0)
    t = rng.choice([0.0, 1.0, rng.random(), 2.0**-60])
    a = Fraction(float(low)) + Fraction(float(t)) * Fraction(float(high - low))
    return [min(max(a, Fraction(float(low))), Fraction(float(high)))]


@pytest.mark.parametrize("count", [40, pytest.param(4000, marks=pytest.mark.full)])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_losses_from_the_safe_side(loss, count):
    """V is never below the truth, −C V* never above it, and both by 1e-28 at most."""
    k = 4 if loss.labels == "classes" else 1
    claim, rng = claim_with(loss=loss, k=k), np.random.default_rng(1)
    for _ in range(count):
        y = float(rng.choice([-1.0, 1.0]))
        y = {"classes": float(rng.integers(k)), "ones": 1.0}.get(loss.labels, y)
        f, C = predictions(rng, k), Fraction(float(np.exp(rng.normal())))
        a = dual_point(rng, loss, y, k)
        with localcontext(checker.DIGITS), mpmath.workdps(150):
            value = number(claim._value(f, Fraction(y)) * (1 + checker.OUTWARD))
            gain = claim._gain(a, Fraction(y), C)
            gain = number(gain - abs(gain) * checker.OUTWARD)
            truth = rationals.value(loss, f, y)
            best = -rationals.digits(C) * rationals.conjugate(loss, [-x for x in a], y)
            assert truth <= value <= truth * (1 + SOME)
            assert best - SOME * (1 + rationals.digits(C)) <= gain <= best
            inner = rationals.digits(sum(x * z for x, z in zip(f, a)))
            assert value - gain / rationals.digits(C) >= -inner  # Fenchel and Young


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_losses_are_those_of_the_package(loss):
    """V and V*(V') against the closed forms in NumPy."""
    k = 4 if loss.labels == "classes" else 1
    claim, rng = claim_with(loss=loss, k=k), np.random.default_rng(2)
    for _ in range(40):
        y = float(rng.choice([-1.0, 1.0]))
        y = {"classes": float(rng.integers(k)), "ones": 1.0}.get(loss.labels, y)
        f = rng.normal(size=(1, k)) * 2 if k > 1 else rng.normal(size=1) * 2
        label = np.array([y], int if k > 1 else float)
        exact = [Fraction(float(x)) for x in np.ravel(f)]
        if k > 1:
            label = np.append(label, k - 1)
            f = np.vstack([f, f])
        slope = 0.5 * loss.gradient(f, label)[:1]  # inside the domain
        a = [-Fraction(float(x)) for x in np.ravel(slope)]
        if k > 1:
            a[0] -= sum(a)
        with localcontext(checker.DIGITS):
            found = float(claim._value(exact, Fraction(float(y))))
            gain = float(claim._gain(a, Fraction(float(y)), Fraction(2)))
        assert found == pytest.approx(loss.value(f, label)[0], abs=1e-12)
        slope = np.vstack([slope] * len(label)) if k > 1 else slope
        assert gain == pytest.approx(-2 * loss.conjugate(slope, label)[0], abs=1e-9)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_outside_the_domain_of_a_loss_there_is_no_gain(loss):
    """Past each end by 1e-40, and for classes also off Σa = 0."""
    hair, k = Fraction(1, 10**40), 4 if loss.labels == "classes" else 1
    claim, y = claim_with(loss=loss, k=k), 1.0
    if k > 1:
        past: list[list] = [[hair, -hair, 0, 0], [-1, 1 + hair, -hair, 0]]
        past += [[0, hair, 0, 0], [-hair, 0, 0, 0], [-1, 1 + hair, 0, 0]]
        inside = claim._gain([-hair, hair, *[hair * 0] * 2], Fraction(1), Fraction(1))
        assert inside is not None
    else:
        box = loss.domain(np.array([y]))
        ends = [Fraction(float(-x)) for x in (box.high[0], box.low[0]) if abs(x) < inf]
        tau = Fraction(getattr(loss, "tau", 0))
        ends = [tau - 1, tau] if loss.name == "quantile" else ends
        past = [[x + (hair if x == max(ends) else -hair)] for x in ends]
        with localcontext(checker.DIGITS):
            for x in ends:
                assert claim._gain([x], Fraction(1), Fraction(1)) is not None
    for a in past:
        with localcontext(checker.DIGITS):
            assert claim._gain([*map(Fraction, a)], Fraction(1), Fraction(1)) is None


def test_every_listed_loss_and_formulation_has_a_rule():
    listed = {kind.__name__ for kind in vars(F).values() if _is_listed(kind)}
    listed |= {type(form).__name__ for form in FORMULATIONS}
    known = {type(form).__name__ for form in FORMULATIONS}
    rules = set(checker.Statement.__init__.__globals__["FORMULATIONS"])
    assert listed == known == rules - {"Conic"}  # which is for declarations
    assert "Conic" in rules
    assert {loss.name for loss in LOSSES} == set(losses_by_name())


def _is_listed(kind):
    own = isinstance(kind, type) and issubclass(kind, F.Formulation)
    return own and kind.listed and kind is not F.Formulation
