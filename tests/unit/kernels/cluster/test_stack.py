"""ClusterStack on real worker processes: bits, failures, traffic."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import mklopt
from mklopt import kernels
from mklopt.cli import main
from mklopt.formulations import LpNorm

distributed = pytest.importorskip("distributed", reason="Dask is not installed")

from mklopt.kernels.cluster import workers  # noqa: E402
from mklopt.kernels.cluster.workers import ClusterLost  # noqa: E402

N, M = 50, 72
HOST = dict(host="127.0.0.1", dashboard_address="127.0.0.1:0")
PLAIN = dict(threads_per_worker=1, processes=True, memory_limit=0, **HOST)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Two single-threaded worker processes."""
    with (
        distributed.LocalCluster(n_workers=2, **PLAIN) as local,
        distributed.Client(local) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def points() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.where(np.arange(N) % 2 == 0, 1.0, -1.0)
    return rng.normal(size=(N, 5)) + 0.4 * y[:, None], y


@pytest.fixture(scope="module")
def fitted(points) -> kernels.FittedKernels:
    return kernels.subset_gaussians(M, seed=1).fit(points[0], normalize="unit_trace")


def here(client: Any, given: Any, **options: Any) -> mklopt.ClusterStack:
    """The same stack, computed in this process block after block."""
    stack = mklopt.ClusterStack(client, given, **options)
    stack._store.lost = "for this test"
    return stack


def answers(stack: Any) -> list[np.ndarray]:
    """What a stack says, with all kernels and with some."""
    rng = np.random.default_rng(3)
    a, A, theta = rng.normal(size=N), rng.normal(size=(N, 3)), rng.random(M)
    some = np.arange(M) % 5 != 0
    S = np.outer(a, a)
    few = stack.subset(np.array([70, 3, 4, 33]))
    found = [stack.quad(a), stack.quad(A), stack.combine(theta), stack.against(S)]
    found += [stack.combine(theta * some), stack.subset(some).quad(a)]
    found += [few.matvec(a), few.combine(np.ones(4)), few.quad(a), few.rows(2)]
    stack.forget()
    B = rng.normal(size=(M, N))
    found += [stack.matvec(A), stack.apply(B), stack.rows(np.array([7, 2]))]
    return [*found, stack.diag(), stack.kernel(5)]


KINDS = ["packed", "lazy", "array", "float32", "file", "file, lazy"]


@pytest.mark.parametrize("storage", KINDS)
def test_workers_give_the_numbers_of_a_stack_in_memory(
    client, fitted, storage, tmp_path
):
    stored = fitted.grams(dtype="float32" if storage == "float32" else "float64")
    given, how = (fitted, storage) if storage in ("packed", "lazy") else (stored, None)
    if storage.startswith("file"):
        given, how = tmp_path / "kernels.npy", "lazy" if "lazy" in storage else None
        mklopt.GramStack.write(given, fitted)
    if storage == "array":
        given, stored = stored.dense(), mklopt.GramStack(stored.dense())
    stack = mklopt.ClusterStack(client, given, storage=how)
    found, alone = answers(stack), answers(here(client, given, storage=how))
    for x, y, z in zip(found, answers(stored), alone):
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-13)
        np.testing.assert_array_equal(x, z)
    if storage != "lazy":
        sizes = stack._store.root_sizes
        np.testing.assert_allclose(sizes, stored._store.root_sizes, rtol=1e-12)
        named = (np.ones(N), "squared", LpNorm(p=2.0))
        digest = mklopt.Problem(stored, *named).digest()
        assert mklopt.Problem(stack, *named).digest() == digest
    stack.close()


def test_what_is_proved_about_kernels_is_proved_on_workers(client, fitted):
    stack, stored = mklopt.ClusterStack(client, fitted), fitted.grams()
    np.testing.assert_array_equal(stack.verify_psd(), stored.verify_psd())
    assert stack.proof == "theorem or Cholesky"
    bad = np.stack([np.eye(3)] * 9)
    bad[7, 0, 1] = bad[7, 1, 0] = 1 + 1e-5
    stack = mklopt.ClusterStack(client, mklopt.GramStack.of_symmetric(bad))
    with pytest.raises(ValueError, match="kernel 7 is not positive semi-definite"):
        stack.verify_psd()


