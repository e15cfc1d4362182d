"""Both sides of every equivalence share decision functions and weights.

Where a solution is not unique the map still leads to an optimal point: the mapped
certificate says so. The hinge with GroupLasso at small C is such a case: every point
violates its margin, the loss is linear in w, and a whole ray of multiples is optimal.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from sklearn.svm import SVC

from mklopt import GramStack, Problem, certify, reference
from mklopt.formulations import (
    VSKL,
    BlockL1,
    BlockNorm,
    BlockPower,
    FixedWeights,
    Formulation,
    GroupLasso,
    Ivanov,
    LpNorm,
    Tikhonov,
    stripped,
)
from mklopt.formulations.losses.residual import Squared
from mklopt.formulations.norms import declared_norm, declared_quadratic, norm
from mklopt.reference import equivalences as maps
from mklopt.reference.contract_problems import load

AGREE = 1e-6
M = 8
INF = float("inf")
WDBC, TARGETS = load("wdbc")
assert WDBC.factors is not None
GRAMS = GramStack.from_factors(
    [WDBC.factors[m][:60] for m in (0, 1, 2, 4, 6, 9, 12, 17)]
)
Y = TARGETS["binary"][:60]
LOSSES, COSTS = ("hinge", "logistic", "squared"), (0.1, 1.0, 10.0)

# One cell in three always, all of them in `make test-all`.
CELLS = [
    pytest.param(loss, C, marks=[] if (i + j) % 3 == 2 else [pytest.mark.full])
    for i, loss in enumerate(LOSSES)
    for j, C in enumerate(COSTS)
]
CASES = []
for number, entry in enumerate(maps.ledger(M)):
    for i, name in enumerate(LOSSES):
        for j, cost in enumerate(COSTS):
            for side in ("left", "right"):
                chosen = (number + i + 2 * j + (side == "left")) % 9 == 0
                marks = [] if chosen else [pytest.mark.full]
                label = f"{entry.name}-{name}-C{cost:g}-from {side}"
                CASES.append(
                    pytest.param(entry, name, cost, side, id=label, marks=marks)
                )


@pytest.mark.parametrize("entry, loss, C, side", CASES)
def test_both_sides_agree(entry, loss, C, side, cell_counter):
    start, move = (
        (entry.left, entry.to_right) if side == "left" else (entry.right, entry.to_left)
    )
    problem = Problem(GRAMS, Y, loss, start, C)
    here = reference.solve_sharply(problem)
    try:
        mapped = move(problem, here)
    except ValueError as refusal:
        assert "w* = 0" in str(refusal)
        assert problem.formulation.value(here.norms) <= 1e-6 * here.upper
        cell_counter("run")
        return
    s = mapped.C / problem.C
    moved = certify(mapped, dual=s * here.dual, coefficients=here.coefficients)
    assert moved.relative_gap <= 1e-8  # the mapped point is optimal on the other side
    there = reference.solve_sharply(mapped)
    if _is_a_ray(mapped, moved, here):
        cell_counter("run")
        return
    assert np.max(np.abs(here.predictions - there.predictions)) <= AGREE
    np.testing.assert_allclose(
        there.weights * s, here.weights, atol=AGREE * np.max(here.weights)
    )
    cell_counter("run")


def _is_a_ray(problem: Problem, moved, here) -> bool:
    """Multiples of w* cost the same: the solution is not unique."""
    values = [
        certify(problem, dual=moved.alpha, coefficients=t * here.coefficients).primal
        for t in (0.999, 1.001)
    ]
    return max(values) - moved.primal <= 1e-9 * moved.primal


# ---- single statements -------------------------------------------------------


@pytest.mark.parametrize("C", COSTS)
def test_lanckriets_qcqp_is_p_equal_1(C):
    problem = Problem(GRAMS, Y, "hinge", BlockL1(), C)
    ours, theirs = reference.solve_sharply(problem), maps.lanckriet(problem)
    assert theirs.value == pytest.approx(ours.upper, rel=1e-8)
    assert np.sum(theirs.weights) == pytest.approx(1, abs=1e-7)
    found = certify(problem, dual=theirs.alpha, weights=theirs.weights)
    assert found.relative_gap <= 1e-5
    np.testing.assert_allclose(theirs.weights, ours.weights, atol=1e-4)
    sharp = reference.polish(
        problem, reference.Reference(found, theirs.weights, theirs.alpha)
    )
    assert np.max(np.abs(ours.predictions - sharp.predictions)) <= AGREE


@pytest.mark.parametrize("loss, C", CELLS)
def test_p_equal_infinity_is_the_svm_on_the_sum(loss, C):
    problem = Problem(GRAMS, Y, loss, LpNorm(INF), C)
    ours = reference.solve_sharply(problem)
    solver = "OSQP" if loss == "hinge" else "CLARABEL"  # OSQP: 10 s for squared
    plain = reference.at_weights(problem, np.ones(M), solver=solver)
    assert plain.lower <= ours.upper and ours.lower <= plain.upper
    fixed = problem.with_(formulation=FixedWeights(np.ones(M)))
    sharp = reference.polish(fixed, plain)
    assert np.max(np.abs(ours.predictions - sharp.predictions)) <= AGREE


@pytest.mark.parametrize("C", COSTS)
def test_p_equal_infinity_is_what_libsvm_computes(C):
    ours = reference.solve_sharply(Problem(GRAMS, Y, "hinge", LpNorm(INF), C))
    K = GRAMS.combine(np.ones(M))
    libsvm = SVC(C=C, kernel="precomputed", tol=1e-10).fit(K, Y).decision_function(K)
    assert np.max(np.abs(ours.predictions - libsvm)) <= 1e-4  # its cache is float32


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("q, C", [(2.0, 1.0), (3.0, 0.1), (3.0, 10.0), (5.0, 1.0)])
def test_block_norms_above_two_are_a_supremum(loss, q, C):
    problem = Problem(GRAMS, Y, loss, BlockNorm(q), C)
    ours = reference.solve_sharply(problem)
    theta = maps.sup_form(problem, ours)
    inner = reference.solve_sharply(problem.with_(formulation=FixedWeights(1 / theta)))
    assert np.max(np.abs(ours.predictions - inner.predictions)) <= AGREE
    assert inner.upper == pytest.approx(ours.upper, rel=1e-9)
    if q > 2:  # a supremum: any other θ of the ball gives less
        assert norm(theta, q / (q - 2)) == pytest.approx(1)
        other = np.random.default_rng(0).uniform(0.2, 1, size=M)
        other /= norm(other, q / (q - 2))
        lower = reference.solve(problem.with_(formulation=FixedWeights(1 / other)))
        assert lower.upper < ours.lower


def test_orabonas_parameters():
    problem = maps.from_orabona(GRAMS, Y, lam=0.01, p=1.5, loss="hinge")
    assert maps.to_orabona(problem) == pytest.approx((0.01, 1.5))
    found = reference.solve_sharply(problem)
    losses = np.maximum(0, 1 - Y * found.predictions)
    theirs = 0.01 / 2 * norm(found.norms, 1.5) ** 2 + np.mean(losses)
    assert theirs == pytest.approx(0.01 * found.upper, rel=1e-10)
    with pytest.raises(ValueError, match="no bias"):
        maps.to_orabona(problem.with_(bias=True))


def test_suzukis_parameter():
    assert maps.suzuki_C(0.05) == 20 and maps.suzuki_C(20) == 0.05
    assert maps.suzuki_C(0.5, half_squared=False) == 4
    assert maps.suzuki_C(4, half_squared=False) == 0.5
    C_s = 0.4
    problem = Problem(
        GRAMS, Y, Squared(), GroupLasso(), maps.suzuki_C(C_s, half_squared=False)
    )
    found = reference.solve_sharply(problem)
    theirs = np.sum((Y - found.predictions) ** 2) + C_s * np.sum(found.norms)
    assert theirs == pytest.approx(C_s * found.upper, rel=1e-10)


@dataclass(frozen=True)
class JainSum(Formulation):
    """½Σu²/d + Σd, as Jain writes it, with the minimizing d as weights."""

    def penalty(self, u):
        import cvxpy as cp

        d = cp.Variable(u.shape, nonneg=True)
        half, cones = declared_quadratic(u, d)
        return half + cp.sum(d), cones

    def value(self, u):
        return 2**0.5 * np.sum(u)

    def conjugate(self, v):
        return 0.0 if np.max(v) <= 2**0.5 else INF

    def weights(self, u):
        return u / 2**0.5


def test_jains_sum_is_declared_as_it_is_solved():
    u = np.array([0.3, 0.0, 2.0])
    assert stripped(JainSum()).value(u) == pytest.approx(JainSum().value(u), rel=1e-8)
    for size, known in ((1.41, 0.0), (1.42, INF)):
        v = size * np.array([1.0, 0.2, 0.9])
        assert stripped(JainSum()).conjugate(v) == pytest.approx(known, abs=1e-8)


@dataclass(frozen=True)
class JainSquare(Formulation):
    """½Σu²/d + ½‖d‖_p², as Jain writes it: stationarity is u² = 2 d^(p+1) ‖d‖^(2−p)."""

    p: float = 1.5

    def penalty(self, u):
        import cvxpy as cp

        d = cp.Variable(u.shape, nonneg=True)
        half, cones = declared_quadratic(u, d)
        return half + 0.5 * cp.square(declared_norm(d, self.p)), cones

    def weights(self, u):
        shape = u ** (2 / (self.p + 1))
        size = norm(shape, self.p)
        # d = c·shape: u²/(2d²) = d^(p−1)‖d‖^(2−p) gives c³ = 1/(2 size^(2−p)).
        return shape * (1 / (2 * size ** (2 - self.p))) ** (1 / 3)


@pytest.mark.parametrize("loss, C", CELLS)
def test_jains_regularizers(loss, C):
    """Declared as Jain writes them; the mapped problems have the same solutions."""
    for theirs, ours in (
        (Problem(GRAMS, Y, loss, JainSum(), 2 * C), maps.jain_l1),
        (Problem(GRAMS, Y, loss, JainSquare(), C), partial(maps.jain_lp, p=1.5)),
    ):
        mapped = ours(theirs)
        here, there = reference.solve_sharply(mapped), reference.solve_sharply(theirs)
        assert np.max(np.abs(here.predictions - there.predictions)) <= AGREE
        s = mapped.C / theirs.C
        scale = np.max(there.weights)
        np.testing.assert_allclose(here.weights * s, there.weights, atol=AGREE * scale)
    assert maps.from_group_lasso_to_jain(2**0.5 * C) == pytest.approx(2 * C)


# ---- degenerate cases --------------------------------------------------------


def test_at_w_equal_zero_there_is_no_map():
    problem = Problem(GRAMS, Y, "logistic", GroupLasso(), 1e-4)
    with pytest.raises(ValueError, match="w\\* = 0"):
        maps.to_block_l1(problem, reference.solve(problem))


def test_identical_kernels_share_a_decision_function_but_not_their_weights():
    assert GRAMS.factors is not None
    twins = GramStack.from_factors(
        [GRAMS.factors[3], GRAMS.factors[3], GRAMS.factors[5]]
    )
    problem = Problem(twins, Y, "squared", BlockL1(), 1.0)
    here = reference.solve(problem, tol=1e-10)
    there = reference.solve(maps.to_group_lasso(problem, here), tol=1e-10)
    assert np.max(np.abs(here.predictions - there.predictions)) <= 1e-3
    moved = np.array([here.weights[0] + here.weights[1], 0.0, here.weights[2]])
    shuffled = certify(problem, dual=here.dual, weights=moved)
    assert shuffled.relative_gap <= 1e-6  # any split among twins is optimal


@pytest.mark.parametrize(
    "move, start",
    [
        (maps.to_ivanov, Ivanov(2.0)),
        (maps.to_tikhonov, Tikhonov(2.0)),
        (maps.to_block_power, BlockPower(1.5)),
        (maps.to_block_norm, BlockNorm(1.5)),
        (maps.to_block_l1, BlockL1()),
        (maps.to_group_lasso, GroupLasso()),
        (maps.block_norm_to_lp, BlockNorm(3.0)),
        (maps.from_one_group, VSKL(tuple((m,) for m in range(M)), 2.0)),
        (maps.from_singletons, VSKL((tuple(range(M)),), 2.0)),
        (maps.singletons, LpNorm(2.0)),
    ],
)
def test_a_map_refuses_what_it_does_not_start_from(move, start):
    problem = Problem(GRAMS, Y, "squared", start)
    with pytest.raises(ValueError):
        move(problem, reference.solve(problem, tol=1e-6))


def test_the_printed_non_isotropic_dual_is_too_large():
    """Where E has negative entries, θ ≥ 0 binds and ½‖v²‖_E is not the conjugate."""
    from mklopt.formulations import NonIsotropic

    E = np.array([[1.0, -0.8], [-0.8, 1.0]])
    v = np.array([1.0, 0.2])
    printed = 0.5 * np.sqrt(v**2 @ E @ v**2)
    theta = np.array([1.0, 0.0])  # E⁻¹-norm of e_1 exceeds 1: scale it to the boundary
    theta = theta / np.sqrt(theta @ np.linalg.inv(E) @ theta)
    right = NonIsotropic(E).conjugate(v)
    assert right < printed * (1 - 1e-3)
    assert right >= 0.5 * theta @ v**2 - 1e-12
