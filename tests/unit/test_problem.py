"""Problems are validated, immutable, and known by their content."""

from __future__ import annotations

import dataclasses

import cvxpy as cp
import numpy as np
import pytest

from mklopt import GramStack, Problem, formulation
from mklopt.formulations import VSKL, GroupLasso, LpNorm, WeightedLpNorm

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
        (dict(C=np.nan), "C must be positive"),
        (dict(C=np.ones(4)), "one per sample"),
        (dict(loss="hing"), "loss = 'hing' is not known; choose one of"),
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