def solved(stack: Any, y: np.ndarray, p: float = 1.0, **options: Any) -> tuple:
    """A run, as bits."""
    problem = mklopt.Problem(stack, y, "hinge", LpNorm(p=p), C=10.0)
    result = mklopt.solve(problem, tol=1e-6, **options)
    ends = (result.certificate.lower, result.certificate.upper)
    return result.status, result.dual.tobytes(), result.weights.tobytes(), ends


@pytest.mark.parametrize("p", [1.0, 4 / 3])
def test_solvers_take_the_stack_as_it_is(client, fitted, points, p):
    y = points[1]
    found = solved(mklopt.ClusterStack(client, fitted), y, p)
    assert found == solved(here(client, fitted), y, p)
    stored = solved(fitted.grams(), y, p)
    assert found[0] == stored[0] == "converged"
    np.testing.assert_allclose(found[3], stored[3], rtol=1e-6)


def test_races_paths_and_estimators_take_the_stack_as_it_is(client, fitted, points):
    X, y = points
    stack = mklopt.ClusterStack(client, fitted)
    problem = mklopt.Problem(stack, y, "hinge", LpNorm(p=2.0))
    race = mklopt.race(problem, ["analytic", "spg"], tol=1e-4, reference=False)
    assert all(run.result.converged for run in race.runs)
    path = mklopt.path(problem, Cs=[0.1, 1.0], tol=1e-4)
    assert all(result.converged for result in path)
    make = lambda fitted: mklopt.ClusterStack(client, fitted)  # noqa: E731
    far = mklopt.MKLClassifier(["linear", "gaussian(1)"], options={"stack": make})
    near = mklopt.MKLClassifier(["linear", "gaussian(1)"])
    np.testing.assert_allclose(
        far.fit(X, y).decision_function(X),
        near.fit(X, y).decision_function(X),
        atol=1e-3,
    )
    assert far.result_.problem.grams.storage == "cluster"


def test_the_command_line_takes_an_address(client, points, tmp_path):
    np.savez(tmp_path / "points.npz", X=points[0], y=points[1])
    words = ["solve", str(tmp_path / "points.npz"), "--json"]
    far = [*words, "--cluster", client.scheduler.address]
    near, far = (json.loads(CliRunner().invoke(main, w).output) for w in (words, far))
    assert near["status"] == far["status"] == "converged"
    assert abs(near["upper"] - far["upper"]) <= 1e-5 * near["upper"]


def test_several_clients_do_not_wait_for_each_other(client, fitted, monkeypatch):
    """An operation ends when its tasks end, not at the next look at them."""
    monkeypatch.setattr(workers, "LOOK", 20.0)  # more than a busy computer needs
    with distributed.Client(client.scheduler.address):  # the default one from now on
        stack = mklopt.ClusterStack(client, fitted)
        stack.quad(np.ones(N))
        seconds = []
        for k in range(5):
            begun = time.monotonic()
            stack.quad(np.full(N, k + 2.0))
            seconds.append(time.monotonic() - begun)
    assert min(seconds) < 0.5 * workers.LOOK


def test_traffic_is_what_the_model_says(client, fitted, points):
    stack = mklopt.ClusterStack(client, fitted)
    stack.traffic.clear()
    answers(stack)
    for name, moved in stack.traffic.operations.items():
        assert moved.calls > 0, name
        assert moved.received == moved.model_received, name
        assert moved.sent <= 1.3 * moved.model_sent + 100, name
    assert {"quad", "combine", "matvec", "triangles"} <= set(stack.traffic.operations)
    # Kernels in use are brought here once.
    few = stack.subset(np.array([1, 2, 3]))
    before = stack.traffic.operations["triangles"].calls
    for k in range(3):
        few.matvec(np.full(N, k + 1.0))
    assert stack.traffic.operations["triangles"].calls == before + 1
    assert "between workers" in str(stack.traffic)


