"""Problems are validated, immutable, and known by their content."""

from __future__ import annotations

import dataclasses

import cvxpy as cp
import numpy as np
import pytest

from mklopt import GramStack, Problem, formulation
from mklopt.formulations import VSKL, GroupLasso, LpNorm, WeightedLpNorm
from mklopt.problem import describe, loss_from, quadratic_dual

rng = np.random.default_rng(3)
L = rng.normal(size=(2, 6, 3))
GRAMS = GramStack(L @ L.transpose(0, 2, 1))
Y = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])


def test_everything_can_be_read_back_and_nothing_written():
    problem = Problem(GRAMS, Y, formulation=LpNorm(p=2), C=2.0)
    assert problem.loss.name == "hinge" and problem.C == 2.0 and problem.bias
    with pytest.raises(dataclasses.FrozenInstanceError):
        problem.C = 3.0  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        problem.y[0] = 5.0
    assert problem.with_(C=10.0).C == 10.0 and problem.C == 2.0


def test_c_per_sample():
    problem = Problem(GRAMS, Y, formulation=GroupLasso(), C=np.arange(1.0, 7.0))
    np.testing.assert_array_equal(problem.costs, np.arange(1.0, 7.0))


def test_a_plain_array_of_kernels_is_wrapped():
    assert isinstance(
        Problem(GRAMS.dense(), Y, formulation=GroupLasso()).grams, GramStack
    )


@pytest.mark.parametrize(
    "change, words",
    [
        (dict(y=(Y + 1) / 2), r"labels \{0, 1\}; hinge needs −1/\+1: pass 2\*y − 1"),
        (dict(y=np.ones(6)), "only the label"),
        (dict(y=Y[:4]), "one label per sample"),
        (dict(y=np.array(list("abcdef"))), "map labels to numbers"),
        (dict(C=0.0), "C must be positive"),
        (dict(C=-1.0), "C must be positive"),
        (dict(C=np.nan), "give a real number"),
        (dict(C=np.ones(4)), "one per sample"),
        (dict(loss="hing"), "loss = 'hing' is not known; did you mean 'hinge'"),
        (dict(formulation="lp"), "is not a formulation"),
        (dict(formulation=None), "is not a formulation"),
        (dict(formulation=VSKL([[0], [1, 2]], 2.0)), "every kernel 0 to 1"),
        (dict(formulation=VSKL([[0]], 2.0)), "every kernel 0 to 1"),
        (dict(formulation=WeightedLpNorm(2.0, [1.0])), "give one for each kernel"),
        (dict(loss="one_class", y=np.ones(6)), "pass bias=False"),
        (dict(loss="one_class", bias=False), "pass y = numpy.ones"),
        (dict(loss="squared", y=Y * np.inf), "finite targets"),
        (dict(loss="multinomial", y=Y), "map labels with"),
        (dict(loss="multinomial", y=np.array([0, 2, 0, 2, 0, 2])), "without holes"),
        (dict(loss="multinomial", y=np.zeros(6)), "at least two classes"),
    ],
)
def test_bad_input_gets_one_clear_sentence(change, words):
    good = dict(grams=GRAMS, y=Y, formulation=GroupLasso())
    with pytest.raises(ValueError, match=words) as caught:
        Problem(**(good | change))
    assert "\n" not in str(caught.value)


def test_the_digest_sees_every_change():
    base = Problem(GRAMS, Y, formulation=LpNorm(p=2.0))
    moved = GRAMS.dense().copy()
    moved[1, 0, 0] = np.nextafter(moved[1, 0, 0], 9)
    others = [
        base.with_(C=1.0000001),
        base.with_(bias=False),
        base.with_(loss="logistic"),
        base.with_(formulation=LpNorm(p=2.5)),
        base.with_(y=-Y),
        base.with_(grams=GramStack(moved)),
        base.with_(C=np.r_[2.0, np.ones(5)]),
    ]
    assert len({p.digest() for p in [base, *others]}) == len(others) + 1
    assert (
        base.digest() == Problem(GRAMS.dense(), Y, formulation=LpNorm(p=2.0)).digest()
    )


