"""Random problems over the whole range, judged by an evaluator in exact arithmetic.

0 false bounds, 0 raw exceptions, 0 time limits overrun by more than 2×. A failure names
its cases by (seed, index); `python -m tests.property.attack.judge --seed S --from A
--to B` runs them again. The evaluator itself is tested here, too: on numbers that are
known, and on bounds that are wrong by little.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from tests.property.attack import exact
from tests.property.attack.exact import LOSSES, OMEGA, Kernels
from tests.property.attack.judge import MUST_NOT, attack, judge
from tests.property.attack.problems import CLASSES, PARAMETERS, draw

SEED = 21
A_FEW = range(80)  # about 25 s
CHUNK, CHUNKS = 100, 104  # about 20 s each; 10,400 problems


@pytest.fixture(autouse=True)
def many_digits() -> Iterator[None]:
    """Other tests that use mpmath have another precision."""
    with mpmath.workprec(exact.PRECISION):
        yield


def check(seed: int, first: int, last: int) -> None:
    summary = attack(seed, first, last)
    assert summary.built > 0.8 * summary.cases  # refusing everything is no way out
    assert summary.bounds > 0.7 * summary.cases
    assert summary.count(MUST_NOT) == 0, summary.text()


def like_large_stacks(monkeypatch) -> None:
    """Norms are bounded from earlier reads, as they are where reading takes long."""
    monkeypatch.setattr("mklopt.grams.norm_reads.WORTH", 0)


@pytest.mark.parametrize("first", A_FEW[::20])
def test_a_few_problems(first, monkeypatch):
    if first % 40:
        like_large_stacks(monkeypatch)
    check(SEED, first, first + 20)


@pytest.mark.full
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_ten_thousand_problems(chunk, capsys, monkeypatch):
    if chunk % 2:
        like_large_stacks(monkeypatch)
    begun = time.process_time()
    try:
        check(SEED + 1, chunk * CHUNK, (chunk + 1) * CHUNK)
    finally:
        with capsys.disabled():
            print(f" attack {chunk + 1}/{CHUNKS}: {time.process_time() - begun:.0f} s")


# ---- the evaluator -------------------------------------------------------------------


NOT_CLOSED = {"NonIsotropic", "latent_groups", "tree"}  # only enclosed


@pytest.mark.parametrize("name", sorted(PARAMETERS))
def test_values_and_conjugates_satisfy_fenchel(name):
    """Ω(u) + Ω*(v) ≥ ⟨u, v⟩ everywhere, with equality where v is the slope at u."""
    rng = np.random.default_rng(0)
    value, conjugate = OMEGA[name]
    for _ in range(5):
        M = int(rng.integers(1, 6))
        p = draw(0, 0).with_penalty(name, PARAMETERS[name](rng, M), M).exact_penalty
        u = [mpf(float(x)) for x in rng.uniform(0.1, 2, size=M)]
        v = [mpf(float(x)) for x in rng.uniform(0.0, 2, size=M)]
        here, there = value(p, u), conjugate(p, v)
        assert here[0] <= here[1]
        assert there[0] <= there[1]
        assert here[1] + there[1] >= _dot(u, v) * (1 - mpf(10) ** -60)
        if name not in NOT_CLOSED and here[1] < math.inf:
            v = [a * (1 - mpf(10) ** -30) for a in _slope(value, p, u)]
            both = here[0] + conjugate(p, v)[0]
            assert abs(both - _dot(u, v)) <= mpf(10) ** -15 * (1 + abs(here[0]))


def _dot(u, v):
    return sum(a * b for a, b in zip(u, v))


def _slope(value, p, u):
    """∂Ω(u) by differences."""
    h, out = mpf(10) ** -35, []
    for m in range(len(u)):
        more = [a + h * (k == m) for k, a in enumerate(u)]
        less = [a - h * (k == m) for k, a in enumerate(u)]
        out.append((value(p, more)[0] - value(p, less)[0]) / (2 * h))
    return out


def test_losses_and_conjugates_satisfy_fenchel():
    rng = np.random.default_rng(1)
    parameters = {"eps": 0.3, "delta": 0.7, "tau": 0.25}
    for name, (value, conjugate) in LOSSES.items():
        for _ in range(20):
            many = name in CLASSES
            y = int(rng.integers(3)) if many else Fraction(int(rng.choice([-1, 1])))
            y = Fraction(1) if name == "one_class" else y
            f = _fractions(rng.normal(size=3)) if many else Fraction(rng.normal())
            C = Fraction(float(rng.uniform(0.5, 2)))
            alpha = _inside(rng, name, y, C, many, parameters)
            term = conjugate(parameters, alpha, C, y)
            assert term is not None, name
            product = sum(f * alpha) if many else f * alpha
            total = exact.real(C) * exact.real(value(parameters, f, y)) + exact.real(
                term
            )
            assert total >= exact.real(-product) - mpf(10) ** -60, name


def _fractions(values):
    out = np.empty(len(values), object)
    out[:] = [Fraction(float(x)) for x in values]
    return out


def _inside(rng, name, y, C, many, parameters):
    if many:
        g = _fractions(rng.dirichlet(np.ones(3)))
        g[-1] = 1 - g[0] - g[1]
        own = _fractions(np.eye(3)[y])
        return C * (own - g)
    low, high = exact.BOX[name](parameters, y)
    low, high = (-2 if low is None else low), (2 if high is None else high)
    return C * (low + (high - low) * Fraction(float(rng.uniform(0.01, 0.99))))


def test_numbers_that_are_known():
    """½‖(3, 4)‖² = 12.5; the conjugate of the ℓ1 norm is an indicator; log 2."""
    u = [mpf(3), mpf(4)]
    assert OMEGA["BlockNorm"][0]({"q": 2.0}, u)[0] == mpf(12.5)
    assert OMEGA["BlockL1"][0]({}, u) == (mpf(24.5), mpf(24.5))
    assert OMEGA["GroupLasso"][1]({}, u)[0] == math.inf
    off = LOSSES["logistic"][0]({}, Fraction(0), 1) - mpmath.log(2)
    assert abs(off) < mpf(10) ** -80
    K = Kernels([exact.gram([[1.0], [2.0]])], [0.0])
    assert K.apply(0, exact.dyadic([1.0, 1.0]))[1] == 9
    assert K.definite(0)
    assert not Kernels([exact.matrix([[1.0, 2.0], [2.0, 1.0]])], [0.0]).definite(0)


# ---- it finds what is planted --------------------------------------------------------


SHIFT = 1e-4  # relative: of planted errors


def planted(monkeypatch, wrong) -> tuple[set[str], int, int]:
    """Kinds found where bounds are changed before the verdict; in how many of how many.

    Counted are the bounds that are closer than the change, so that it makes them false.
    """
    import mklopt.certificates.certificate as certificate

    right, last = certificate.enclose, []

    def changed(*a):
        last[:] = [right(*a)]
        return wrong(last[0])

    monkeypatch.setattr(certificate, "enclose", changed)
    kinds: set[str] = set()
    cases, seen, false = [draw(SEED, index) for index in range(25)], 0, 0
    cases = [c for c in cases if not c.extreme and c.n < 13 and c.action == "solve"]
    for case in cases:
        record = judge(replace(case.plainly(), tol=1e-6, solver="auto", again=False))
        here = {kind for kind, _ in record.wrong} & set(MUST_NOT[:4])
        if last[0].upper - last[0].lower < SHIFT * min(abs(last[0].lower), 1e300):
            kinds, seen, false = kinds | here, seen + bool(here), false + 1
    return kinds, seen, false


def test_a_lower_bound_that_is_too_high_is_found(monkeypatch):
    def wrong(e):
        return e._replace(lower=e.lower + SHIFT * abs(e.lower), upper=math.inf)

    kinds, seen, false = planted(monkeypatch, wrong)
    assert kinds == {"false lower", "unproved lower"}
    assert seen == false > 10


def test_an_upper_bound_that_is_too_low_is_found(monkeypatch):
    def wrong(e):
        return e._replace(upper=e.upper - SHIFT * abs(e.upper), lower=-math.inf)

    kinds, seen, false = planted(monkeypatch, wrong)
    assert kinds == {"false upper", "unproved upper"}
    assert seen == false > 10


def test_bounds_that_are_wrong_by_little_are_unproved(monkeypatch):
    """The last digits: a bound that its own point does not show."""

    def wrong(e):
        lower = e.lower + 1e-10 * abs(e.lower)
        return e._replace(lower=lower, upper=e.upper + abs(e.upper))

    kinds, seen, false = planted(monkeypatch, wrong)
    assert "unproved lower" in kinds
    assert seen > 0.6 * false > 6
