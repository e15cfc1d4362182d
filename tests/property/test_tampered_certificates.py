"""Tampering, for every loss with every formulation: refused, or still true.

Whatever a changed file claims and the checker accepts is evaluated a second time, by
textbook formulas in 60 digits (rationals.py), and must hold there. Hashes are honest:
only the mathematics can refuse.
"""

from __future__ import annotations

import base64
import json

import mpmath
import numpy as np
import pytest

import mklopt
from mklopt import formulations as F
from mklopt.certificates import portable
from mklopt.certificates.checker import Refused, check
from mklopt.problem import losses_by_name
from tests.unit.certificates.rationals import values_of
from tests.unit.certificates.samples import resigned

N, M = 5, 3
GROUPS = ((0, 2), (1,))
FORMULATIONS = (
    F.GroupLasso(),
    F.BlockL1(),
    F.BlockNorm(2**0.5),
    F.LpNorm(3.0),
    F.Ivanov(np.inf),
    F.WeightedLpNorm(3.0, (0.5, 1.0, 3.0)),
    F.Tikhonov(3.0, 0.7),
    F.BlockPower(1.5),
    F.ElasticNet(0.3),
    F.FixedWeights((1.0, 0.5, 3.0)),
    F.VSKL(GROUPS, 2.0),
    F.Composite(GROUPS, 1.25, 1.5),
    F.NonIsotropic([[1.0, -0.5, 0.25], [-0.5, 1.0, 0.5], [0.25, 0.5, 1.0]]),
    F.SparseBlockNorm(1.5, 0.1),
)
LOSSES = tuple(losses_by_name())
KINDS = ("dual", "scale", "shrink", "weights", "point", "data", "terms", "bounds")
SLACK = mpmath.mpf(10) ** -13  # exponents such as 4/3 are floats in rationals.py


def claim_of(loss, formulation, bias=True, seed=0):
    """The claim of a point that need not be good: its bounds are those it shows."""
    rng = np.random.default_rng(seed)
    factors = [np.rint(rng.normal(size=(N, 1 + m)) * 8) / 8 for m in range(M)]
    y = {
        "one_class": np.ones(N),
        "multiclass_hinge": np.arange(N) % 3,
        "multinomial": np.arange(N) % 3,
    }.get(loss, np.where(np.arange(N) % 2, 1.0, -1.0))
    problem = mklopt.Problem(
        mklopt.GramStack.from_factors(factors), y, loss, formulation,
        C=rng.uniform(0.5, 2.0, N), bias=bias and loss != "one_class",
    )  # fmt: skip
    f = 0.3 * rng.normal(size=problem.shape)
    alpha = -problem.loss.gradient(f, problem.y) * problem.spread_costs
    weights = formulation.weights(np.exp(rng.normal(scale=0.3, size=M)))
    found = mklopt.certificates.certificate.certify(problem, alpha, weights)
    stated = portable.statement(problem)
    return json.loads(json.dumps({**stated, **portable.points_of(found)}))


def changed_array(text, rng):
    x = np.frombuffer(base64.b64decode(text)).copy()
    i = rng.integers(len(x))
    x[i] = rng.choice([0.0, -x[i], x[i] * 2, x[i] * (1 - 1e-9), x[i] + 1, -1e-9])
    return portable._text(x)


def tampered(claim, rng, kinds=KINDS):
    """The claim with one or two changes to its point, its data or its bounds."""
    claim = json.loads(json.dumps(claim))
    dual, primal = claim["dual"], claim["primal"]
    for kind in rng.choice(kinds, size=rng.integers(1, 3)):
        integers = dual["integers"]
        i, j = rng.integers(len(integers), size=2)
        if kind == "dual":
            step = int(rng.choice([-1, 1])) << int(rng.integers(54))
            integers[i] += step
            integers[j] -= step * int(rng.integers(2))
        elif kind == "scale":
            times = int(rng.choice([-1, 0, 2, 3]))
            dual["integers"] = [times * k for k in integers]
            dual["exponent"] += int(rng.integers(-1, 2))
        elif kind == "shrink":
            factor = rng.choice([0.5, 0.0, 1 - 1e-9, 1 + 1e-9, 2.0, -1.0])
            dual["shrink"] *= float(factor)
        elif kind == "weights":
            primal["weights"] = changed_array(primal["weights"], rng)
            if "slack" in dual:
                name, where = [("slack", dual), ("direction", primal)][rng.integers(2)]
                where[name] = changed_array(where[name], rng)
        elif kind == "point":
            primal["stretch"] *= float(rng.choice([0.5, 1 - 1e-9, 1 + 1e-9, -1.0]))
            if isinstance(primal["bias"], str):
                primal["bias"] = changed_array(primal["bias"], rng)
            else:
                primal["bias"] += float(rng.choice([0.0, 1e-6, -1.0]))
        elif kind == "data":
            name = str(rng.choice(["y", "C", "shift", "kernels", "bias"]))
            if name == "bias":
                claim["bias"] = not claim["bias"]
            elif name == "kernels":
                m = rng.integers(M)
                claim["kernels"][m] = changed_array(claim["kernels"][m], rng)
            else:
                claim[name] = changed_array(claim[name], rng)
        elif kind == "terms":
            change_terms(claim, rng)
        else:
            name = str(rng.choice(["lower", "upper"]))
            inward = (1 if name == "lower" else -1) * 10.0 ** -rng.uniform(0, 9)
            claim[name] += inward * max(abs(claim[name]), 1e-3)
    return claim