def test_a_users_formulation_is_known_by_what_it_declares():
    def make(weight):
        @formulation
        def mine(u):
            return weight * cp.sum(u)

        return Problem(GRAMS, Y, formulation=mine)

    assert make(1.0).digest() == make(1.0).digest() != make(2.0).digest()


def test_the_shape_of_predictions_and_the_costs_that_multiply_them():
    C = np.arange(1.0, 7.0)
    problem = Problem(GRAMS, Y, formulation=GroupLasso(), C=C)
    assert problem.shape == (6,) and problem.spread_costs is problem.costs
    several = problem.with_(y=np.arange(6) % 3, loss="multinomial")
    assert several.shape == (6, 3) and several.spread_costs.shape == (6, 1)
    np.testing.assert_array_equal(several.spread_costs[:, 0], C)
    np.testing.assert_array_equal(problem.with_(C=2.0).costs, np.full(6, 2.0))


@pytest.mark.parametrize("bias", [True, False])
def test_points_are_made_feasible(bias):
    problem = Problem(GRAMS, Y, formulation=GroupLasso(), C=2.0, bias=bias)
    alpha = problem.feasible(np.array([5.0, 1.0, 0.5, -0.5, 1.0, -0.25]))
    assert np.all(alpha * Y >= 0) and np.all(alpha * Y <= 2.0)
    if bias:
        assert abs(np.sum(alpha)) < 1e-12
    else:  # clipped, and nothing else
        np.testing.assert_array_equal(alpha, [2.0, 0.0, 0.5, -0.5, 1.0, -0.25])


def test_the_loss_part_of_the_dual_value():
    """Squared loss: −C V*(−α/C) = αy − α²/2C."""
    C = np.arange(1.0, 7.0)
    problem = Problem(GRAMS, Y, "squared", GroupLasso(), C)
    alpha = rng.normal(size=6)
    expected = np.sum(alpha * Y - alpha**2 / (2 * C))
    assert problem.dual_loss(alpha) == pytest.approx(expected)


def test_parts_are_described_by_name_and_parameters():
    problem = Problem(GRAMS, Y, formulation=LpNorm(p=2.5))
    assert describe(problem.formulation, problem) == ["LpNorm", {"p": 2.5}]
    assert describe(problem.loss, problem) == ["hinge", {}]
    assert loss_from("hinge") == problem.loss == loss_from(problem.loss)


def test_a_problem_is_shown_in_one_line():
    problem = Problem(GRAMS, Y, formulation=LpNorm(p=2.5), bias=False)
    assert repr(problem) == "Problem(hinge, LpNorm(p=2.5), C=1.0, n=6, M=2, no bias)"
    assert "C=per sample" in repr(problem.with_(C=np.ones(6)))


def test_a_formulation_with_parameters_is_a_dataclass_that_can_be_hashed():
    class Mine(GroupLasso):
        def __init__(self, weight):
            self.weight = weight

    @dataclasses.dataclass(frozen=True)
    class Listed(GroupLasso):
        weights: list

    for wrong, words in (
        (Mine(2.0), "Mine has parameters but is no dataclass"),
        (Listed([1.0]), "Listed has a parameter that cannot be hashed"),
        (GroupLasso, "formulation = GroupLasso is a class; call it"),
    ):
        with pytest.raises(ValueError, match=words):
            Problem(GRAMS, Y, formulation=wrong)


def test_the_quadratic_dual_is_that_of_the_loss():
    hinge = Problem(GRAMS, Y, "hinge", GroupLasso(), C=2.0)
    dual = quadratic_dual(hinge)
    np.testing.assert_array_equal(dual.high - dual.low, np.full(6, 2.0))
    with pytest.raises(ValueError, match="logistic is not quadratic"):
        quadratic_dual(hinge.with_(loss="logistic"))
