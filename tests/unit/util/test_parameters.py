"""Parameters of every type of number become the same Python numbers, or a sentence."""

# mypy: disable-error-code="arg-type,attr-defined,list-item,call-arg,misc,operator"

from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import mklopt
from mklopt import Problem
from mklopt.formulations import LpNorm, formulations, losses_by_name
from mklopt.formulations import gallery as G
from mklopt.gmkl import regularizers as R
from mklopt.kernels.functions import Gaussian, Power
from mklopt.util.checks import plain, real_number, short
from mklopt.util.parameters import Parameters, real_numbers

TYPES: tuple[Any, ...] = (
    np.float16, np.float32, np.float64, np.longdouble, np.int8, np.uint64, Fraction,
    Decimal, np.array, int, lambda x: np.array(Fraction(x)),
)  # fmt: skip
WRONG = {
    "too large": 10**400, "digits": 10**5000, "no number": Decimal("NaN"),
    "signaling": Decimal("sNaN"), "complex": 2j, "bool": True, "numpy bool": np.True_,
    "text": "2", "nothing": None, "array": np.array([2.0]), "list": [2.0],
    "fraction": Fraction(10**400), "decimal": Decimal("1e400"), "NaN": np.nan,
    "long": np.longdouble("1e4000"), "object": object(), "c8": np.complex64(2),
}  # fmt: skip
GRAMS, Y = np.array([np.eye(4), np.ones((4, 4))]), np.array([1.0, -1, 1, -1])


@dataclass(frozen=True)
class Every(Parameters):
    """One field of every kind, as annotations and as text."""

    one: float
    whole: int = 3
    maybe: float | None = None
    many: "tuple[float, ...]" = (1.0,)
    anything: Any = field(default=())


@pytest.mark.parametrize("kind", TYPES)
def test_every_type_of_number_is_kept_as_a_python_number(kind):
    two = kind(2)
    made = Every(two, two, two, [two, two], (two, "x"))
    assert made == Every(2.0, 2, 2.0, (2.0, 2.0), (2, "x"))
    assert [type(x) for x in (made.one, made.whole, made.maybe)] == [float, int, float]
    assert {type(x) for x in made.many} == {float}
    assert type(made.anything[0]) in (int, float)
    assert real_number(two, "x") == plain(two) == 2
    third = np.float32(1 / 3)  # not rounded to another number
    assert Every(third).one == float(third) and Every(Fraction(1, 3)).one == 1 / 3


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_what_is_no_number_is_refused_in_one_sentence(wrong):
    for make in (
        lambda: Every(wrong),
        lambda: Every(1.0, wrong),
        lambda: Every(1.0, many=(1.0, wrong)),
        lambda: LpNorm(wrong),
        lambda: mklopt.formulations.WeightedLpNorm(2.0, [1.0, wrong]),
        lambda: Problem(GRAMS, Y, "hinge", LpNorm(), C=wrong),
        lambda: Problem(GRAMS, Y, "hinge", LpNorm(), C=[1.0, 1.0, 1.0, wrong]),
        lambda: losses_by_name()["huber"](wrong),
        lambda: R.SquaredNorm(wrong),
        lambda: R.Total(weight=wrong),
        lambda: G.log_barrier(wrong),
        lambda: G.owl([2.0, wrong]),
        lambda: mklopt.kernels.gaussians([wrong]),
        lambda: mklopt.kernels.polynomials(2, offset=wrong),
    ):
        with pytest.raises(ValueError) as error:
            make()
        assert "\n" not in str(error.value) and len(str(error.value)) < 200


def test_whole_numbers_and_missing_ones():
    assert Every(1.0, 7.0, None).whole == 7 and Every(1.0).maybe is None
    assert Every(float("inf")).one == float("inf")
    for wrong in (2.5, float("inf")):
        with pytest.raises(ValueError, match=r"Every: whole = .* not a whole number"):
            Every(1.0, wrong)
    with pytest.raises(ValueError, match="Every: one = None"):
        Every(None)


