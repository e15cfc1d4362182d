"""Kernels on the workers of a Dask cluster: `make bench NAME=cluster`.

Sonar (in the folder MKLOPT_DATA) with Gaussian kernels on random subsets of features,
unit trace, computed by single-threaded workers on this machine when they are needed.
The same operations with one worker and with two, in turns; a solve of ℓ1, hinge,
C = 100, to 1e-3, undisturbed and with a worker killed (kill −9) at random moments; the
bytes that this process sends and receives, counted at its sockets, beside those of the
cost model.

    python -m benchmarks cluster --kernels 3000 --kills 2        # a shorter run
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from distributed import Client
from distributed.comm import tcp
from rich.table import Table

from benchmarks import harness
from mklopt import ClusterStack, data, kernels
from mklopt.formulations.lp_norm import LpNorm
from mklopt.kernels.cluster.traffic import OVERHEAD_RECEIVED, OVERHEAD_SENT, size
from mklopt.problem import Problem
from mklopt.run.loop import solve
from mklopt.util.tables import plain_table

SPEED_UP, TRAFFIC = 1.7, 1.3
LOCAL = ("--host", "127.0.0.1", "--no-dashboard")


# ---- processes -----------------------------------------------------------------------


def program(name: str, *words: str) -> subprocess.Popen:
    """A program of Dask in a process of its own, with one thread."""
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    return subprocess.Popen(
        [sys.executable, "-m", f"distributed.cli.{name}", *words, *LOCAL],
        env={**os.environ, **one},
        stderr=subprocess.PIPE if name == "dask_scheduler" else subprocess.DEVNULL,
        text=True,
    )


@contextmanager
def started(workers: int) -> Iterator[Client]:
    """A scheduler, and workers that come back when they are killed."""
    scheduler = program("dask_scheduler", "--port", "0")
    lines: Any = scheduler.stderr
    address = next(line for line in lines if "Scheduler at:" in line).split()[-1]
    threading.Thread(target=list, args=[lines], daemon=True).start()
    single = ("--nthreads", "1", "--memory-limit", "0")
    nannies = [program("dask_worker", address, *single) for _ in range(workers)]
    try:
        with Client(address, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=60)
            yield client
    finally:
        for process in (*nannies, scheduler):
            process.terminate()
        for process in (*nannies, scheduler):
            process.wait(30)


@dataclass
class Sockets:
    """The bytes that this process sent to and received from others."""

    sent: int = 0
    received: int = 0
    _patched: list = field(default_factory=list)

    def __enter__(self) -> Sockets:
        write, read = tcp.TCP.write, tcp.read_bytes_rw

        async def writing(comm: Any, *given: Any, **how: Any) -> int:
            count = await write(comm, *given, **how)
            self.sent += count
            return count

        async def reading(stream: Any, count: int) -> Any:
            self.received += count
            return await read(stream, count)

        self._patched = [write, read]
        tcp.TCP.write, tcp.read_bytes_rw = writing, reading  # type: ignore[assignment, method-assign]
        return self

    def __exit__(self, *error: object) -> None:
        tcp.TCP.write, tcp.read_bytes_rw = self._patched  # type: ignore[method-assign]


# ---- what is measured ----------------------------------------------------------------


def fitted_kernels(M: int) -> tuple[kernels.FittedKernels, np.ndarray]:
    """Gaussians on subsets of the features of sonar, and its labels."""
    sonar = data.load("sonar").standardized()
    family = kernels.subset_gaussians(M)
    return family.fit(sonar.X, normalize="unit_trace"), sonar.y


def operations(stack: ClusterStack) -> dict[str, Callable[[], object]]:
    """Operations on all kernels; nothing is remembered."""
    rng = np.random.default_rng(0)
    alpha, theta = rng.normal(size=stack.n), rng.random(stack.M)

    def fresh(operation: Callable, given: np.ndarray) -> object:
        stack.forget()
        return operation(given)

    return {
        "quad": lambda: fresh(stack.quad, alpha),
        "combine": lambda: fresh(stack.combine, theta),
    }


def speed(stacks: list[ClusterStack], rounds: int) -> tuple[Table, list[str]]:
    """Operations with one worker and with two, in turns."""
    table = plain_table("seconds", ["operation"], ["one worker", "two", "ratio"])
    lines = []
    for name in operations(stacks[0]):
        calls = [operations(stack)[name] for stack in stacks]
        for call in calls:
            call()  # compiled, and blocks made
        one, two = harness.medians(*calls, rounds=rounds)
        table.add_row(name, f"{one:.2f}", f"{two:.2f}", f"{one / two:.2f}")
        line = f"{name}: two workers {one / two:.2f} ≥ {SPEED_UP:g} times faster"
        lines.append(harness.verdict(one / two >= SPEED_UP, line))
    return table, lines


def traffic(stack: ClusterStack, calls: int = 3) -> tuple[Table, list[str]]:
    """The bytes at the sockets of this process beside those of the model."""
    columns = ["sent", "model", "received", "model", "with Dask's messages", "ratio"]
    table, lines = plain_table("bytes of this process", ["operation"], columns), []
    for name, call in operations(stack).items():
        stack.traffic.clear()
        with Sockets() as sockets:
            for _ in range(calls):
                call()
        model, moved = stack.traffic.total, sockets.sent + sockets.received
        own = model.tasks * (OVERHEAD_SENT + OVERHEAD_RECEIVED)
        whole = model.model_sent + model.model_received + own
        row = (sockets.sent, model.model_sent, sockets.received, model.model_received)
        ratio = moved / whole
        table.add_row(name, *(size(x / calls) for x in (*row, whole)), f"{ratio:.2f}")
        line = f"{name}: traffic {ratio:.2f} times the model, between 1/1.3 and 1.3"
        lines.append(harness.verdict(1 / TRAFFIC <= ratio <= TRAFFIC, line))
    return table, lines


def bits(stack: ClusterStack, y: np.ndarray) -> tuple[Any, ...]:
    """A certified result, as bits."""
    problem = Problem(stack, y, "hinge", LpNorm(p=1.0), 100.0)
    result = solve(problem, tol=1e-3)
    ends = (result.certificate.lower, result.certificate.upper)
    return result.status, result.dual.tobytes(), result.weights.tobytes(), ends


def killed(client: Client, stack: ClusterStack, y: np.ndarray, kills: int) -> list[str]:
    """Solves with a worker killed at a random moment of each."""
    expected, took = harness.timed(lambda: bits(stack, y))
    rng, same, hit = np.random.default_rng(0), 0, 0
    for _ in range(kills):
        before = set(client.run(os.getpid).values())
        victim = int(rng.choice(sorted(before)))
        moment = float(rng.uniform(0.05, 0.9) * took)
        killer = threading.Timer(moment, os.kill, [victim, signal.SIGKILL])
        killer.start()
        found = bits(stack, y)
        hit += not killer.is_alive()
        killer.join()
        same += found == expected
        client.wait_for_workers(len(before), timeout=60)
    line = f"{same} of {kills} solves with a worker killed have the same bits"
    line += f" ({hit} kills came during the solve, which takes {took:.1f} s)"
    return [harness.verdict(same == kills == hit, line)]


@harness.needs_data
def main() -> None:
    """Speed, failures, traffic."""
    parser = harness.parser(__doc__)
    count = harness.positive
    parser.add_argument("--kernels", type=count, default=100_000, help="M")
    parser.add_argument("--rounds", type=count, default=5, help="of each operation")
    parser.add_argument("--kills", type=count, default=5, help="of a worker")
    given = parser.parse_args()
    fitted, y = fitted_kernels(given.kernels)
    with ExitStack() as open_until_the_end:
        clients = [open_until_the_end.enter_context(started(w)) for w in (1, 2)]
        stacks = [ClusterStack(client, fitted, storage="lazy") for client in clients]
        faster, lines = speed(stacks, given.rounds)
        moved, more = traffic(stacks[1])
        lines += [*more, *killed(clients[1], stacks[1], y, given.kills)]
    time.sleep(0.1)  # the last words of Dask's threads
    title = f"n = {fitted.n}, M = {given.kernels}"
    faster.title, moved.title = f"{title}: seconds", f"{title}: bytes"
    harness.report(harness.console(130), "cluster", __doc__, [faster, moved], lines)


if __name__ == "__main__":
    main()
