"""The contract problems: small, exact, the same bits on every machine.

Kernels are K_m = L_m L_mᵀ with L_m on the grid 2⁻¹², stored as 16-bit integers: the
products are exact in float64 and positive semi-definite by construction.

    small   n = 40, M = 6: every formulation × every loss at C = 1
    wdbc    n = 100, M = 20, Wisconsin breast cancer (from scikit-learn), Gaussians on
            all and on single features: ten formulations × three losses × four C
    twonorm n = 60, M = 20, Breiman's two Gaussians: what the solvers are judged on, all
            losses × C in {0.1, 1, 100}, with and without bias; VSKL with one, three
            and M groups × q from 1 to ∞; CKL; two and three classes without a bias for
            solvers that go by samples

Their references are committed beside the data as candidates; tests certify them afresh.
tests/contract/make_references.py has made both (`make contract`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, product
from pathlib import Path

import numpy as np

from .. import formulations as F
from ..formulations import Formulation, Loss, formulations, losses_by_name
from ..grams.stack import GramStack
from ..problem import Problem
from .store import Store

FOLDER = Path(__file__).parent / "stored"
GRID = 2.0**-12
INF = float("inf")
STORE = Store(FOLDER)
DATA = ("small", "wdbc", "twonorm")


def _ranges(*ends: int) -> tuple[tuple[int, ...], ...]:
    """Kernels 0 … 19 cut into groups of neighbours."""
    return tuple(tuple(range(a, b)) for a, b in pairwise((0, *ends, 20)))


GROUPS = _ranges(5, 8, 14)
GROUPINGS = {  # of 20 kernels: classical sparse MKL, three views, every kernel its own
    "one": _ranges(),
    "three": _ranges(4, 12),
    "all": _ranges(*range(1, 20)),
}


@dataclass(frozen=True)
class Cell:
    """One contract problem: the data by name, Ω, V, C, and whether there is a bias."""

    data: str
    formulation: Formulation
    loss: Loss
    C: float
    bias: bool | None = None  # None: wherever the loss allows one

    @property
    def name(self) -> str:
        """A name that tells every cell from every other one."""
        bias = "" if self.bias is None else f"-bias={self.bias}"
        return f"{self.data}-{self.formulation!r}-{self.loss!r}-C{self.C:g}{bias}"

    def problem(self) -> Problem:
        """The problem itself, on the stored kernels."""
        grams, targets = load(self.data)
        bias = self.loss.bias_allowed if self.bias is None else self.bias
        y = targets[self.loss.labels]
        return Problem(grams, y, self.loss, self.formulation, self.C, bias)


def small_cells() -> Iterator[Cell]:
    """Every example of every formulation with every example of every loss."""
    losses = [loss for kind in losses_by_name().values() for loss in kind.examples()]
    omegas = [omega for kind in formulations().values() for omega in kind.examples(6)]
    for loss, formulation in product(losses, omegas):
        yield Cell("small", formulation, loss, 1.0)


def wdbc_cells() -> Iterator[Cell]:
    """The formulations of the papers on real data over four orders of C."""
    papers = [
        F.GroupLasso(), F.BlockL1(), F.LpNorm(4 / 3), F.LpNorm(2.0), F.LpNorm(4.0),
        F.Ivanov(4 / 3), F.Tikhonov(4 / 3, 1.0),
        F.VSKL(GROUPS, 1.0), F.VSKL(GROUPS, 2.0), F.VSKL(GROUPS, INF),
    ]  # fmt: skip
    known = losses_by_name()
    losses, Cs = ("hinge", "logistic", "squared"), (0.1, 1.0, 10.0, 100.0)
    for formulation, loss, C in product(papers, losses, Cs):
        yield Cell("wdbc", formulation, known[loss](), C)


def twonorm_cells() -> Iterator[Cell]:
    """Every trait a solver may need, on all losses."""
    balls = [F.LpNorm(p) for p in (1.0, 1.01, 4 / 3, 2.0, 4.0, 64.0, INF)]
    others = [
        F.BlockNorm(3.0), F.BlockNorm(INF), F.GroupLasso(), F.ElasticNet(0.5),
        F.Tikhonov(4 / 3, 1.0), F.Composite(GROUPS, 1.0, 1.5), F.VSKL(GROUPS, 1.0),
        F.WeightedLpNorm(2.0, tuple(1.0 + m / 4 for m in range(20))),
    ]  # fmt: skip
    both = [balls[0], balls[3]]
    for C in (0.1, 1.0, 100.0):
        yield from _twonorm("hinge eps_insensitive", [*balls, *others], C)
        # One class at C = 100 is C = 1 again: no bound is active. For q > 2 its f* is
        # so small that C times the round-off of the loss would show.
        some = others[2:] if C == 100 else others
        yield from _twonorm("one_class", [*balls, *some], C)
        yield from _twonorm("squared huber quantile", [*balls[::2], others[2]], C)
        yield from _twonorm("logistic", [*balls, *others], C)
        yield from _twonorm("multinomial", [*both, *others[2:4], *others[5:7]], C)
        yield from _twonorm("hinge eps_insensitive squared", balls[:-1], C, bias=False)
        yield from _twonorm("multiclass_hinge", [*both, others[0], others[5]], C)
        # p = 1.01 at C = 100: interior points end at 8.5e-8, which is no reference.
        near = [*balls[: 1 if C == 100 else 2], *balls[2:4], balls[-1]]
        some = [*near, others[2], others[6]]
        yield from _twonorm("multiclass_hinge", some, C, bias=False)


def _twonorm(
    losses: str, some: Sequence[Formulation], C: float, bias: bool | None = None
) -> Iterator[Cell]:
    """Each of the losses with each of the formulations."""
    for name in losses.split():
        for formulation in some:
            yield Cell("twonorm", formulation, losses_by_name()[name](), C, bias)


def grouped_cells() -> Iterator[Cell]:
    """Variable sparsity from end to end, and CKL beside it: hinge."""
    hinge, three = losses_by_name()["hinge"](), GROUPINGS["three"]
    qs = (1.0, 1.5, 2.0, 3.0, INF)
    found = [F.VSKL(groups, q) for groups in GROUPINGS.values() for q in qs]
    sparse = ((1.0, 1.0), (1.0, 1.98), (4 / 3, 1.0), (1.5, 1.5))
    for formulation in (*found, *(F.Composite(three, r, s) for r, s in sparse)):
        for C in (0.1, 1.0, 100.0):
            yield Cell("twonorm", formulation, hinge, C)


def sampled_cells() -> Iterator[Cell]:
    """No bias, for stochastic solvers: several outputs, sparse or strongly convex."""
    block = F.BlockNorm(1.5)
    strongly_convex = [F.SparseBlockNorm(1.5, 0.3), F.ElasticNet(0.5), block]
    several = [F.BlockNorm(1.1), strongly_convex[0], block]
    for C in (0.1, 1.0, 100.0):
        yield from _twonorm("multiclass_hinge multinomial", several, C, bias=False)
        names = "hinge logistic huber quantile" if C <= 1 else ""
        yield from _twonorm(names, strongly_convex, C, bias=False)


def cells() -> list[Cell]:
    """All contract problems."""
    kinds = (small_cells, wdbc_cells, twonorm_cells, grouped_cells, sampled_cells)
    return [cell for kind in kinds for cell in kind()]


@lru_cache(maxsize=8)
def load(name: str) -> tuple[GramStack, dict[str, np.ndarray]]:
    """The kernels and the targets for each kind of label."""
    with np.load(FOLDER / f"{name}.npz") as stored:
        ranks = np.cumsum(stored["ranks"])[:-1]
        factors = np.split(stored["factors"].astype(float) * GRID, ranks, axis=1)
        targets = {k[2:]: stored[k] for k in stored.files if k.startswith("y_")}
    return GramStack.from_factors(factors), targets
