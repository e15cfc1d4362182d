"""A run that was killed goes on, bit for bit; a file of another run is refused."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from mklopt import GramStack, LazyStack, Problem, kernels, solve
from mklopt.formulations import BlockL1, BlockNorm, LpNorm, formulation
from mklopt.grams.storage import Triangles
from mklopt.run import checkpoint
from mklopt.run.clock import Clock
from tests.faults import small_disk
from tests.problems import subset_gaussians

OPERATIONS = ("quad", "combine", "matvec", "against")

# A real process with slow kernels: it says when its run begins.
CHILD = """
import sys, time
import numpy as np
from mklopt.grams.storage import Triangles
from mklopt.run import checkpoint
from tests.unit.run import test_checkpoint as test

def slow(before, seconds):
    def ask(self, index, *arguments):
        time.sleep(seconds * len(index) / len(self.P))
        return before(self, index, *arguments)
    return ask

case, path, out, seconds = sys.argv[1:]
problem, options = test.CASES[case]()
test.record_everything()
for name in test.OPERATIONS:
    setattr(Triangles, name, slow(getattr(Triangles, name), float(seconds)))
print("begins", flush=True)
result = test.solve(problem, **options, checkpoint=path or None)
np.savez(out, **test.bits(result))
"""


def record_everything() -> None:
    """Record all answers of more than a few kernels, however fast they are."""
    checkpoint.LEAST_NUMBERS = 200_000
    checkpoint.LEAST_SECONDS, checkpoint.RATE = 0.0, 1e15


@pytest.fixture
def recorded(monkeypatch):
    """As record_everything, for one test."""
    monkeypatch.setattr(checkpoint, "LEAST_NUMBERS", 0)
    monkeypatch.setattr(checkpoint, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "RATE", 1e15)


def bits(result) -> dict[str, np.ndarray]:
    """All numbers of a result and its trace, without times."""
    found = result.certificate
    trace = {k: v for k, v in result.trace.arrays().items() if "seconds" not in k}
    values = [found.primal, found.dual, found.shrink, found.lower, found.upper]
    point = {"weights": result.weights, "dual": result.dual, "bias": result.bias}
    words = np.array([result.status, result.choice, result.point])
    return point | trace | {"values": np.array(values), "words": words}


def sparse():
    """Norms of unused kernels are bounded: the stack is large enough for it."""
    K, y = subset_gaussians(120, 700)
    return Problem(GramStack(K), y, "hinge", BlockL1(), C=10.0), {"tol": 1e-7}


def dense():
    K, y = subset_gaussians(100, 60)
    problem = Problem(GramStack(K), y, "logistic", LpNorm(4 / 3), C=10.0)
    return problem, {"solver": "fista", "tol": 1e-4}


def random_steps():
    K, y = subset_gaussians(100, 60)
    problem = Problem(GramStack(K), y, "hinge", LpNorm(4 / 3), C=1.0, bias=False)
    return problem, {"solver": "ufo", "max_iter": 60, "seed": 3}


CASES = {"sparse": sparse, "dense": dense, "random": random_steps}


def run(case: str, path: object, out: Path, seconds: float, killed: float | None):
    """A process that solves a case; killed after so many seconds of its run."""
    words = [case, str(path), str(out), str(seconds)]
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, *words], stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begins\n"
        timer = None
        if killed is not None:
            timer = threading.Timer(killed, process.kill)  # SIGKILL
            timer.start()
        process.wait()
        if timer is not None:
            timer.cancel()
    return process.returncode


def kills(case: str, folder: Path, count: int, seconds: float, lasts: float) -> None:
    """Kill runs `count` times; what ends must have the bits of a run left alone."""
    problem, options = CASES[case]()
    alone = bits(solve(problem, **options))
    path, out, rng, killed = (
        folder / "run.ckpt",
        folder / "end.npz",
        random.Random(0),
        0,
    )
    ended = False
    while killed < count or not ended:
        after = rng.uniform(0.02, lasts) if killed < count else None
        code = run(case, path, out, seconds, after)
        killed, ended = killed + (code == -9), code == 0
        assert code in (0, -9)
        if ended:
            with np.load(out) as end:
                assert end.files == list(alone)
                for name, expected in alone.items():
                    assert np.asarray(expected).tobytes() == end[name].tobytes(), name
            path.unlink()  # the next one begins anew


def test_two_kills_at_random_moments(tmp_path):
    kills("sparse", tmp_path, 2, seconds=0.2, lasts=0.8)


@pytest.mark.full
@pytest.mark.parametrize("case", CASES)
def test_ten_kills_at_random_moments(case, tmp_path):
    kills(case, tmp_path, 10, seconds=0.3, lasts=1.0)


# ---- in one process ------------------------------------------------------------------


@contextmanager
def counted(monkeypatch):
    """The operations that are really computed."""
    done: list[str] = []
    with monkeypatch.context() as patch:
        for name in OPERATIONS:
            before = getattr(Triangles, name)

            def ask(self, *arguments, before=before, name=name):
                done.append(name)
                return before(self, *arguments)

            patch.setattr(Triangles, name, ask)
        yield done


def small(C=10.0, form=None, K=None):
    kernels, y = subset_gaussians(60, 12)
    stack = GramStack(kernels if K is None else K)
    return Problem(stack, y, "hinge", form or LpNorm(4 / 3), C=C)


def same(one, other) -> bool:
    one, other = bits(one), bits(other)
    return all(np.array_equal(one[name], other[name]) for name in one)


def test_a_finished_run_is_read_from_its_file(tmp_path, recorded, monkeypatch):
    path, alone = tmp_path / "run.ckpt", solve(small())
    first = solve(small(), checkpoint=path)
    with counted(monkeypatch) as done:
        second = solve(small(), checkpoint=path)
    assert done == []
    assert same(alone, first) and same(alone, second)
    np.testing.assert_array_equal(first.trace.seconds, second.trace.seconds)
    np.testing.assert_array_equal(
        first.trace.solver_seconds, second.trace.solver_seconds
    )


def test_passes_and_memory_are_those_of_a_run_that_computed_all(tmp_path, recorded):
    path, problem = tmp_path / "run.ckpt", small()
    solve(small(), checkpoint=path)
    alone = small()
    one, two = solve(alone), solve(problem, checkpoint=path)
    assert alone.grams.passes == problem.grams.passes
    assert same(one, two)
    before = problem.grams.passes
    problem.grams.quad(one.dual), alone.grams.quad(one.dual)
    assert alone.grams.passes - before == problem.grams.passes - before


def test_it_goes_on_with_a_smaller_tolerance(tmp_path, recorded):
    path = tmp_path / "run.ckpt"
    solve(small(), tol=1e-2, checkpoint=path)
    assert same(solve(small(), tol=1e-8), solve(small(), tol=1e-8, checkpoint=path))


def test_it_goes_on_after_an_interrupt(tmp_path, recorded):
    def interrupt(certificate, trace):
        raise KeyboardInterrupt

    path = tmp_path / "run.ckpt"
    first = solve(small(), callback=interrupt, checkpoint=path)
    assert first.status == "interrupted"
    assert same(solve(small()), solve(small(), checkpoint=path))


def test_time_goes_on_and_the_limit_counts_all_of_it(tmp_path, recorded):
    path, problem = tmp_path / "run.ckpt", small()
    first = solve(problem, "silp", max_iter=3, checkpoint=path)
    limit = first.trace.last("seconds") / 2
    again = solve(small(), "silp", time_limit=limit, checkpoint=path)
    assert again.status == "time_limit" and len(again.trace) <= 3
    times = again.trace.seconds
    np.testing.assert_array_equal(times, first.trace.seconds[: len(times)])


def test_any_cut_leaves_what_came_before_it(tmp_path, recorded):
    path, alone = tmp_path / "run.ckpt", solve(small())
    solve(small(), checkpoint=path)
    whole = path.read_bytes()
    for length in (0, 1, 25, 400, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        assert same(alone, solve(small(), checkpoint=path))
        assert len(path.read_bytes()) == len(whole)


def test_a_changed_byte_drops_what_comes_after_it(tmp_path, recorded, monkeypatch):
    path, alone = tmp_path / "run.ckpt", solve(small())
    solve(small(), checkpoint=path)
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 1
    path.write_bytes(whole)
    with counted(monkeypatch) as done:
        assert same(alone, solve(small(), checkpoint=path))
    assert done


@formulation
def declared(u):
    import cvxpy as cp

    return cp.sum(u) + 0.1 * cp.sum_squares(u)


@pytest.mark.parametrize(
    "problem, options, said",
    [
        (lambda: small(C=3.0), {}, "its C was 10.0, now it is 3.0"),
        (lambda: small(form=LpNorm(2)), {}, "its formulation was"),
        (lambda: small(form=declared), {"solver": "spicy"}, "its formulation differs"),
        (lambda: small().with_(loss="logistic"), {}, "its loss was"),
        (lambda: small().with_(bias=False), {}, "its bias was True, now it is False"),
        (lambda: small(K=2 * subset_gaussians(60, 12)[0]), {}, "its kernels differ"),
        (lambda: small().with_(y=-small().y), {}, "its labels differ"),
        (small, {"seed": 1}, "its seed was 0, now it is 1"),
        (small, {"solver": "silp"}, "its solver was 'analytic', now it is 'silp'"),
        (small, {"start": (np.ones(12), np.zeros(60))}, "its start was None"),
        (small, {"accelerate": "anderson"}, "its option accelerate was 'newton'"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(problem, options, said, tmp_path):
    path = tmp_path / "run.ckpt"
    solve(small(), "analytic", tol=1e-2, checkpoint=path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="is of another run") as error:
        solve(problem(), **{"solver": "analytic", **options}, checkpoint=path)
    assert said in str(error.value) and "\n" not in str(error.value)
    assert path.read_bytes() == before


def test_an_option_may_be_given_as_its_default(tmp_path, recorded):
    path = tmp_path / "run.ckpt"
    first = solve(small(), "analytic", accelerate="newton", checkpoint=path)
    assert same(first, solve(small(), "analytic", checkpoint=path))
    with pytest.raises(ValueError, match="accelerate was 'newton', now it is None"):
        solve(small(), "analytic", accelerate=None, checkpoint=path)


def test_a_checkpoint_of_another_version_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "run.ckpt"
    solve(small(), tol=1e-2, checkpoint=path)
    monkeypatch.setattr(checkpoint, "version", lambda name: "99.0")
    with pytest.raises(ValueError, match=r"its version of numpy was .* '99\.0'"):
        solve(small(), tol=1e-2, checkpoint=path)


def test_results_as_starts_are_told_apart():
    one, two = solve(small(), tol=1e-2), solve(small(), tol=1e-6)
    names = [checkpoint.identity(small(), {"start": s})["start"] for s in (one, two)]
    assert names[0] != names[1]
    again = solve(small(), tol=1e-2)
    assert checkpoint.identity(small(), {"start": again})["start"] == names[0]


def test_functions_as_options_have_the_same_name_in_every_process():
    names = [
        checkpoint.identity(small(), {"option f": f})["option f"]
        for f in (small, sparse, random.Random(0), random.Random(0))
    ]
    assert names[0] != names[1] and names[2] == names[3]


def test_a_full_disk_ends_the_record_and_not_the_run(tmp_path, recorded):
    with (
        small_disk(tmp_path / "disk", "64k"),
        pytest.warns(RuntimeWarning, match="cannot be written any more"),
    ):
        found = solve(small(), checkpoint=tmp_path / "disk" / "run.ckpt")
    assert same(found, solve(small()))


def test_the_clock_goes_on_to_the_time_of_an_answer_and_never_back(tmp_path):
    clock = Clock()
    clock.move_to(100.0)
    first = checkpoint.Checkpoint(tmp_path / "a", {}, clock)
    first.keep(b"1" * 16, np.ones(3), took=1.0)
    first.log.close()
    clock.move_to(0.0)
    second = checkpoint.Checkpoint(tmp_path / "a", {}, clock)
    assert second.answer(b"2" * 16) is None and clock.seconds < 50
    np.testing.assert_array_equal(second.answer(b"1" * 16), np.ones(3))
    assert 100 <= clock.seconds < 150
    clock.move_to(200.0)
    second.answer(b"1" * 16)
    assert clock.seconds >= 200
    second.log.close()


def test_what_is_cheap_or_large_is_not_recorded(tmp_path):
    clock = Clock()
    kept = checkpoint.Checkpoint(tmp_path / "a", {}, clock)
    begins = kept.log.end
    kept.keep(b"1" * 16, np.ones(10), took=0.01)
    kept.keep(b"2" * 16, np.ones(10**6), took=0.1)
    assert kept.log.end == begins
    kept.keep(b"3" * 16, np.ones(10), took=0.1)
    assert kept.log.end > begins
    kept.log.close()


def test_the_file_has_a_largest_size(tmp_path, recorded, monkeypatch):
    monkeypatch.setattr(checkpoint, "MAX_BYTES", 20_000)
    path = tmp_path / "run.ckpt"
    first = solve(small(), checkpoint=path)
    assert path.stat().st_size < 21_000
    assert same(first, solve(small(), checkpoint=path))


def test_lazy_and_part_stacks_and_factors(tmp_path, recorded):
    X, y = np.random.default_rng(0).normal(size=(700, 3)), np.tile([1.0, -1.0], 350)
    family = kernels.gaussians([1, 3])
    parts = [
        lambda: LazyStack(X, family),
        lambda: GramStack(subset_gaussians(60, 12)[0]).subset(np.arange(5)),
        lambda: GramStack.from_factors([X[:, :1], X]),
    ]
    for k, make in enumerate(parts):
        path = tmp_path / f"{k}.ckpt"
        alone, first, second = (
            solve(
                Problem(stack, y[: stack.n], "hinge", LpNorm(2)),
                tol=1e-4,
                checkpoint=given,
            )
            for stack, given in [(make(), None), (make(), path), (make(), path)]
        )
        assert same(alone, first) and same(alone, second)
        assert path.stat().st_size > 2000


def test_what_is_recorded_can_be_sent_to_other_processes(tmp_path):
    import pickle

    stack = small().grams
    kept = checkpoint.Checkpoint(tmp_path / "a", {}, Clock())
    with stack.asking(lambda store: checkpoint.Recorded(store, kept)):
        sent = pickle.loads(pickle.dumps(stack))
    kept.log.close()
    np.testing.assert_array_equal(sent.quad(np.ones(60)), stack.quad(np.ones(60)))


def test_what_a_streaming_stack_measures_on_its_way_is_recorded(tmp_path, monkeypatch):
    """Bounds of λ_max come from the first sweep; they are not computed again."""
    monkeypatch.setattr(checkpoint, "LEAST_NUMBERS", 0)
    monkeypatch.setattr(checkpoint, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "RATE", np.inf)
    X = np.random.default_rng(3).normal(size=(30, 4))
    fitted = kernels.subset_gaussians(40).fit(X, "unit_trace")
    y, sizes = np.sign(X[:, 0]), []
    for _ in range(2):  # the second process finds everything in the file
        problem = Problem(fitted.lazy(cache=0), y, "hinge", LpNorm(1.0), 10.0)
        solve(problem, checkpoint=tmp_path / "run")
        assert problem.grams._store.squares is not None
        sizes.append(problem.grams._store.root_sizes)
    np.testing.assert_array_equal(*sizes)
    assert problem.grams.identity() == fitted.lazy().identity()
    assert problem.grams.identity() != fitted[:39].lazy().identity()


def test_epochs_on_the_fly_go_on_with_the_same_bits(tmp_path, recorded):
    """Rows at few samples are not recorded: they are computed again."""
    X = np.random.default_rng(3).normal(size=(80, 4)) + 1.0
    y = np.where(X[:, 0] > 1, 1.0, -1.0)
    family = kernels.gaussians([1, 3]) + kernels.polynomials([2])

    def run(**options):
        grams = family.fit(X, normalize="spherical").lazy("0")
        assert grams.sample_rows() is not None
        p = Problem(grams, y, "hinge", BlockNorm(1.5), C=1.0, bias=False)
        return solve(p, "obscure", tol=0.0, T1=2, T2=4, **options)

    path = tmp_path / "run.checkpoint"
    run(checkpoint=path, max_iter=3)
    plain, again = bits(run()), bits(run(checkpoint=path))
    for name, value in plain.items():
        assert np.array_equal(again[name], value), name
