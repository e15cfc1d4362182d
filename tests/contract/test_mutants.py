"""Planted bugs: the kit catches every one, and names most.

A mutant is the source of our own solvers with one or two lines edited. A solver and all
that it imports from its room are loaded anew under the same names for a moment, so that
copies refer to copies alone, whatever was imported before. An edit that no longer
applies, or of a module that the solver does not import, fails. `make test` runs a slice
on easy problems, `make test-all` all of them on all; run as a script, this file prints
the table of mutants and diagnoses.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from itertools import pairwise
from types import ModuleType
from typing import Any
from unittest import mock

import pytest

from mklopt import check_solver
from mklopt import solvers as room
from mklopt.formulations import VSKL, BlockL1, GroupLasso, LpNorm
from mklopt.judge.exam.exam import SolverReport
from mklopt.solvers import Solver, machines, steps
from mklopt.solvers.base import REGISTRY
from mklopt.util import compiled as compiled_loops

REPAIRED = "self._moved(exact_point(self.problem, alpha))"  # hides an infeasible α
RAW = {"machine": [(REPAIRED, "self._moved(alpha)")]}
SHOWN = "return Iterate(self.point, self.theta, info"

Edits = dict[str, list[tuple[str, str]]]  # by module: what becomes what


class Copies(MetaPathFinder):
    """Modules of the solvers from their sources, with these edits."""

    def __init__(self, genuine: dict[str, ModuleType], edits: Edits):
        self.genuine, self.edits = genuine, edits

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if name not in self.genuine:
            return None
        original = self.genuine[name]
        edits = self.edits.get(name.rpartition(".")[2], [])
        loader = Copy(original, edits)
        return spec_from_file_location(name, loader.path, loader=loader)


class Copy(SourceFileLoader):
    """One module from its source, never from bytecode."""

    def __init__(self, original: ModuleType, edits: list[tuple[str, str]]):
        super().__init__(original.__name__, str(original.__file__))
        self.original, self.edits = original, edits

    def get_code(self, fullname: str) -> Any:
        source = self.get_source(fullname)
        assert source is not None
        for old, new in self.edits:
            assert source.count(old) == 1, f"{old!r} is not one line of {fullname}"
            source = source.replace(old, new)
        return compile(source, self.path, "exec")

    def exec_module(self, module: ModuleType) -> None:
        with mock.patch.object(
            compiled_loops, "compiled", compiled_before(self.original)
        ):
            super().exec_module(module)


def compiled_before(original: ModuleType) -> Callable:
    """In place of numba: what it has compiled already; compiled lines stay unedited."""
    return lambda *a, **k: lambda function: getattr(original, function.__name__)


ROOMS = (room, machines, steps)


def with_edits(solver: str, edits: Edits) -> Solver:
    """A solver from copies of itself and of all it imports from its rooms, but base."""
    importlib.import_module(f"{room.__name__}.{solver}")
    kept = {f"{room.__name__}.base", *(place.__name__ for place in ROOMS)}
    genuine = {
        k: m
        for k, m in sys.modules.items()
        if k.startswith(f"{room.__name__}.") and k not in kept
    }
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.dict(sys.modules))
        stack.enter_context(mock.patch.dict(REGISTRY))
        for place in ROOMS:
            stack.enter_context(mock.patch.dict(vars(place)))
        finders = [Copies(genuine, edits), *sys.meta_path]
        stack.enter_context(mock.patch.object(sys, "meta_path", finders))
        for name in genuine:
            del sys.modules[name]
            parent, _, own = name.rpartition(".")
            vars(sys.modules[parent]).pop(own, None)
        importlib.import_module(f"{room.__name__}.{solver}")
        loaded = {n.rpartition(".")[2] for n in sys.modules if n in genuine}
        assert set(edits) <= loaded, f"{solver} does not import {set(edits) - loaded}"
        return REGISTRY[solver]


@dataclass(frozen=True)
class Mutant:
    """A planted bug: which lines become which, and what it should be called."""

    name: str
    kinds: str  # of diagnosis that name it rightly, separated by |
    solver: str
    edits: Edits
    formulation: Any = field(default_factory=lambda: LpNorm(2.0))
    loss: str = "hinge"
    quick: bool = False  # whether `make test` tries it
    tol: float | None = None

    def check(self, **asked: Any) -> SolverReport:
        what = {"formulations": [self.formulation], "losses": [self.loss]}
        return check_solver(self.load(), tol=self.tol, time_limit=6.0, **what, **asked)

    def load(self) -> Solver:
        return with_edits(self.solver, self.edits)


def analytic(name: str, kinds: str, edits: Edits, **more: Any) -> Mutant:
    return Mutant(name, kinds, "analytic", edits, **more)


def in_the_machine(*pairs: tuple[str, str]) -> Edits:
    """Edits of the inner machine, and none of the repair that would hide them."""
    return {"svm": list(pairs), **RAW}


FIRST_ALPHA = "    alpha = np.zeros(len(K)) if start is None else np.array(start)\n"
QUADRATIC = "    dual = quadratic_dual(problem)\n    if"
ROOTS = "plain = problem.formulation.reweight(theta, machine.v, slack)"
PLAIN = ('accelerate: str | None = "newton"', "accelerate: str | None = None")
MISNAMED = {"gradient with the wrong sign"}  # nothing is left to recognize it by


def grouped(M: int) -> Any:
    """Groups of unequal sizes for any number of kernels, q = 2."""
    ends = sorted({0, 1, M // 2, M})
    return VSKL(tuple(tuple(range(a, b)) for a, b in pairwise(ends)), 2.0)


def costs(text: str) -> tuple[str, str]:
    other = f"problem.loss.quadratic(problem.y, {text})"
    return QUADRATIC, QUADRATIC.replace("quadratic_dual(problem)", other)


MUTANTS = [
    analytic(
        "C divided by n",
        "other C",
        in_the_machine(costs("problem.costs / len(problem.y)")),
        quick=True,
    ),
    analytic(
        "C times n",
        "other C",
        in_the_machine(
            costs("problem.costs * len(problem.y)"),
            (
                "domain.restore(alpha, problem.costs,",
                "domain.restore(alpha, problem.costs * len(problem.y),",
            ),
        ),
    ),
    analytic(
        "bias forgotten",
        "bias missing",
        in_the_machine(
            (
                "domain.restore(alpha, problem.costs, problem.bias)",
                "domain.restore(alpha, problem.costs, False)",
            ),
            ("SMO(K, dual, problem.bias, alpha)", "SMO(K, dual, False, alpha)"),
        ),
        quick=True,
    ),
    analytic(
        "bounds of α forgotten",
        "other C|dual infeasible",
        in_the_machine(
            (
                FIRST_ALPHA,
                "    dual = dual._replace(low=np.minimum(1e3 * dual.low, 0),"
                f" high=1e3 * dual.high)\n{FIRST_ALPHA}",
            ),
            (
                "domain.restore(alpha, problem.costs, problem.bias)",
                "domain.restore(alpha, 1e3 * problem.costs, problem.bias)",
            ),
        ),
    ),
    analytic(
        "dual not centred",
        "dual infeasible",
        {
            "machine": [
                (
                    SHOWN,
                    SHOWN.replace(
                        "self.point,", "self.point + 0.01 * self.problem.costs,"
                    ),
                )
            ]
        },
        quick=True,
    ),
    analytic(
        "label sign dropped",
        "label sign dropped",
        {
            "machine": [
                (SHOWN, SHOWN.replace("self.point,", "self.problem.y * self.point,"))
            ]
        },
        quick=True,
    ),
    analytic(
        "sign of α reversed",
        "sign reversed",
        {"machine": [(SHOWN, SHOWN.replace("self.point,", "-self.point,"))]},
    ),
    analytic(
        "weights scaled on the way out",
        "not normalized",
        {"machine": [(SHOWN, SHOWN.replace("self.theta", "2 * self.theta"))]},
        quick=True,
    ),
    analytic(
        "normalization forgotten",
        "not normalized",
        {"analytic": [PLAIN, (ROOTS, "plain = (theta * machine.v) ** (2 / 3)")]},
    ),
    analytic(
        "wrong exponent",
        "wrong weights|other formulation",
        {
            "analytic": [
                PLAIN,
                (
                    ROOTS,
                    "plain = (theta * machine.v) ** (1 / 3)\n"
                    "        plain = plain / np.linalg.norm(plain)",
                ),
            ]
        },
    ),
    analytic(
        "weights never updated",
        "wrong weights|other formulation",
        {"analytic": [(ROOTS, "plain = theta"), PLAIN]},
    ),
    analytic(
        "weights of the first iterate",
        "stale weights|weights not optimal",
        {
            "machine": [
                (
                    SHOWN,
                    "self.first = getattr(self, 'first', self.theta)\n        "
                    + SHOWN.replace("self.theta", "self.first"),
                )
            ]
        },
    ),
    analytic(
        "weights in reverse order",
        "weights permuted",
        {"machine": [(SHOWN, SHOWN.replace("self.theta", "self.theta[::-1]"))]},
        quick=True,
    ),
    analytic(
        "last kernel ignored",
        "kernel ignored",
        {
            "machine": [
                (
                    "self._v = self.problem.grams.norms(self.point, products)",
                    "self._v = self.problem.grams.norms(self.point, products)"
                    " * np.append("
                    "np.ones(self.problem.grams.M - 1), 0)",
                )
            ]
        },
        quick=True,
    ),
    analytic(
        "last sample ignored",
        "sample ignored",
        {
            "svm": [
                (
                    FIRST_ALPHA,
                    "    inside = np.arange(len(K)) < len(K) - 1\n"
                    "    dual = dual._replace(low=np.where(inside, dual.low, 0.0),"
                    f" high=np.where(inside, dual.high, 0.0))\n{FIRST_ALPHA}",
                )
            ]
        },
    ),
    analytic(
        "machine never sharpened",
        "stale dual|dual not optimal",
        {
            "machine": [
                ("        self.tol = self.sharpness", "        tol = self.sharpness")
            ]
        },
    ),
    analytic(
        "machine cut short",
        "stale dual|dual not optimal",
        {
            "svm": [
                (
                    "_solved(self.problem, K, self.alpha, self.tol, budget)",
                    "_solved(self.problem, K, None, self.tol, 20)",
                )
            ]
        },
    ),
    analytic(
        "new weights with the old α at the end",
        "stale dual|dual not optimal|stopped early",
        {
            "analytic": [
                PLAIN,
                (
                    "theta = ahead.step(theta, plain, certificate.relative_gap)",
                    "before, theta = theta, plain\n"
                    "        if np.max(np.abs(theta - before)) < 0.02:\n"
                    "            from .base import Iterate\n"
                    "            yield Iterate(machine.point, theta)\n"
                    "            return",
                ),
            ]
        },
    ),
    analytic(
        "C per sample replaced by its mean",
        "other C",
        in_the_machine(
            costs("np.full(len(problem.y), np.mean(problem.costs))"),
            (
                "domain.restore(alpha, problem.costs,",
                "domain.restore(alpha, np.mean(problem.costs) + 0 * problem.y,",
            ),
        ),
    ),
    analytic(
        "ε ignored",
        "other loss",
        {
            "svm": [
                (
                    FIRST_ALPHA,
                    "    dual = dual._replace(kink=0 * dual.kink)\n" + FIRST_ALPHA,
                )
            ]
        },
        loss="eps_insensitive",
    ),
    analytic(
        "float32 leak",
        "single precision",
        {
            "machine": [
                (
                    "self.K = self.problem.grams.combine(theta)",
                    "self.K = self.problem.grams.combine(theta)"
                    ".astype(np.float32).astype(float)",
                )
            ]
        },
        tol=1e-9,
    ),
    analytic(
        "float32 on the way out",
        "single precision",
        {
            "machine": [
                (
                    SHOWN,
                    SHOWN.replace(
                        "self.point, self.theta",
                        "self.point.astype(np.float32), self.theta.astype(np.float32)",
                    ),
                )
            ]
        },
        tol=1e-9,
    ),
    Mutant(
        "early stop",
        "stopped early",
        "hessian",
        {
            "weight_newton": [
                (
                    "    while True:\n        if not solved:",
                    "    for _ in range(3):\n        if not solved:",
                )
            ]
        },
        BlockL1(),
        quick=True,
    ),
    Mutant(
        "p taken for the exponent of the block norm",
        "other formulation",
        "smo_mkl",
        {
            "smo_mkl": [
                (
                    "dual_exponent(block_exponent(formulation.ball))",
                    "dual_exponent(formulation.ball)",
                )
            ]
        },
        LpNorm(4 / 3),
        quick=True,
    ),
    Mutant(
        "q taken for the exponent of the weights",
        "other formulation",
        "interleaved",
        {
            "interleaved": [
                (
                    "theta = problem.formulation.weights(",
                    "theta = type(problem.formulation)(4 / 3).weights(",
                )
            ]
        },
    ),
    Mutant(
        "wrong group index",
        "wrong groups",
        "mirror",
        {
            "simplex_oracle": [
                (
                    "self.owner = BlockNorm(2 * q), owners(groups)",
                    "self.owner = BlockNorm(2 * q), np.roll(owners(groups), 1)",
                )
            ]
        },
        grouped,
    ),
    Mutant(
        "one simplex for all groups",
        "wrong weights|not normalized|wrong groups",
        "mirror",
        {
            "mirror": [
                (
                    "return np.asarray(lam / oracle.sums(lam)[oracle.owner])",
                    "return np.asarray(lam / np.sum(lam))",
                ),
                ("polish: bool = True", "polish: bool = False"),
            ]
        },
        grouped,
    ),
    Mutant(
        "½ of the squared loss forgotten",
        "other C",
        "lbfgs",
        {
            "lbfgs": [
                ("0.5 * alpha @ (alpha / C) +", "0.25 * alpha @ (alpha / C) +"),
                ("slope = alpha / C - y", "slope = 0.5 * alpha / C - y"),
            ]
        },
        loss="squared",
    ),
    Mutant(
        "C and 1/C exchanged",
        "other C",
        "lbfgs",
        {
            "lbfgs": [
                ("0.5 * alpha @ (alpha / C) +", "0.5 * alpha @ (alpha * C) +"),
                ("slope = alpha / C - y", "slope = alpha * C - y"),
            ]
        },
        loss="squared",
    ),
    Mutant(
        "step of the prox doubled",
        "other C",
        "fista",
        {
            "proximal_step": [
                ("formulation.prox(s, 1 / self.L)", "formulation.prox(s, 2 / self.L)")
            ]
        },
        GroupLasso(),
        "logistic",
    ),
    Mutant(
        "bias not minimized",
        "bias missing",
        "fista",
        {"proximal_step": [("        if self.problem.bias:", "        if False:")]},
        LpNorm(2.0),
        "logistic",
    ),
    Mutant(
        "gradient with the wrong sign",
        "wrong sign",
        "fista",
        {"proximal_step": [("at + push / self.L", "at - push / self.L")]},
        GroupLasso(),
        "logistic",
    ),
]


def rightly_named(mutant: Mutant, kind: str) -> bool:
    return kind in mutant.kinds.split("|")


QUICK = {"grades": ["easy"], "leave_out": ["twonorm"]}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)
def test_an_edit_applies_and_makes_a_solver(mutant):
    genuine = room.solvers()
    assert mutant.load() not in genuine.values()
    assert genuine == room.solvers()  # and the genuine ones are back


@pytest.mark.parametrize("name", ["analytic", "smo_mkl", "fista"])
def test_a_copy_without_an_edit_passes(name):
    """What a mutant is caught for is its edit, not that it is a copy."""
    mutant = next(m for m in MUTANTS if m.solver == name)
    assert replace(mutant, edits={}).check(**QUICK).passed


@pytest.mark.parametrize(
    "mutant", [m for m in MUTANTS if m.quick], ids=lambda m: m.name
)
def test_a_planted_bug_is_caught_and_named_at_once(mutant):
    found = mutant.check(**QUICK)
    assert not found.passed, f"{mutant.name} was not caught"
    assert rightly_named(mutant, found.kind), found


@pytest.mark.full
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)
def test_every_planted_bug_is_caught_and_most_are_named(mutant):
    found = mutant.check()
    assert not found.passed, f"{mutant.name} was not caught"
    assert rightly_named(mutant, found.kind) or mutant.name in MISNAMED, found


def test_there_are_enough_bugs_and_names():
    assert len(MUTANTS) >= 30 and len({m.name for m in MUTANTS}) == len(MUTANTS)
    assert sum(m.quick for m in MUTANTS) >= 6
    assert len(MISNAMED) <= len(MUTANTS) // 10
    assert not any("not diagnosed" in m.kinds for m in MUTANTS)


def print_table(names: list[str]) -> None:
    """Mutant, problems it failed of those it was given, and what it was called."""
    for mutant in [m for m in MUTANTS if m.name in names or not names]:
        found = mutant.check()
        right = "right" if rightly_named(mutant, found.kind) else "WRONG"
        caught = f"{len(found.failures)}/{len(found.rows)}"
        print(f"{mutant.name:44s} {caught:>6s} {right} {found.diagnosis}", flush=True)


if __name__ == "__main__":
    print_table(sys.argv[1:])
