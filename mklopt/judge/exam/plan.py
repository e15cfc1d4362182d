"""Which problems a solver is given by the exam, and how a solver is found by name.

A question is a graded problem (reference/graded_problems.py) with a formulation and a
loss, and the relative gap it should be solved to. Where the caller does not choose, the
traits that a solver states decide: the first three formulations it supports, and one
more loss.
"""

from __future__ import annotations

import importlib
import inspect
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

from ...formulations import Formulation, Loss, formulations, losses_by_name
from ...formulations.lp_norm import LpNorm
from ...formulations.text import known_kind, read_formulation
from ...problem import Problem, loss_from
from ...reference.graded_problems import GRADED, GRADES, Graded
from ...solvers import Solver, solvers
from ...util.tables import shown

DEFAULT_TOL = 1e-6
FIRST_KINDS = ("LpNorm", "BlockL1", "GroupLasso", "VSKL", "Tikhonov")  # tried first,
FIRST_LOSSES = ("hinge", "squared", "logistic", "eps_insensitive")  # if supported
MAX_KINDS = 3  # formulations of a solver that states what it supports


@dataclass(frozen=True)
class Question:
    """One problem to be solved, and how well."""

    grade: str
    name: str
    problem: Problem
    tol: float

    @property
    def title(self) -> str:
        """Grade, problem, loss and formulation in one line."""
        return f"{self.grade}: {self.name}, {self.loss}, {self.formulation}"

    @property
    def formulation(self) -> str:
        """The formulation with its parameters."""
        return shown(self.problem.formulation)

    @property
    def loss(self) -> str:
        """The loss with its parameters."""
        return shown(self.problem.loss, self.problem.loss.name)


class Plan(NamedTuple):
    """The questions, and the names of the problems that are not asked."""

    questions: tuple[Question, ...]
    left_out: tuple[str, ...]


Make = Callable[[int], Formulation]  # a formulation for M kernels
Spec = str | Formulation | Make


def plan(
    solver: Any,
    *,
    formulations: Iterable[Spec] | None = None,
    losses: Iterable[str | Loss] | None = None,
    grades: Iterable[str] | None = None,
    leave_out: Iterable[str] = (),
    bias: bool | None = None,
    tol: float | None = None,
) -> Plan:
    """The questions that a solver is asked; see check_solver."""
    grades = tuple(grades or GRADES)
    _check_names("grade", grades, GRADES)
    _check_names("problem to leave out", leave_out, [graded.name for graded in GRADED])
    if tol is not None and not 0 < tol < 1:
        raise ValueError(f"tol = {tol!r}: a relative gap between 0 and 1")
    traits = solver if isinstance(solver, Solver) else None
    kinds = [_maker(f) for f in _list(formulations)]
    some = [loss_from(x) for x in _list(losses)]
    questions, dropped = [], {}
    for kind, loss in _pairs(traits, kinds, some):
        for graded in (g for g in GRADED if g.grade in grades):
            problem = _problem(graded, kind, loss, traits, bias)
            if problem is not None and graded.name not in leave_out:
                goal = tol or (traits.promise(problem) if traits else DEFAULT_TOL)
                if goal < math.inf:
                    questions.append(Question(graded.grade, graded.name, problem, goal))
                    continue
            dropped[graded.name] = True
    if not questions:
        raise ValueError(
            f"no graded problem fits {name_of(solver)} with these formulations, losses "
            "and grades"
        )
    return Plan(tuple(questions), tuple(dropped))


def _check_names(what: str, given: Iterable[str], known: Iterable[str]) -> None:
    for name in given:
        if name not in known:
            raise ValueError(
                f"{what} {name!r} is not known; choose from {', '.join(known)}"
            )


def _list(given: Any) -> list:
    """What was asked for, one or many; nothing: to be chosen here."""
    if given is None:
        return []
    single = isinstance(given, str | Formulation | Loss) or callable(given)
    return [given] if single else list(given)