def test_numbers_of_any_shape_are_read():
    given = [[1, Fraction(1, 2)], [np.float32(0.25), Decimal("0.125")]]
    found = real_numbers(given, "E", "numbers")
    assert found.dtype == float and found.tolist() == [[1.0, 0.5], [0.25, 0.125]]
    small = np.ones(3, np.float16)
    assert real_numbers(small, "E", "numbers").dtype == float
    with pytest.raises(ValueError, match="masked"):
        real_numbers(np.ma.array([1.0, 2.0], mask=[0, 1]), "E", "numbers")
    assert np.isinf(real_numbers(np.array([np.longdouble("1e4000")]), "E", "numbers"))
    assert short("x" * 100).endswith("…") and len(short("x" * 100)) <= 60


def test_a_check_of_the_class_finds_converted_numbers():
    @dataclass(frozen=True)
    class Checked(Every):
        def __post_init__(self):
            assert type(self.one) is float

    @dataclass(frozen=True)
    class Deeper(Checked):
        new: float = 1.0

    assert type(Deeper(np.float32(2), new=np.float16(3)).new) is float


def _twins(x, kind):
    """The same object made of floats, and of another type of number."""
    if isinstance(x, float):
        return kind(x) if np.isfinite(x) else x
    return tuple(_twins(one, kind) for one in x) if isinstance(x, tuple) else x


@pytest.mark.parametrize("kind", [np.float32, np.longdouble, Fraction, Decimal])
def test_every_formulation_and_loss_computes_in_double_precision(kind):
    made = [f for c in formulations().values() for f in c.examples(4)]
    made += [f for c in losses_by_name().values() for f in c.examples()]
    for one in made:
        given = {k: _twins(v, kind) for k, v in vars(one).items()}
        twin = type(one)(**given)
        same = type(one)(
            **{k: _twins(v, lambda x: float(kind(x))) for k, v in given.items()}
        )
        assert twin == same and twin.exact and repr(twin) == repr(same)


def test_digests_do_not_depend_on_the_type_of_a_parameter():
    def digest(p, C=1.0):
        return Problem(GRAMS, Y, "hinge", LpNorm(p), C).digest()

    known = digest(2.0)
    assert {digest(kind(2)) for kind in TYPES} == {known}
    per_sample = {digest(2.0, [kind(c) for c in (1, 2, 3, 4)]) for kind in TYPES} | {
        digest(2.0, np.arange(1, 5, dtype=t)) for t in ("f2", "f4", "f8", "i2", "g")
    }
    assert len(per_sample) == 1


def test_bounds_hold_for_parameters_of_low_precision():
    """In float32, Ω* of p = 1.01 was wrong in its third digit, and so was f*."""
    for p in (np.float32(1.01), np.float16(1.01)):
        found = mklopt.solve(Problem(GRAMS, Y, "hinge", LpNorm(p)), tol=1e-8)
        same = mklopt.solve(Problem(GRAMS, Y, "hinge", LpNorm(float(p))), tol=1e-8)
        assert found.certificate.lower == same.certificate.lower
        assert found.problem.digest() == same.problem.digest()


def test_kernels_regularizers_and_the_gallery_take_any_number():
    assert Gaussian(np.float32(0.1)).scale == float(np.float32(0.1))
    assert Power(np.int8(2), Fraction(1, 2)) == Power(2, 0.5) and Gaussian(None)
    assert type(R.MixedNorm([[0], [1]], np.float32(1.5), weight=Decimal(2)).r) is float
    u = np.array([0.5, 2.0])
    for small, plainly in (
        (G.k_support(np.int16(1)), G.k_support(1)),
        (
            G.sparse_group(np.array([[0, 1]]), np.float32(0.25)),
            G.sparse_group([[0, 1]], 0.25),
        ),
        (G.log_barrier(Decimal("0.5")), G.log_barrier(0.5)),
        (G.prior_l1([Fraction(1, 4), 2]), G.prior_l1([0.25, 2.0])),
        (G.owl(np.array([2, 1], np.float16)), G.owl([2.0, 1.0])),
        (G.latent_groups(g for g in ([0], [0, 1])), G.latent_groups([[0], [0, 1]])),
    ):
        assert small.value(u) == pytest.approx(plainly.value(u), rel=1e-8)
    for wrong in (
        lambda: G.sparse_group([[True]]),
        lambda: G.prior_l1([0.0]),
        lambda: G.k_support(-1),
        lambda: G.sparse_group([[0]], 2.0),
    ):
        with pytest.raises(ValueError):
            wrong()
