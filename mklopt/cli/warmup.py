"""The command `mklopt warmup`: everything compiled now, so that nobody waits later."""

import os
from collections.abc import Iterator
from typing import Any

import click
import numpy as np

from .words import AS_JSON, echo_json


@click.command("warmup", epilog="Example: mklopt warmup")
@AS_JSON
def command(as_json: bool) -> None:
    """Compile everything that the default solvers use.

    Without it the first solve compiles what it uses. Exit code 0: the compiled code is
    kept for later starts; 1: it cannot be kept, because no folder for it can be
    written.
    """
    from ..util.compiled import NOTICED, TOLD, compilation, why_uncached

    os.environ.update({NOTICED: "1", TOLD: "1"})  # this command tells it itself
    from ..run.loop import solve

    for name, problems in steps():
        before = compilation.seconds
        click.echo(f"{name}: ", nl=False, err=as_json)
        for problem in problems:
            solve(problem, tol=1e-4, max_iter=20)
        click.echo(f"{compilation.seconds - before:.1f} s", err=as_json)
    count, seconds = compilation.count, compilation.seconds
    if as_json:
        kept = not why_uncached()
        echo_json({"functions": count, "seconds": seconds, "kept": kept})
    else:
        click.echo(f"{count} functions compiled in {seconds:.0f} s")
    if why := why_uncached():
        raise click.ClickException(
            f"they are not kept for the next start ({why}); set NUMBA_CACHE_DIR to a "
            "folder that can be written"
        )


def steps() -> Iterator[tuple[str, Iterator[Any]]]:
    """Names of steps, and small problems that use what each step compiles."""
    from ..formulations import BlockL1, LpNorm, formulations, losses_by_name
    from ..grams.stack import GramStack
    from ..kernels import rakotomamonjy
    from ..problem import Problem
    from ..reference.contract_problems import load

    targets = load("small")[1]
    labels = targets["binary"]
    X = np.random.default_rng(0).normal(size=(len(labels), 2))
    fitted = rakotomamonjy().fit(X, "spherical")

    def from_points_and_matrices() -> Iterator[Problem]:
        matrices = GramStack(np.stack(list(fitted)))
        fitted.cross(X)
        for grams in (fitted.grams(), matrices):
            yield Problem(grams, labels, "hinge", LpNorm(2.0))

    def losses() -> Iterator[Problem]:
        factors = GramStack.from_factors([X, X[:, :1], X[:, 1:]])
        packed = fitted.grams()
        for grams in (packed, packed.full(), fitted.lazy(), factors):
            for loss in (kind.examples()[0] for kind in losses_by_name().values()):
                y, bias = targets[loss.labels], loss.bias_allowed
                yield Problem(grams, y, loss, LpNorm(2.0), bias=bias)
                yield Problem(grams, y, loss, BlockL1(), bias=bias)

    def regularizers() -> Iterator[Problem]:
        grams = fitted.grams()
        for kind in formulations().values():
            yield Problem(grams, labels, "hinge", kind.examples(grams.M)[0])

    yield "kernels", from_points_and_matrices()
    yield "losses", losses()
    yield "formulations", regularizers()