def change_terms(claim, rng):
    """Another parameter, or the name of another loss or formulation."""
    part = str(rng.choice(["loss", "formulation"]))
    names = [key for key, x in claim[part][1].items() if isinstance(x, float)]
    if names and rng.integers(2):
        name = str(rng.choice(names))
        claim[part][1][name] *= float(rng.choice([0.5, 0.9, 1.1, 1 + 1e-6]))
    elif part == "loss":
        other = losses_by_name()[str(rng.choice(LOSSES))]()
        claim["loss"] = [other.name, dict(vars(other))]
    else:
        other = FORMULATIONS[rng.integers(len(FORMULATIONS))]
        claim["formulation"] = json.loads(json.dumps([other.name, vars(other)]))


def judged(claim):
    """Whether the checker accepts a claim; if so it must be true."""
    try:
        proved = check(resigned(claim))
    except (Refused, ValueError):  # labels that no problem can be stated with
        return False
    with mpmath.workdps(60):
        low, up = values_of(claim)
        assert proved["lower"] <= low + SLACK * (1 + abs(low)), (claim, low)
        assert proved["upper"] >= up - SLACK * (1 + abs(up)), (claim, up)
    return True


@pytest.mark.parametrize("count", [24, pytest.param(400, marks=pytest.mark.full)])
@pytest.mark.parametrize("loss", LOSSES)
def test_tampering_is_refused_or_harmless(loss, count):
    for place, formulation in enumerate(FORMULATIONS):
        rng = np.random.default_rng([count, place])
        claim = claim_of(loss, formulation, bias=bool(place % 2), seed=place)
        assert judged(claim), (loss, formulation)
        accepted = sum(judged(tampered(claim, rng)) for _ in range(count))
        assert accepted < 0.6 * count, (loss, formulation)


@pytest.mark.parametrize("loss", LOSSES)
def test_points_show_their_values_and_no_more(loss):
    """At any shrink and stretch: what is 1e-9 inside of the value is not proved."""
    for place, formulation in enumerate(FORMULATIONS):
        claim = claim_of(loss, formulation, bias=bool(place % 2), seed=place)
        t = claim["primal"]["stretch"] = [0.5, 3.0, -2.0][place % 3]
        claim["dual"]["shrink"] *= [1.0, 0.5, 0.25][place % 3]
        low, up = map(float, values_of(claim))
        room = 1e-9 * (1 + abs(low) + abs(up))
        if isinstance(formulation, F.NonIsotropic):
            room *= 100  # its value is good to 1e-9 itself
        claim["lower"], claim["upper"] = min(low, up) - room, up + room
        assert check(resigned(claim))["n"] == N, (loss, formulation, t)
        for key, value in (("lower", low + room), ("upper", up - room)):
            other = {**claim, "lower": -1e9, "upper": 1e9, key: value}
            with pytest.raises(Refused, match=f"{key} = .* is not proved"):
                check(resigned(other))


@pytest.mark.parametrize("count", [6, pytest.param(100, marks=pytest.mark.full)])
@pytest.mark.parametrize("loss", LOSSES)
def test_what_is_false_is_never_proved(loss, count):
    """A lower bound above an upper bound that was proved, or the reverse."""
    for place, formulation in enumerate(FORMULATIONS):
        rng = np.random.default_rng([7, count, place])
        claim = claim_of(loss, formulation, bias=not place % 2, seed=place)
        low, high = claim["lower"], claim["upper"]
        for _ in range(count):
            other = tampered(claim, rng)
            for key in ("y", "C", "shift", "kernels", "bias", "loss", "formulation"):
                other[key] = claim[key]
            room = 1e-6 + 1e-6 * max(abs(low), abs(high))
            for bounds in ((high + room, 1e9), (-1e9, low - room)):
                other["lower"], other["upper"] = bounds
                with pytest.raises(Refused):
                    check(resigned(other))
