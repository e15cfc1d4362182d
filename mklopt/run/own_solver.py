"""Solvers of one's own: functions, generators, objects with `fit`, and "module:name".

    def mine(problem):                       # weights alone, or anything with
        return weights, dual                 # `weights` and `dual`, is taken as well

    mklopt.solve(problem, mine)              # also race and check_solver; on the
    mklopt solve sonar --solver my:mine      # command line: a module and a name

A generator yields iterates like ours, or what a function returns. An object has
`fit(problem)`, or `fit(K, y)` with the kernels K (M, n, n); then it, or what `fit`
returned, has `weights` or `weights_`, and `dual`, `dual_`, or `dual_coef_` with
`support_`. Without a dual, α is that of the SVM at the weights. What comes back is
certified like every other point.
"""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from functools import cache, wraps
from inspect import Parameter
from operator import attrgetter
from typing import Any

import numpy as np

from ..problem import Problem
from ..solvers import Iterate, Solver, find, solvers
from ..solvers.machines.at_weights import dual_at_weights

Array = np.ndarray
WEIGHTS, DUALS = ("weights", "weights_"), ("dual", "dual_")
REFUSED = (NotImplementedError, ValueError)  # how it says that it does not solve this


class BadAnswer(ValueError):
    """What came back is not what a solver returns."""


def solver_for(given: Any, problem: Problem) -> Solver:
    """One of our solvers by name, which must take the problem, or one of one's own."""
    own = callable(given) or hasattr(given, "fit")
    named = isinstance(given, str) and ":" in given
    return as_solver(given) if own or named else find(given, problem)


def as_solver(given: Any) -> Solver:
    """A solver of one's own, for the loop."""
    found = imported(given) if isinstance(given, str) else given
    found = callable_with_a_problem(found)
    if isinstance(found, Solver):
        return found
    name = given if isinstance(given, str) else name_of(given)
    anything = frozenset({"any"}), frozenset({True, False})
    about = "a solver of your own"
    return Solver(name, _steps(found), frozenset(), *anything, 0.0, about=about)


def _steps(function: Callable) -> Callable:
    """A generator function of iterates, with the options of the function."""

    @wraps(function)
    def steps(problem: Problem, **options: Any) -> Any:
        returned = function(problem, **options)
        if hasattr(returned, "send"):
            yield from checked_iterates(returned, problem)
        else:
            yield _completed(returned, problem)

    with suppress(TypeError, ValueError):  # built-in functions have no signature
        first, *others = inspect.signature(function).parameters.values()
        signature = inspect.Signature([first.replace(name="problem"), *others])
        steps.__signature__ = signature  # type: ignore[attr-defined]
    return steps


def _completed(given: Any, problem: Problem) -> Iterate:
    """What a function returns, as an iterate; without α, that of the SVM."""
    weights, dual = point_of(given, problem)
    dual = dual_at_weights(problem, weights) if dual is None else dual
    return Iterate(dual=dual, weights=weights)


def checked_iterates(generator: Any, problem: Problem) -> Iterator[Iterate]:
    """The iterates of a generator, each checked; it gets the certificates sent here."""
    certificate: Any = None
    with closing(generator), suppress(StopIteration):
        while True:
            certificate = yield _iterate(generator.send(certificate), problem)


def _iterate(given: Any, problem: Problem) -> Iterate:
    """An iterate whose functions are called once, when it is certified."""
    if not isinstance(given, Iterate):
        point = isinstance(given, tuple | list | np.ndarray)
        if not point and not any(hasattr(given, name) for name in WEIGHTS):
            raise BadAnswer(
                f"the generator yielded a {type(given).__name__}; yield "
                "mklopt.solvers.Iterate(dual=…, weights=…) or (weights, dual)"
            )
        return _completed(given, problem)
    parts = {name: getattr(given, name) for name in ("dual", "coefficients")}
    once: dict[str, Any] = {k: cache(v) for k, v in parts.items() if callable(v)}
    return replace(given, **once)


# ---- finding it ----------------------------------------------------------------------


def imported(path: str) -> Any:
    """The object "module:name"; the current directory is searched first."""
    module, _, name = path.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = importlib.import_module(module)
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


def callable_with_a_problem(given: Any) -> Any:
    """The solver as it is, or as a function; ValueError where it cannot be one."""
    if isinstance(given, Solver):
        return given
    if hasattr(given, "fit"):
        return _fitting(given() if isinstance(given, type) else given)
    if not callable(given) or isinstance(given, type):
        raise ValueError(
            f"{given!r:.40} is no solver; give a generator function of iterates, a "
            "function problem → (weights, dual) or → weights, an object with fit, its "
            f"module:name, or the name of one of ours: {', '.join(solvers())}"
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


# ---- what it returns -----------------------------------------------------------------


def _fitting(given: Any) -> Callable:
    """An object with `fit` as a function of a problem."""
    takes = inspect.signature(given.fit).parameters.values()
    positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    needed = [p for p in takes if p.default is p.empty and p.kind in positional]

    def fit(problem: Problem) -> Any:
        if len(needed) > 1:
            returned = given.fit(problem.grams.dense(), problem.y)
        else:
            returned = given.fit(problem)
        return given if returned is None else returned

    fit.__name__ = name_of(given)
    return fit


def point_of(given: Any, problem: Problem) -> tuple[Array, Array | None]:
    """(weights, dual) of a pair, of weights alone, or of an object with these two."""
    n, M = problem.grams.n, problem.grams.M
    if any(hasattr(given, name) for name in WEIGHTS):
        given = (_attribute(given, WEIGHTS), _dual_of(given, problem))
    sequence = isinstance(given, tuple | list) and len(given) == 2
    pair = sequence and np.ndim(given[0]) > 0
    weights, dual = given if pair else (given, None)
    shapes = [np.shape(a) for a in given] if pair else []
    if shapes == [problem.shape, (M,)] and problem.shape != (M,):
        raise BadAnswer("it returned (dual, weights); return (weights, dual)")
    weights = _array(weights, (M,), f"weights, one for each of the {M} kernels")
    if dual is not None:
        dual = _array(dual, problem.shape, f"dual variables for the {n} samples")
    return weights, dual


def _attribute(given: Any, names: tuple[str, ...]) -> Any:
    return next((getattr(given, name) for name in names if hasattr(given, name)), None)


def _dual_of(given: Any, problem: Problem) -> Any:
    """α of an object: as it is, or of the support vectors alone."""
    found = _attribute(given, DUALS)
    if found is None and hasattr(given, "dual_coef_") and hasattr(given, "support_"):
        found = np.zeros(problem.shape)
        found[np.asarray(given.support_)] = np.ravel(given.dual_coef_)
    return found


def _array(given: Any, shape: tuple[int, ...], what: str) -> Array:
    kind = type(given).__name__
    try:
        if np.iscomplexobj(given):
            kind = "complex array"
            raise TypeError
        array = np.array(given, float)
    except (TypeError, ValueError):
        raise BadAnswer(f"it returned a {kind} where {what}, were expected") from None
    if array.shape != shape:
        raise BadAnswer(f"it returned an array {array.shape}; expected {shape}: {what}")
    return array
