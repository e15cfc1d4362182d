"""The oracle of VSKL: its value, its error, its derivatives, silent groups."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mklopt import GramStack, Problem, reference
from mklopt.formulations import BlockNorm, Composite
from mklopt.formulations.fixed_weights import FixedInside
from mklopt.formulations.norms import dual_exponent
from mklopt.reference.contract_problems import GROUPINGS
from mklopt.reference.oracle_program import conic_oracle
from mklopt.reference.programs import factors
from mklopt.solvers.steps.simplex_oracle import Oracle
from tests.problems import silent_groups
from tests.unit.solvers.vskl import GRAMS, INF, QS, THREE, Y, oracle, problem, settle


def somewhere(o: Oracle, seed=0):
    lam = np.random.default_rng(seed).dirichlet(np.ones(len(o.owner)))
    return lam / o.sums(lam)[o.owner]


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("groups", GROUPINGS)
def test_bca_is_within_1e_8_of_the_conic_program(groups, C):
    p = problem(INF, C, GROUPINGS[groups])
    o = oracle(p, 1e-10)
    lam = somewhere(o)
    settle(o, lam)
    found = conic_oracle(p, lam)
    assert abs(o.value - found.value) <= 1e-8 * found.value
    np.testing.assert_allclose(1 / o.theta, found.gamma, atol=1e-3)


@pytest.mark.parametrize("q", QS)
def test_the_oracle_never_errs_by_more_than_it_says(q):
    p = problem(q, 10.0)
    sharp, loose = oracle(p), oracle(p, 1e-2)
    for seed in range(3):
        lam = somewhere(sharp, seed)
        settle(sharp, lam)
        settle(loose, lam)
        assert loose.value <= sharp.value + sharp.error
        assert sharp.value <= loose.value + loose.error
        assert loose.error <= 0.1


def certified(p: Problem, lam) -> reference.Reference:
    """An interval that contains G(λ): MKL with one kernel per group."""
    L = [np.sqrt(t) * F for t, F in zip(lam, factors(p.grams))]
    merged = [np.hstack([L[k] for k in group]) for group in p.formulation.groups]
    across = BlockNorm(2 * p.formulation.q)
    single = p.with_(grams=GramStack.from_factors(merged), formulation=across)
    return reference.solve(single, tol=1e-9)


SILENT = list(itertools.product((0, 1, 2), (0.1, 1.0, 10.0), (False, True)))


@pytest.mark.parametrize("seed, C, bias", [*SILENT, (2, 100.0, False)])
def test_silent_groups_cost_the_oracle_nothing(seed, C, bias):
    """|value − G| ≤ error in every round, and 1e-8 in the end: K_jα = 0, w_j ≠ 0."""
    p = silent_groups(bias, C, seed)
    o = oracle(p, 1e-10)
    o.lam = lam = somewhere(o, seed)
    exact = certified(p, lam)
    assert exact.relative_gap <= 1e-9
    size = max(1.0, exact.upper)

    def holds() -> bool:
        room = 1e-13 * size
        return o.value <= exact.upper + room and exact.lower <= o.value + o.error + room

    for _ in range(5):
        o.round()
        assert holds()
    before = o.rounds
    for _ in o.solve(lam):
        assert holds()
    assert holds() and o.error <= 1e-8 * size
    assert abs(o.value - conic_oracle(p, lam).value) <= 1e-8 * size
    assert np.any(o.held) and o.rounds - before <= 210
    assert np.max(np.sqrt(o.D[o.held])) <= 1e-8 * np.sum(np.sqrt(o.D))


@pytest.mark.parametrize("seed, C, bias", SILENT[::3])
def test_silent_groups_of_stored_matrices(seed, C, bias):
    """The value is as good; what can be proved is √u of the numbers it is made of."""
    p = silent_groups(bias, C, seed, stored=True)
    o = oracle(p, 1e-10)
    lam = somewhere(o, seed)
    settle(o, lam)
    found = conic_oracle(p, lam).value
    size = max(1.0, found)
    assert abs(o.value - found) <= 1e-8 * size
    assert abs(o.value - found) <= o.error <= 1e-4 * size
    assert o.bounds.lower <= found * (1 + 1e-9) and found * (1 - 1e-9) <= o.bounds.upper


def test_coefficients_of_silent_groups_do_not_drift():
    """β has no part in the kernel of K_j, however many steps were made."""
    p = silent_groups()
    o = oracle(p, 1e-10)
    lam = somewhere(o)
    for _ in range(5):
        settle(o, lam)
        assert o.beta is not None
        assert np.max(np.abs(o.beta)) <= 10 * np.max(np.abs(o.alpha))


def test_the_error_is_that_of_the_primal_point_with_any_coefficients():
    """With β of one's own the bound is the objective at w, no less."""
    p = silent_groups()
    o = oracle(p, 1e-10)
    lam = somewhere(o)
    settle(o, lam)
    o.beta = np.random.default_rng(0).normal(size=(3, 40))
    KB = p.grams.apply(o.coefficients())
    u = np.sqrt(o.sums(np.sum(o.coefficients() * KB, axis=1) / lam))
    losses = p.loss.value(np.sum(KB, axis=0) + o.bounds.bias, p.y)
    primal = float(p.costs @ losses) + o.outer.value(u)
    assert o.value + o.error == pytest.approx(primal, rel=1e-9)