def test_no_array_of_diagonals_or_products_moves(client, fitted, points, monkeypatch):
    """With many kernels only numbers per kernel, and triangles of sums, come here."""
    monkeypatch.setattr("mklopt.grams.norms.LARGEST_KEPT", 0)
    monkeypatch.setattr("mklopt.grams.norm_reads.WORTH", 0)
    stack = mklopt.ClusterStack(client, fitted)
    found = solved(stack, points[1], 4 / 3)
    assert found[0] == "converged"
    assert {"quad", "traces"} <= set(stack.traffic.operations)
    assert not {"diag", "matvec"} & set(stack.traffic.operations)
    exact = np.sum([np.diag(K) for K in fitted], axis=1)
    np.testing.assert_allclose(stack._store.traces(np.arange(stack.M)), exact)


# ---- failures ------------------------------------------------------------------------


def pids(client: Any) -> list[int]:
    return sorted(client.run(os.getpid).values())


def kill_a_worker(client: Any) -> None:
    os.kill(pids(client)[0], signal.SIGKILL)


@pytest.mark.parametrize("given", ["family", "array"])
def test_a_killed_worker_changes_nothing(client, fitted, points, given):
    kind = fitted if given == "family" else fitted.grams()
    stack = mklopt.ClusterStack(client, kind)
    calls: list[int] = []
    before, expected = pids(client), solved(here(client, kind), points[1], 4 / 3)

    def kill_once(certificate: Any, trace: Any) -> None:
        if not calls:
            kill_a_worker(client)
        calls.append(1)

    found = solved(stack, points[1], 4 / 3, callback=kill_once)
    assert found == expected and calls
    client.wait_for_workers(2, timeout=30)
    assert pids(client) != before


@pytest.mark.full  # at a random moment; the test above kills between operations
def test_a_worker_that_is_killed_during_an_operation(client, fitted, points):
    big = kernels.subset_gaussians(700, seed=2).fit(np.tile(points[0], (4, 1)))
    stack = mklopt.ClusterStack(client, big, storage="lazy")
    stack.quad(np.ones(stack.n))
    killer = threading.Timer(0.15, kill_a_worker, [client])
    killer.start()
    found = [stack.quad(np.full(stack.n, k + 2.0)) for k in range(2)]
    killer.join()
    alone = here(client, big, storage="lazy")
    for k, q in enumerate(found):
        np.testing.assert_array_equal(q, alone.quad(np.full(stack.n, k + 2.0)))


@pytest.mark.full  # a worker takes seconds to come back
def test_the_only_worker_is_killed_during_an_operation(points):
    """Its tasks wait for its address: they are asked again of the one that comes."""
    big = kernels.subset_gaussians(700, seed=2).fit(np.tile(points[0], (4, 1)))
    with (
        distributed.LocalCluster(n_workers=1, **PLAIN) as local,
        distributed.Client(local) as client,
    ):
        stack = mklopt.ClusterStack(client, big, storage="lazy")
        expected = here(client, big, storage="lazy").quad(np.ones(stack.n))
        kill_a_worker(client)
        np.testing.assert_array_equal(stack.quad(np.ones(stack.n)), expected)


