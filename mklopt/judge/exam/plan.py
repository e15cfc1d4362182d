"""What a solver is asked by the conformance kit, and how a solver is found.

A question is a graded problem (reference/graded_problems.py) with a formulation and a
loss, and the gap it should be solved to. What is not asked for is decided by the traits
that a solver states: the first three formulations it supports, and one more loss.
"""

from __future__ import annotations

import importlib
import inspect
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ...formulations import Formulation, Loss, formulations, losses_by_name
from ...formulations.lp_norm import LpNorm
from ...formulations.text import known_kind, read_formulation
from ...problem import Problem, loss_from
from ...reference.graded_problems import GRADED, GRADES, Graded
from ...solvers import Solver, solvers
from ...util.tables import shown

TOL = 1e-6
FIRST = ("LpNorm", "BlockL1", "GroupLasso", "VSKL", "Tikhonov")  # what is tried first,
USUAL = ("hinge", "squared", "logistic", "eps_insensitive")  # of all a solver supports
MOST = 3  # formulations of a solver that states what it supports, and two losses


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
        return shown(self.problem.formulation)

    @property
    def loss(self) -> str:
        return shown(self.problem.loss, self.problem.loss.name)


@dataclass(frozen=True)
class Plan:
    questions: tuple[Question, ...]
    left_out: tuple[str, ...]


Spec = str | Formulation | Callable[[int], Formulation]


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
    _check(grades, leave_out, tol)
    traits = solver if isinstance(solver, Solver) else None
    kinds = (
        None if formulations is None else [_formulation(f) for f in _list(formulations)]
    )
    some = None if losses is None else [loss_from(x) for x in _list(losses)]
    questions, dropped = [], []
    for kind, loss in _pairs(traits, kinds, some):
        for graded in GRADED:
            if graded.grade not in (set(grades) if grades else GRADES):
                continue
            problem = _problem(graded, kind, loss, traits, bias)
            if graded.name in leave_out or problem is None:
                dropped.append(graded.name)
                continue
            promise = traits.promise(problem) if traits else TOL
            if tol is None and promise == math.inf:
                dropped.append(graded.name)
                continue
            goal = tol or promise
            questions.append(Question(graded.grade, graded.name, problem, goal))
    if not questions:
        raise ValueError(
            f"no graded problem fits {name_of(solver)} with these formulations, losses "
            "and grades"
        )
    return Plan(tuple(questions), tuple(dict.fromkeys(dropped)))


def _pairs(
    traits: Solver | None, kinds: list | None, losses: list | None
) -> Iterator[tuple[Any, Loss]]:
    """All that was asked for; by default what a solver states, or the usual SVM."""
    if traits is None or (kinds is not None and losses is not None):
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
    yield from [(k, x) for k, x in stated if x == first_loss][:MOST]
    others = [(k, x) for k, x in stated if k is first_kind and x != first_loss]
    yield from others[:1]


def _supported(traits: Solver, kinds: list | None, losses: list | None) -> list:
    """The pairs a solver states to support, tried on the first graded problem."""
    names = sorted(formulations(), key=lambda n: FIRST.index(n) if n in FIRST else 9)
    known = [*USUAL, *(n for n in losses_by_name() if n not in USUAL)]
    some_losses = losses or [loss_from(n) for n in known]
    some_kinds = kinds or [_formulation(n) for n in names]
    return [
        (kind, loss)
        for loss in some_losses
        for kind in some_kinds
        if _problem(GRADED[0], kind, loss, traits, None) is not None
    ]


def _problem(
    graded: Graded, kind: Any, loss: Loss, traits: Solver | None, bias: bool | None
) -> Problem | None:
    """A graded problem with this formulation and loss; None where it does not fit."""
    if bias is not None and bias and not graded.bias:
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


def _list(given: Any) -> list:
    single = isinstance(given, str | Formulation | Loss) or callable(given)
    return [given] if single else list(given)


def _formulation(spec: Any) -> Callable[[int], Formulation]:
    """A formulation for M kernels, from an instance, a class or text."""
    if isinstance(spec, Formulation):
        return lambda M: spec
    if isinstance(spec, str):
        return _named(spec)
    if isinstance(spec, type) and issubclass(spec, Formulation):
        return lambda M: _usual(spec, M)
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


def _named(text: str) -> Callable[[int], Formulation]:
    """ "LpNorm" or "LpNorm(p=1.5)": a name, and literals for its parameters."""
    if "(" in text or ":" in text:
        made = read_formulation(text)
        return lambda M: made
    kind = known_kind(text)
    return lambda M: _usual(kind, M)


def _check(grades: Any, leave_out: Any, tol: Any) -> None:
    for grade in grades or ():
        if grade not in GRADES:
            raise ValueError(
                f"grade {grade!r} is not known; choose from {', '.join(GRADES)}"
            )
    names = [graded.name for graded in GRADED]
    for name in leave_out:
        if name not in names:
            raise ValueError(
                f"no problem {name!r} to leave out; there are: {', '.join(names)}"
            )
    if tol is not None and not 0 < tol < 1:
        raise ValueError(f"tol = {tol!r}: a relative gap between 0 and 1")


# ---- the solver --------------------------------------------------------------


def find_solver(given: Any) -> Any:
    """A solver from "module:name", from the name of one of ours, or as it is."""
    if isinstance(given, str):
        given = _imported(given) if ":" in given else _registered(given)
    if isinstance(given, Solver):
        return given
    if not callable(given):
        raise ValueError(
            f"{given!r:.40} is no solver; give a generator function of "
            "iterates, or a function problem → (weights, dual) or → weights"
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
    return getattr(solver, "name", getattr(solver, "__name__", type(solver).__name__))


def _registered(name: str) -> Solver:
    known = solvers()
    if name not in known:
        raise ValueError(
            f"{name!r} is neither module:name nor one of our solvers: "
            + ", ".join(known)
        )
    return known[name]


def _imported(path: str) -> Any:
    module, _, name = path.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = importlib.import_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name == module
        said = f"{type(error).__name__}: {error}"
        raise ValueError(
            f"there is no module {module!r} here or installed; run this in its folder"
            if missing or not module
            else f"importing {module} raised {said}"
        ) from None
    for part in name.split("."):
        if not hasattr(found, part):
            raise ValueError(f"module {module!r} has no {name!r}")
        found = getattr(found, part)
    return found
