"""The open text format of a problem, which any language can read: written and read.

    mklopt-problem 1
    text KEY VALUE
    array KEY ROWS COLUMNS      then ROWS lines with COLUMNS numbers each
    end

Texts are name, digest, loss, formulation. Arrays are bias (1 or 0), y, C, parameters
(loss.eps, formulation.p, …), and the kernels: factor.m is L_m with K_m = L_m L_mᵀ,
triangle.m the upper triangle of K_m, row after row. Numbers are the shortest decimals
that give the same float64. docs/problem-format.md specifies it, with readers for
NumPy, Julia and Octave.

Guarantee. What is read has the digest of what was written, or is refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from ..formulations import Formulation, Loss, formulations, losses_by_name
from ..grams.stack import GramStack
from ..problem import Problem, describe
from ..util.arrays import Array
from ..util.checks import check_path, short, unknown
from ..util.files import write_whole

FIRST = "mklopt-problem 1"
MAX_NUMBERS = 400_000_000  # of one array, as of other files of users
TEXTS = ("name", "digest", "loss", "formulation")
LISTS = ("prior", "theta")  # parameters with one number for each kernel
Content = dict[str, Any]  # texts and arrays by key


# ---- writing -------------------------------------------------------------------------


def write_problem(problem: Problem, path: str | os.PathLike, name: str = "") -> None:
    """Write a problem as text that other languages can read.

    Parameters
    ----------
    problem : Problem
    path : str or path
        The file.
    name : str, optional
        By default the name in the library, if it has one.

    Raises
    ------
    ValueError
        For losses and formulations that are declared by code and not by a name, and for
        kernels K_m that are certified as K_m + δ_m I.
    """
    if np.any(problem.grams.shift):
        raise ValueError(
            f"its kernels are K + δI with δ up to {np.max(problem.grams.shift):.1e}, "
            "and the format has no δ: add it to their diagonals"
        )
    own = getattr(getattr(problem, "instance", None), "name", "problem")
    write_whole(path, "".join(_lines(problem, name or own)).encode())


def _lines(problem: Problem, name: str) -> Iterator[str]:
    loss, formulation = (_named(part, problem) for part in _parts(problem))
    yield f"{FIRST}\n"
    texts = (name, problem.digest(), loss[0], formulation[0])
    for key, value in zip(TEXTS, texts):
        yield f"text {key} {value}\n"
    yield from _array("bias", np.array([float(problem.bias)]))
    for kind, (_, parameters) in (("loss", loss), ("formulation", formulation)):
        for key, value in parameters.items():
            yield from _array(f"{kind}.{key}", _numbers(key, value))
    yield from _array("y", problem.y)
    yield from _array("C", problem.costs)
    kind = "factor" if problem.grams.storage == "factors" else "triangle"
    for m, values in enumerate(problem.grams.content()):
        yield from _array(f"{kind}.{m}", values)
    yield "end\n"


def _parts(problem: Problem) -> tuple[Loss, Formulation]:
    return problem.loss, problem.formulation


def _named(part: Loss | Formulation, problem: Problem) -> list:
    said = describe(part, problem)
    if said[0] not in losses_by_name() and said[0] not in formulations():
        raise ValueError(
            f"{said[0]} is declared by code: a file can name only the losses and "
            "formulations of mklopt list"
        )
    return said


def _numbers(key: str, value: Any) -> Array:
    """A parameter as an array; groups as rows (group, kernel)."""
    if key == "groups":
        return np.array([(j, k) for j, group in enumerate(value) for k in group], float)
    return np.asarray(value, float)


def _array(key: str, values: Array) -> Iterator[str]:
    table = np.asarray(values, float).reshape(len(np.atleast_1d(values)), -1)
    yield f"array {key} {table.shape[0]} {table.shape[1]}\n"
    for row in table.tolist():
        yield " ".join(map(_decimal, row)) + "\n"


def _decimal(x: float) -> str:
    if x in (np.inf, -np.inf):
        return "Inf" if x > 0 else "-Inf"
    return repr(x).removesuffix(".0")


# ---- reading -------------------------------------------------------------------------


def read_problem(path: str | os.PathLike) -> Problem:
    """Read a problem that `write_problem` or another program wrote.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    Problem

    Raises
    ------
    ValueError
        If the file is not in the format, or is another problem than its digest says.
    """
    check_path(path)
    try:
        with Path(path).open(encoding="utf-8") as file:
            content = _content(file)
        problem = _problem(content)
    except FileNotFoundError:
        raise
    except Exception as error:  # whatever a damaged file leads to
        reason = getattr(error, "strerror", None) or f"{error}"[:300]
        raise ValueError(f"{path} is not a problem as text: {reason}") from None
    if content["digest"] not in (problem.digest(), "none"):
        raise ValueError(f"{path} is another problem than its digest says")
    return problem


def _content(file: IO[str]) -> Content:
    """All texts and arrays of a file, by key."""
    if file.readline().rstrip() != FIRST:
        raise ValueError(f"it does not begin with {FIRST!r}")
    found: Content = {}
    for line in file:
        match line.split():
            case ["end"]:
                return found
            case [_, key, *_] if key in found:
                raise ValueError(f"{key} occurs twice")
            case ["text", key, value]:
                found[key] = value
            case ["array", key, rows, columns]:
                found[key] = _table(file, key, int(rows), int(columns))
            case _:
                raise ValueError(f"the line {short(line)} is not known")
    raise ValueError("it has no line 'end'")


def _table(file: IO[str], key: str, rows: int, columns: int) -> Array:
    if not (rows > 0 and columns > 0 and rows * columns <= MAX_NUMBERS):
        raise ValueError(f"{key} is {rows} × {columns}")
    lines = [file.readline().split() for _ in range(rows)]
    if any(len(line) != columns for line in lines):
        raise ValueError(f"{key} has a line without {columns} numbers")
    return np.array(lines, float)


def _problem(content: Content) -> Problem:
    y, C = content["y"].ravel(), content["C"].ravel()
    loss = losses_by_name()[content["loss"]](**_parameters(content, "loss"))
    known = formulations()
    if content["formulation"] not in known:
        raise ValueError(unknown("formulation", content["formulation"], known))
    how = known[content["formulation"]](**_parameters(content, "formulation"))
    bias = bool(content["bias"].item())
    cost: Any = float(C[0]) if np.all(C[0] == C) else C
    return Problem(_stack(content), y, loss, how, cost, bias)


def _parameters(content: Content, kind: str) -> dict[str, Any]:
    keys = [key for key in content if key.startswith(f"{kind}.")]
    return {key.split(".")[1]: _value(key.split(".")[1], content[key]) for key in keys}


def _value(key: str, table: Array) -> Any:
    """A parameter from its array."""
    if key == "groups":
        order, kernels = table.astype(int).T.tolist()
        count = max(order) + 1
        return tuple(
            tuple(k for j, k in zip(order, kernels) if j == group)
            for group in range(count)
        )
    if key in LISTS:
        return tuple(table.ravel().tolist())
    return table.item() if table.size == 1 and key != "E" else tuple(map(tuple, table))


def _stack(content: Content) -> GramStack:
    parts = {key.split(".")[0] for key in content} & {"factor", "triangle"}
    if len(parts) != 1:
        raise ValueError("it needs factors, or triangles, and not both")
    kind, n = parts.pop(), len(content["y"])
    M = sum(key.startswith(kind) for key in content)
    arrays = [content[f"{kind}.{m}"] for m in range(M)]
    if kind == "factor":
        return GramStack.from_factors(arrays)
    return GramStack(_matrix(array.ravel(), n) for array in arrays)


def _matrix(triangle: Array, n: int) -> Array:
    K = np.zeros((n, n))
    K[np.triu_indices(n)] = triangle
    return K + np.triu(K, 1).T