def run(name: str, *words: str) -> subprocess.Popen:
    """A program of Dask in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", f"distributed.cli.{name}", *words],
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path))),
        stderr=subprocess.PIPE,
        text=True,
    )


def test_without_a_scheduler_the_best_point_is_certified_here(
    fitted, points, monkeypatch
):
    monkeypatch.setattr(workers, "RECONNECT", 1.0)
    off = ("--host", "127.0.0.1", "--no-dashboard")
    scheduler = run("dask_scheduler", "--port", "0", *off)
    assert scheduler.stderr is not None
    line = next(line for line in scheduler.stderr if "Scheduler at:" in line)
    address = line.split()[-1]
    worker = run("dask_worker", address, "--nthreads", "1", "--no-nanny", *off)
    try:
        client = distributed.Client(address, timeout=30)
        client.wait_for_workers(1, timeout=30)
        stack = mklopt.ClusterStack(client, fitted)
        problem = mklopt.Problem(stack, points[1], "hinge", LpNorm(p=1.1), C=100.0)

        def kill(certificate: Any, trace: Any) -> None:
            if scheduler.poll() is None:
                scheduler.kill()
                scheduler.wait()

        result = mklopt.solve(problem, "analytic", tol=1e-12, callback=kill)
        assert result.status == "failed" and len(result.trace) >= 1
        assert result.message.startswith(
            f"ClusterLost: the cluster at {address} is lost"
        )
        assert "its scheduler does not answer any more" in result.message
        assert result.certificate.lower <= result.certificate.upper < np.inf
        near = mklopt.Problem(
            fitted.grams(), points[1], "hinge", LpNorm(p=1.1), C=100.0
        )
        again = mklopt.certify(near, dual=result.dual, weights=result.weights)
        np.testing.assert_allclose(again.primal, result.certificate.primal, rtol=1e-9)
        with pytest.raises(ClusterLost, match="does not answer"):
            mklopt.ClusterStack(client, fitted)
    finally:
        for process in (worker, scheduler):
            process.kill()
            process.communicate()
        client.close(timeout=1)


def test_without_workers_it_waits_and_says_so(fitted):
    with (
        distributed.LocalCluster(n_workers=0, **PLAIN) as local,
        distributed.Client(local) as client,
    ):
        stack = mklopt.ClusterStack(client, fitted, patience=0.3)
        begun = time.monotonic()
        with pytest.raises(ClusterLost, match=r"there was no worker for 0\.3 s"):
            stack.quad(np.ones(N))
        assert time.monotonic() < begun + 60
        stored = fitted.grams().quad(np.ones(N))
        np.testing.assert_allclose(stack.quad(np.ones(N)), stored)


def test_what_cannot_be_spread_is_refused(client, fitted):
    with pytest.raises(ValueError, match=r"give a distributed\.Client first"):
        mklopt.ClusterStack(fitted, client)
    with pytest.raises(ValueError, match="storage = 'full'"):
        mklopt.ClusterStack(client, fitted, storage="full")
    with pytest.raises(ValueError, match="memory = 'much'"):
        mklopt.ClusterStack(client, fitted, memory="much")
    with pytest.raises(ValueError, match="leave out storage='lazy'"):
        mklopt.ClusterStack(client, np.eye(3)[None], storage="lazy")
    factors = mklopt.GramStack.from_factors([np.eye(3)])
    with pytest.raises(ValueError, match="factors are kept by rows; leave out storage"):
        mklopt.ClusterStack(client, factors, storage="packed")
    with pytest.raises(ValueError, match="dtype is for low-rank kernels; leave it out"):
        mklopt.ClusterStack(client, factors, dtype="float32")
    low_rank = kernels.nystroem(kernels.gaussians([1.0]), 2).fit(np.eye(3))
    with pytest.raises(ValueError, match="dtype = 'float16'; did you mean 'float64'"):
        mklopt.ClusterStack(client, low_rank, dtype="float16")
    with pytest.raises(ValueError, match="kernel 1 is not symmetric"):
        mklopt.ClusterStack(client, [np.eye(2), np.triu(np.ones((2, 2)))])


def test_memory_of_workers_is_freed(client, fitted):
    stack = mklopt.ClusterStack(client, fitted)
    name = stack._store.name
    stack.quad(np.ones(N))

    def there(name: str, dask_worker: Any) -> bool:
        return name in dask_worker.plugins

    assert all(client.run(there, name).values())
    del stack
    for _ in range(50):
        if not any(client.run(there, name).values()):
            break
        time.sleep(0.1)
    assert not any(client.run(there, name).values())


# ---- longer --------------------------------------------------------------------------


@pytest.mark.full
def test_one_two_and_three_workers_give_the_same_bits(fitted, points):
    found = []
    for count in (1, 2, 3):
        with (
            distributed.LocalCluster(n_workers=count, **PLAIN) as local,
            distributed.Client(local) as client,
        ):
            stack = mklopt.ClusterStack(client, fitted)
            bits = [x.tobytes() for x in answers(stack)]
            found.append((*bits, *solved(stack, points[1], 4 / 3)))
    assert found[0] == found[1] == found[2]
