"""What operators derived from a declaration cost: `make bench NAME=operators`.

Processor milliseconds of value, conjugate, weights and prox (one step for all kernels,
one step for each) of declarations without any closed form; the best of five, after a
first call that is not counted. At M = 100 none may take more than 20 ms. Only owl has
closed forms, and is shown without them, too.

    python -m benchmarks operators --kernels 20
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from benchmarks import harness
from mklopt.formulations import Formulation, formulations, gallery, stripped
from mklopt.util.tables import plain_table

LIMIT = 20.0  # milliseconds
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
    """The least processor time in milliseconds, after a first call."""
    call()
    seconds = []
    for _ in range(times):
        start = time.process_time()
        call()
        seconds.append(time.process_time() - start)
    return 1e3 * min(seconds)


def measured(formulation: Formulation, M: int) -> list[float]:
    """Milliseconds of each operator at one random point."""
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


def main() -> None:
    """All formulations, and which of them are too slow."""
    parser = harness.parser(__doc__)
    parser.add_argument("--kernels", type=harness.positive, default=100, metavar="M")
    M = parser.parse_args().kernels
    table = plain_table(f"processor milliseconds, M = {M}", ["formulation"], OPERATORS)
    slow = []
    for name, formulation in cases(M).items():
        found = measured(formulation, M)
        table.add_row(name, *(f"{ms:.1f}" for ms in found))
        slow += [name] if max(found) > LIMIT else []
    line = f"formulations above {LIMIT:g} ms: {', '.join(slow) or 'none'}"
    lines = [harness.verdict(not slow, line)]
    harness.report(harness.console(), "operators", __doc__, [table], lines)


if __name__ == "__main__":
    main()