@pytest.mark.parametrize("q", QS)
def test_fixed_inside_is_the_penalty_of_the_oracle(q):
    """Ω(u) = sup ⟨u, v⟩ − Ω*(v), and λ_k = 0 forbids kernel k."""
    lam = np.array([0.3, 0.7, 1.0, 0.0])
    held = FixedInside(((0, 1), (2, 3)), q, tuple(lam))
    rng = np.random.default_rng(0)
    for _ in range(50):
        u, v = rng.uniform(size=(2, 4)) * [1, 1, 1, 0]
        assert held.value(u) + held.conjugate(v) >= u @ v - 1e-12
        a = held.outer.dual_weights(np.sqrt([lam[:2] @ v[:2] ** 2, v[2] ** 2]))
        best = lam * a[[0, 0, 1, 1]] * v  # u = θv
        both = held.value(best) + held.conjugate(v)
        assert both == pytest.approx(best @ v, abs=1e-12)
    assert held.value(np.ones(4)) == INF


def test_the_conic_program_is_for_q_infinite_only():
    with pytest.raises(ValueError, match=r"q = 2.0: .* for q = ∞ only"):
        conic_oracle(problem(2.0), np.ones(20))


def printed_slope(o: Oracle, q: float) -> np.ndarray:
    """Appendix A as printed: the whole quotient to the power 1/q*."""
    star = dual_exponent(q)
    total = np.sum(o.D ** (star / (star + 1)))
    return -0.5 * o.machine.v**2 * ((total / o.D) ** (1 / star))[o.owner]


@pytest.mark.parametrize("q", QS)
def test_the_gradient_is_that_of_finite_differences(q):
    p = problem(q)
    o = oracle(p, 1e-12)
    lam, h = somewhere(o), 1e-4
    settle(o, lam)
    slope, printed = o.slope, printed_slope(o, q) if q > 1 else None
    measured = np.empty(20)
    for k in range(20):
        up, down = (lam + s * h * (np.arange(20) == k) for s in (1, -1))
        settle(o, up)
        above = o.value
        settle(o, down)
        measured[k] = (above - o.value) / (2 * h)
    assert np.max(np.abs(slope - measured)) <= 2e-6 * np.max(np.abs(slope))
    if printed is not None:  # the slip is not a matter of rounding
        assert np.max(np.abs(printed - measured)) > 0.05 * np.max(np.abs(measured))


@pytest.mark.parametrize("q", QS)
def test_the_second_derivatives_are_those_of_finite_differences(q):
    p = problem(q)
    o = oracle(p, 1e-12)
    lam, h, which = somewhere(o), 1e-3, np.array([0, 3, 5, 11, 17])
    settle(o, lam)
    H = o.hessian(which)
    for place, k in enumerate(which):
        up, down = (lam + s * h * (np.arange(20) == k) for s in (1, -1))
        settle(o, up)
        above = o.slope[which]
        settle(o, down)
        measured = (above - o.slope[which]) / (2 * h)
        assert np.max(np.abs(H[place] - measured)) <= 1e-3 * np.max(np.abs(H))


@pytest.mark.parametrize("s", [1.1, 1.5, 2.0])
def test_the_oracle_of_composite_sums_has_the_slope_and_keeps_what_is_convex(s):
    """1 < s < 2 across groups: ∂G by differences, and a model no less than ∂²G."""
    p = Problem(GRAMS, Y, "squared", Composite(THREE, 1.0, s), 1.0)
    lam = somewhere(oracle(p))

    def at(lam):
        found = oracle(p, 1e-13)
        settle(found, lam)
        return found

    here, h = at(lam), 1e-4
    steps = h * np.eye(len(lam))
    slope = [(at(lam + d).value - at(lam - d).value) / (2 * h) for d in steps]
    assert here.slope == pytest.approx(np.array(slope), rel=1e-4)
    bent = np.array([(at(lam + d).slope - at(lam - d).slope) / (2 * h) for d in steps])
    model = here.hessian(np.arange(len(lam)))
    size = np.max(np.abs(model))
    left = np.linalg.eigvalsh(model - 0.5 * (bent + bent.T))
    assert left[0] >= -1e-4 * size  # what is left out is never positive …
    assert np.linalg.eigvalsh(model)[0] >= -1e-9 * size
    assert (left[-1] <= 1e-4 * size) == (s == 2.0)  # … and nothing where G is convex
