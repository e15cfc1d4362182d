"""Factors by rows on workers: bits of one process, failures, traffic."""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import mklopt
from mklopt import GramStack, kernels
from mklopt.formulations import LpNorm
from mklopt.grams.factor_loops import BLOCK
from mklopt.grams.factors import FEW_ROWS, Panel
from mklopt.kernels.cluster.blocks import Missing, unpacked

distributed = pytest.importorskip("distributed", reason="Dask is not installed")

from mklopt.kernels.cluster.factors import (  # noqa: E402
    ClusterFactors,
    RowBlocks,
    RowRequest,
    Selection,
    long_form,
    short_form,
)
from mklopt.kernels.cluster.sources import FactorSource  # noqa: E402

N = 9 * BLOCK + 7
RANKS = [3, 1, 4, 2]
SOME = np.array([0, 2, 3])  # columns 0 … 2 and 4 … 9


@contextmanager
def workers(count: int) -> Iterator[Any]:
    """A client of so many single-threaded worker processes."""
    host = dict(host="127.0.0.1", dashboard_address="127.0.0.1:0")
    plain = dict(threads_per_worker=1, processes=True, memory_limit=0, **host)
    with (
        distributed.LocalCluster(n_workers=count, **plain) as local,
        distributed.Client(local) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Two workers."""
    with workers(2) as client:
        yield client


@pytest.fixture(scope="module")
def points() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(N, 4))


@pytest.fixture(scope="module")
def features(points) -> kernels.LowRankKernels:
    return kernels.nystroem(kernels.gaussians([1, 3]), 20).fit(points, "spherical")


def factors(dtype: str = "float64") -> GramStack:
    F = np.random.default_rng(1).normal(size=(N, sum(RANKS)))
    return GramStack.from_factors(F, ranks=RANKS, dtype=dtype)


def lost(stack: mklopt.ClusterStack) -> mklopt.ClusterStack:
    """A stack whose cluster is gone: the same in this process, piece by piece."""
    stack._store.lost = "for this test"
    return stack


def of_panel(panel: Panel, deep: bool = True) -> list[np.ndarray]:
    """What a panel says: products, sums, and parts of it."""
    rng, n = np.random.default_rng(2), panel.n
    found = []
    for k in (1, 2, 5):  # loops of our own, and BLAS
        A, W = rng.normal(size=(n, k)), rng.normal(size=(panel.R, k))
        A[rng.random(n) < 0.5] = 0.0
        found += [panel.fold(A), panel.unfold(W)]
        found += [panel.fold(A, sizes=True), panel.unfold(W, sizes=True)]
    for size in (0, 5, FEW_ROWS - 1, FEW_ROWS, n // 2):
        which = np.sort(rng.permutation(n)[:size])
        d = rng.uniform(size=size)
        found.append(panel.gram(which, d))
        if deep:
            part = panel.rows(which)
            found += [*of_panel(part, deep=False)] if size else [part.F]
            found.append(np.array([part.fold_chain, part.unfold_chain, part.width]))
    near, mixed = np.arange(3 * BLOCK, 6 * BLOCK), rng.permutation(n)
    found += [panel.gram(which, np.ones(len(which))) for which in (near % n, mixed)]
    return [*found, panel.rows(mixed).F, panel.ends, panel.places]


def of_stack(stack: GramStack) -> list[np.ndarray]:
    """What a stack says about all kernels and some."""
    rng = np.random.default_rng(3)
    a, twice = rng.normal(size=stack.n), np.array([1, 0, 1])
    found = [stack.fold(a), stack.quad(a), stack.diag(), *(stack.factors or [])]
    found += [stack.unfold(rng.normal(size=int(np.sum(stack.ranks))))]
    found += [stack.subset(twice).fold(a), stack.subset(twice).quad(a)]
    found += [np.asarray(stack.norms(a)), np.array([stack.chain(7), stack.full_read])]
    return [*found, stack.rows(5), stack.apply(np.outer(np.ones(stack.M), a))]


def same(found: list[np.ndarray], expected: list[np.ndarray]) -> None:
    assert len(found) == len(expected)
    for x, y in zip(found, expected):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("kind", ["array", "float32", "points", "lost", "lost points"])
def test_workers_give_the_bits_of_one_process(client, features, kind):
    if "points" in kind:
        near, far = features.grams(), mklopt.ClusterStack(client, features)
        some = np.array([1])
    else:
        near = factors("float32" if kind == "float32" else "float64")
        far, some = mklopt.ClusterStack(client, near), SOME
    far = lost(far) if "lost" in kind else far
    same(of_panel(far.subset(some).panel()), of_panel(near.subset(some).panel()))
    same(of_stack(far), of_stack(near))
    assert far.storage == "factors" and far.proof == "factors"
    np.testing.assert_array_equal(far.verify_psd(), np.zeros(near.M))
    labels = np.ones(N), "squared", LpNorm(p=2.0)
    assert (
        mklopt.Problem(far, *labels).digest() == mklopt.Problem(near, *labels).digest()
    )
    far.close()


def test_a_part_of_a_stack_of_factors_is_spread_alone(client):
    near = factors().subset(np.array([2, 0]))
    far = mklopt.ClusterStack(client, near)
    same(of_stack(far), of_stack(GramStack.from_factors(near.factors)))


# ---- solvers and certificates --------------------------------------------------------


def solved(stack: GramStack, X: np.ndarray, loss: str, **options: Any) -> tuple:
    """A run, as bits."""
    noise = 0.3 * np.random.default_rng(4).normal(size=N)
    z = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + noise
    y = np.digitize(z, [-0.5, 0.5]) if loss != "hinge" else np.where(z > 0, 1.0, -1.0)
    problem = mklopt.Problem(stack, y.astype(float), loss, LpNorm(p=2.0), C=1.0)
    assert stack.in_feature_space
    result = mklopt.solve(problem, "analytic", **{"tol": 1e-6, **options})
    found = result.certificate
    numbers = (found.primal, found.dual, found.lower, found.upper)
    bits = [array.tobytes() for array in (result.dual, found.features)]
    return result.status, numbers, *bits, len(result.trace)


@pytest.mark.parametrize("loss", ["hinge", "multiclass_hinge"])
def test_a_certificate_has_the_bits_of_one_process(client, features, points, loss):
    tol = 1e-6 if loss == "hinge" else 0.03
    far = mklopt.ClusterStack(client, features, dtype="float32")
    found = solved(far, points, loss, tol=tol)
    assert found == solved(features.grams("float32"), points, loss, tol=tol)
    assert found[0] == "converged"
    used = far.traffic.operations
    assert {"fold", "unfold"} <= set(used) and used["fold"].calls > 10
    assert loss != "hinge" or "gram" in used


@pytest.mark.parametrize("given", ["points", "array"])
def test_a_killed_worker_changes_nothing(client, features, points, given):
    near = features.grams()
    far = mklopt.ClusterStack(client, features if given == "points" else near)
    before = sorted(client.run(os.getpid).values())
    calls: list[int] = []

    def kill_once(certificate: Any, trace: Any) -> None:
        if not calls:
            os.kill(before[0], signal.SIGKILL)
        calls.append(1)

    found = solved(far, points, "hinge", callback=kill_once)
    assert found == solved(near, points, "hinge") and calls
    pieces = far._store.cut.count
    assert far.traffic.operations["factors"].calls > pieces  # some were sent again
    client.wait_for_workers(2, timeout=30)
    assert sorted(client.run(os.getpid).values()) != before


@pytest.mark.full
def test_three_workers_give_the_same_bits(features, points):
    with workers(3) as client:
        far = mklopt.ClusterStack(client, features)
        found = solved(far, points, "hinge", tol=1e-4)
    assert found == solved(features.grams(), points, "hinge", tol=1e-4)


# ---- traffic -------------------------------------------------------------------------


def test_traffic_is_what_the_formula_says(client, features):
    """8Rk and 8nk bytes, half of an R × R matrix, and no factors."""
    far = mklopt.ClusterStack(client, features)
    panel, R = far.panel(), features.R
    panel.fold(np.ones((N, 1)))  # the points are sent
    sizes = [far.traffic.operations[name].sent for name in ("source", "factors")]
    assert sizes[1] == 8 * N * 4 and sizes[0] < 30_000
    far.traffic.clear()
    A, W, which = np.ones((N, 3)), np.ones((R, 3)), np.arange(0, N, 2)
    some, few = panel.rows(which), np.arange(0, N, 20)
    panel.fold(A)
    panel.unfold(W)
    some.fold(A[which])
    some.unfold(W)
    panel.gram(which, np.ones(len(which)))
    panel.rows(few)
    half, moved = len(which), far.traffic.operations
    head, bits = 2 * (400 + 4 * far.M), N / 8
    expected = {
        "fold": (8 * 3 * (N + half) + bits + 2 * head, 2 * 8 * R * 3 * 2),
        "unfold": (2 * 8 * R * 3 * 2 + bits + 2 * head, 8 * 3 * (N + half)),
        "gram": (8 * half + bits + head, 4 * (R + 1) * (R + 2)),
        "rows": (min(4 * len(few), bits) + head, 8 * len(few) * R),
    }
    assert set(moved) == set(expected)
    for name, (sent, received) in expected.items():
        assert moved[name].received == moved[name].model_received == received, name
        assert sent / 1.3 <= moved[name].sent <= 1.3 * sent, name
        assert moved[name].model_sent == pytest.approx(sent, rel=1e-3), name
    assert moved["gram"].model_between == 4 * (R + 1) * (R + 2)  # one edge


# ---- without a cluster ---------------------------------------------------------------


@pytest.mark.parametrize("owners", [1, 2, 3, 7])
def test_sums_do_not_depend_on_who_has_which_piece(owners):
    """Each owner answers for its subtrees; the sums above are made here."""
    n, rng = 50 * BLOCK + 5, np.random.default_rng(owners)  # pieces of four blocks
    near = GramStack.from_factors(rng.normal(size=(n, 3)), ranks=[1, 2])
    blocks = [RowBlocks(FactorSource(near)) for _ in range(owners)]
    store: Any = ClusterFactors.__new__(ClusterFactors)
    store.cut = cut = blocks[0].cut
    whose = dict(enumerate(rng.integers(owners, size=cut.count).tolist()))
    A, half = rng.normal(size=(n, 1)), np.arange(0, n, 2)

    def summed(operation: str, some: Selection, lines: np.ndarray) -> np.ndarray:
        of: dict[tuple, np.ndarray] = {}
        for who, nodes in store._nodes(some, whose).items():
            mine = [b for b in some.blocks if whose[b] == who]
            request = store._request(operation, np.arange(2), some, mine)
            request.own, request.nodes = some.part(lines, mine), tuple(nodes)
            of |= dict(zip(nodes, blocks[who].answer(request)))
        found = cut.total(cut.root, of.get, np.add)
        assert found is not None
        return found

    panel, every = near.panel(), Selection(cut, None)
    np.testing.assert_array_equal(summed("fold", every, A), panel.fold(A))
    part = summed("fold", Selection(cut, half, 1), A[half])
    np.testing.assert_array_equal(part, panel.rows(half).fold(A[half]))
    d = np.abs(A[half, 0])
    triangle = summed("gram", Selection(cut, half), d)
    np.testing.assert_array_equal(unpacked(triangle, 4), panel.gram(half, d))


def test_workers_keep_the_last_selections_alone():
    blocks = RowBlocks(FactorSource(factors()))
    for name in (1, 2, 1, 3):
        some = Selection(blocks.cut, np.arange(name, N, 3), name)
        assert some.rows is not None
        asked = RowRequest(
            *("unfold", np.arange(4), np.array([2]), name, some.rows[2:3]),
            shared=np.ones((10, 1)),
        )
        first = blocks.answer(asked)
        np.testing.assert_array_equal(blocks.answer(asked), first)
    assert list(blocks.selected) == [1, 3]


def test_no_factors_are_sent_with_the_source():
    stack = factors()
    source = FactorSource(stack)
    assert source.F is stack.panel().F  # not copied here, either
    assert len(pickle.dumps(source)) < 2000
    there = pickle.loads(pickle.dumps(RowBlocks(source)))
    assert there.source.store(0, 5) is None and there.cut.count == 10
    asked = RowRequest("diag", np.arange(4), np.array([1, 3]))
    with pytest.raises(Missing) as missing:
        there.answer(asked)
    assert missing.value.blocks == [1, 3]
    for block in (1, 3):
        there.put(block, source.packed(*there.cut.ends(block)))
    np.testing.assert_array_equal(there.answer(asked), RowBlocks(source).answer(asked))


@pytest.mark.parametrize("numbers", [[], [0], [5000], [0, 7, 9], list(range(3, 900))])
def test_row_numbers_have_a_short_form(numbers):
    rows = np.array(numbers, int)
    found = short_form(rows)
    np.testing.assert_array_equal(long_form(found), rows)
    assert found.nbytes <= min(4 * len(rows), (max(numbers, default=0) + 8) // 8) + 4