def _pairs(
    traits: Solver | None, kinds: list[Make], losses: list[Loss]
) -> Iterator[tuple[Make, Loss]]:
    """All that was asked for; by default what a solver states, or the usual SVM."""
    if traits is None or (kinds and losses):
        for kind in kinds or [lambda M: LpNorm(2.0)]:
            for loss in losses or [loss_from("hinge")]:
                yield kind, loss
        return
    stated = _supported(traits, kinds, losses)
    if not stated:
        raise ValueError(
            f"{traits.name} supports none of these formulations and losses"
        )
    first_kind, first_loss = stated[0]
    yield from [(k, x) for k, x in stated if x == first_loss][:MAX_KINDS]
    yield from [(k, x) for k, x in stated if k is first_kind and x != first_loss][:1]


def _supported(
    traits: Solver, kinds: list[Make], losses: list[Loss]
) -> list[tuple[Make, Loss]]:
    """The pairs a solver states to support, tried on the first graded problem."""
    names = dict.fromkeys((*FIRST_KINDS, *formulations()))
    known = dict.fromkeys((*FIRST_LOSSES, *losses_by_name()))
    kinds = kinds or [_maker(name) for name in names]
    return [
        (kind, loss)
        for loss in losses or map(loss_from, known)
        for kind in kinds
        if _problem(GRADED[0], kind, loss, traits, None) is not None
    ]


def _problem(
    graded: Graded, kind: Make, loss: Loss, traits: Solver | None, bias: bool | None
) -> Problem | None:
    """A graded problem with this formulation and loss; None where it does not fit."""
    if bias and not graded.bias:
        return None
    try:
        made = kind(graded.draw()[0].M)
        problem = graded.problem(made, loss, bias is not False)
    except ValueError:
        return None
    if traits is None or not traits.why_not(problem):
        return problem
    if problem.bias and bias is None:
        return _problem(graded, kind, loss, traits, False)
    return None


def _maker(spec: Any) -> Make:
    """A formulation for M kernels, from an instance, a class, a function or text."""
    if isinstance(spec, str):  # "LpNorm", or with literals for its parameters
        spec = read_formulation(spec) if set("(:") & set(spec) else known_kind(spec)
    if isinstance(spec, Formulation):
        return lambda M: spec
    if isinstance(spec, type) and issubclass(spec, Formulation):
        return partial(_usual, spec)
    if callable(spec):
        return spec
    raise ValueError(
        f"formulation {spec!r}: give an instance such as LpNorm(p=2), its name, or a "
        "function of the number of kernels"
    )


def _usual(kind: type[Formulation], M: int) -> Formulation:
    try:
        return kind()
    except TypeError:  # it has parameters without a default
        return kind.examples(M)[0]


# ---- the solver --------------------------------------------------------------


def find_solver(given: Any) -> Any:
    """A solver from "module:name", from the name of one of ours, or as it is."""
    if isinstance(given, str):
        given = _imported(given) if ":" in given else solvers().get(given, given)
    if isinstance(given, Solver):
        return given
    if not callable(given):
        raise ValueError(
            f"{given!r:.40} is no solver; give a generator function of iterates, a "
            "function problem → (weights, dual) or → weights, its module:name, or the "
            f"name of one of ours: {', '.join(solvers())}"
        )
    try:
        inspect.signature(given).bind(None)
    except TypeError as error:
        raise ValueError(
            f"{name_of(given)} cannot be called with a problem alone: {error}"
        ) from None
    except ValueError:  # built-in functions have no signature to look at
        pass
    return given


def name_of(solver: Any) -> str:
    """What a solver is called in a report."""
    return getattr(solver, "name", getattr(solver, "__name__", type(solver).__name__))


def _imported(path: str) -> Any:
    module, _, name = path.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = importlib.import_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a module may even try to exit
        missing = isinstance(error, ModuleNotFoundError) and error.name == module
        raise ValueError(
            f"there is no module {module!r} here or installed; run this in its folder"
            if missing or not module
            else f"importing {module} raised {type(error).__name__}: {error}"
        ) from None
    try:
        return attrgetter(name)(found)
    except AttributeError:
        raise ValueError(f"module {module!r} has no {name!r}") from None
