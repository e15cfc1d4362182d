"""`auto` on random small problems, against references: never wrong, never silent.

Kernels are L Lᵀ with L on a dyadic grid, so that they are exact and positive
semi-definite: of full or low rank, copies of each other, zero, or longer or shorter
than the others by up to 2¹⁴. Every loss and every formulation of the registries with
random parameters, C from 1e-3 to 1e3, one or one per sample, with and without a bias.

The reference is an interval around f* from an interior-point method.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mklopt import GramStack, Problem, reference, solve
from mklopt.formulations import formulations, losses_by_name
from mklopt.formulations.norms import INF
from mklopt.run.result import STATUS

TOL, PATIENCE = 1e-6, 0.5  # seconds for one problem; whoever needs more says so
GRID = 2.0**-10
KINDS = ("full", "low", "copy", "zero", "scaled")
LOSSES, FORMULATIONS = losses_by_name(), formulations()
PAIRS = [(loss, name) for loss in LOSSES for name in FORMULATIONS]
A_FEW = -(-200 // len(LOSSES))  # for each loss
MANY = -(-2000 // len(PAIRS))  # for each pair


# ---- parameters, by the name of the field ------------------------------------


def exponents(M: int) -> Any:
    return st.sampled_from([1.0, 1.01, 2.0, 64.0, INF]) | st.floats(1.0, 8.0)


def low_exponents(M: int) -> Any:
    return st.sampled_from([1.0, 1.01, 2.0]) | st.floats(1.0, 2.0)


def positives(M: int) -> Any:
    return st.lists(st.floats(0.05, 20.0), min_size=M, max_size=M)


def weights(M: int) -> Any:
    """Kernel weights; the first may be 0, which forbids that kernel."""
    return positives(M) | positives(M).map(lambda theta: [0.0, *theta[1:]])


def groups(M: int) -> Any:
    def parts(owner: list[int]) -> list[list[int]]:
        return [[m for m in range(M) if owner[m] == j] for j in sorted(set(owner))]

    return st.lists(st.integers(0, 2), min_size=M, max_size=M).map(parts)


def definite(M: int) -> Any:
    def matrix(seed: int) -> np.ndarray:
        A = np.random.default_rng(seed).normal(size=(M, M + 2))
        return A @ A.T / M + 0.1 * np.eye(M)

    return st.integers(0, 2**20).map(matrix)


PARAMETERS: dict[str, Any] = {
    "a": lambda M: st.floats(0, 2),
    "p": exponents,
    "q": exponents,
    "r": low_exponents,
    "s": low_exponents,
    "mu": lambda M: st.floats(-2, 2).map(lambda x: 10**x),
    "l1_ratio": lambda M: st.sampled_from([0.0, 1.0]) | st.floats(0, 1),
    "prior": positives,
    "theta": weights,
    "groups": groups,
    "E": definite,
    "eps": lambda M: st.floats(0, 1),
    "delta": lambda M: st.floats(0.1, 3),
    "tau": lambda M: st.floats(0.05, 0.95),
}


@st.composite
def instances(draw: Any, kind: Any, M: int) -> Any:
    """A loss or formulation with random parameters that it accepts."""
    chosen = {f.name: draw(PARAMETERS[f.name](M)) for f in fields(kind)}
    if kind is FORMULATIONS["BlockPower"]:
        chosen["q"] = min(chosen["q"], 8.0)  # ∞ is refused: u^q has no limit
    if kind is FORMULATIONS["SparseBlockNorm"]:
        chosen["q"] = min(max(chosen["q"], 1.01), 2.0)
    return kind(**chosen)


# ---- problems ----------------------------------------------------------------


@st.composite
def problems(draw: Any, loss: str, formulation: str | None = None) -> Problem:
    n, M = draw(st.integers(4, 30)), draw(st.integers(1, 8))
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=M, max_size=M))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    factors = stack(kinds, n, rng)
    if draw(st.booleans()):
        grams = GramStack(np.stack([L @ L.T for L in factors]))
    else:
        grams = GramStack.from_factors(factors)
    kind = FORMULATIONS[formulation or draw(st.sampled_from(list(FORMULATIONS)))]
    instance = draw(instances(LOSSES[loss], M))
    C: Any = 10.0 ** draw(st.floats(-3, 3))
    if draw(st.booleans()):
        C = 10.0 ** rng.uniform(-3, 3, size=n)
    y = labels(instance.labels, factors[0][:, 0] + 0.5 * rng.normal(size=n))
    bias = instance.bias_allowed and draw(st.booleans())
    return Problem(grams, y, instance, draw(instances(kind, M)), C, bias)


def stack(kinds: list[str], n: int, rng: np.random.Generator) -> list[np.ndarray]:
    found: list[np.ndarray] = []
    for kind in kinds:
        rank = n if kind == "full" else int(rng.integers(1, 4))
        L = np.rint(rng.normal(size=(n, rank)) / np.sqrt(rank) / GRID) * GRID
        if kind == "scaled":
            L = L * 2.0 ** int(rng.integers(-7, 8))
        elif kind == "zero":
            L = np.zeros((n, 1))
        elif kind == "copy" and found:
            L = found[-1]
        found.append(L)
    return found


def labels(kind: str, score: np.ndarray) -> np.ndarray:
    """Labels that follow a score; every class occurs."""
    order = np.argsort(np.argsort(score))
    return {
        "real": score,
        "ones": np.ones(len(score)),
        "binary": np.where(order < len(score) // 3, -1.0, 1.0),
        "classes": order * 3 // len(score),
    }[kind]


# ---- what must hold ----------------------------------------------------------


def judge(problem: Problem) -> str:
    """Solve, compare with the reference; the status."""
    result = solve(problem, "auto", tol=TOL, time_limit=PATIENCE)
    found, gap = result.certificate, result.relative_gap
    exact = reference.solve(problem, tol=0.1 * TOL)
    assert found.lower <= found.upper
    assert gap >= 0
    apart = max(found.lower, exact.lower) - min(found.upper, exact.upper)
    assert apart <= 0, f"{found} does not meet {exact}"
    assert result.status in STATUS
    assert gap <= TOL * (1 + 1e-6) + 1e-15 or not result.converged, result
    return result.status


def go(strategy: Any, count: int) -> None:
    """So many examples, always the same. To give up is no way out of a problem."""
    ends: list[str] = []

    @settings(max_examples=count, database=None)
    @given(strategy)
    def each(problem: Problem) -> None:
        ends.append(judge(problem))

    each()
    assert len(ends) >= count
    given_up = ends.count("failed") + ends.count("finished")
    assert given_up <= max(1, 0.05 * count), f"{given_up} of {len(ends)} given up"


@pytest.mark.parametrize("loss", LOSSES)
def test_auto_is_never_wrong(loss):
    go(problems(loss), A_FEW)


@pytest.mark.full
@pytest.mark.parametrize("loss, formulation", PAIRS)
def test_auto_is_never_wrong_on_any_pair(loss, formulation):
    go(problems(loss, formulation), MANY)
