"""What derived operators cost: `python -m mklopt.bench_operators [M]`.

Processor milliseconds of value, conjugate, weights and prox (one step for all kernels,
one step for each) of declarations without any closed form, after the first call, the
best of five; the bar is 20 ms at M = 100. Only owl has closed forms, and is shown
without them, too.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
from rich.console import Console

from mklopt.formulations import Formulation, formulations, gallery, stripped
from mklopt.util.tables import plain_table

BAR = 20.0  # milliseconds
OPERATORS = ("value", "conjugate", "weights", "prox", "prox, M steps")


def cases(M: int) -> dict[str, Formulation]:
    """Every formulation without its closed forms, and the worked examples."""
    known = {
        name: stripped(kind.examples(M)[0]) for name, kind in formulations().items()
    }
    fives = [range(i, min(i + 5, M)) for i in range(0, M, 5)]
    eights = [range(i, min(i + 8, M)) for i in range(0, M, 5)]
    return {
        **known,
        "k_support": gallery.k_support(5),
        "owl": gallery.owl(np.linspace(1, 0.1, M)),
        "owl, derived": stripped(gallery.owl(np.linspace(1, 0.1, M))),
        "sparse_group": gallery.sparse_group(fives),
        "latent_groups": gallery.latent_groups(eights),
        "log_barrier": gallery.log_barrier(),
        "prior_l1": gallery.prior_l1(1 + np.arange(M)),
    }


def best_of(call: Callable[[], object], times: int = 5) -> float:
    call()
    seconds = []
    for _ in range(times):
        start = time.process_time()
        call()
        seconds.append(time.process_time() - start)
    return 1e3 * min(seconds)


def measured(formulation: Formulation, M: int) -> list[float]:
    rng = np.random.default_rng(0)
    u, steps = rng.uniform(0, 1, M), rng.uniform(0.25, 1, M)
    v = 0.9 * formulation.epigraph(M).subgradient(u + 0.1)
    calls: tuple[Callable[[], object], ...] = (
        lambda: formulation.value(u),
        lambda: formulation.conjugate(v),
        lambda: formulation.weights(u + 0.1),
        lambda: formulation.prox(u, 0.5),
        lambda: formulation.prox(u, steps),
    )
    return [best_of(call) for call in calls]


def main(M: int = 100) -> None:
    table = plain_table(f"processor milliseconds, M = {M}", ["formulation"], OPERATORS)
    slow = []
    for name, formulation in cases(M).items():
        found = measured(formulation, M)
        table.add_row(name, *(f"{ms:.1f}" for ms in found))
        slow += [name] if max(found) > BAR else []
    console = Console()
    console.print(table)
    console.print(f"above {BAR:g} ms: {', '.join(slow) or 'none'}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
