"""Claimed solutions of library problems: judged, and kept if they are better.

A claim is a certificate file, or a dual and a primal point in a .npz or .json: "name",
"dual", and "weights", "coefficients", "w" or "f" with "weights". What is believed is
our certificate of these points, never what the file says of them. Joined with the best
stored points it gives a new interval; if this is narrower, the points are kept.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..certificates.certificate import Certificate
from ..certificates.certificate import certify as certify_pair
from ..certificates.reading import FORMATS, Refused, floats, opened, read
from ..problem import Problem
from ..reference import Reference
from ..run.point import weights_near
from ..tasks.certify import certify
from ..util.archives import read_arrays
from ..util.checks import check_path, unknown
from .declarations import INSTANCES
from .instance import LibraryProblem
from .listing import get
from .stored_records import (
    HOME,
    joined,
    own_folder,
    points_in,
    record_of,
    records,
    reference_of,
    write_records,
)

Array = np.ndarray
MAX_BYTES = 1 << 27  # of a claim
BETTER = 0.999  # an interval is narrower if it has at most this part of the width
POINTS = ("dual", "weights", "coefficients", "w", "f", "b", "norms")


@dataclass(frozen=True)
class Verdict:
    """What a claimed solution is worth.

    Parameters
    ----------
    name : str
        The problem.
    lower, upper : float
        What the claim alone proves.
    before, after : tuple of float
        The stored interval before and with the claim.
    kept : bool
        Whether the claim made the stored interval narrower, and is kept.
    where : str
        The folder it is kept in.
    """

    name: str
    lower: float
    upper: float
    before: tuple[float, float] | None
    after: tuple[float, float]
    kept: bool
    where: str = ""

    @property
    def relative_gap(self) -> float:
        """(upper − lower)/|upper| of the claim."""
        return (self.upper - self.lower) / max(abs(self.upper), 1e-300)

    def __str__(self) -> str:
        said = [f"{self.name}: the claim proves {_interval(self.lower, self.upper)}"]
        if self.before is not None:
            said.append(f"stored before: {_interval(*self.before)}")
        if self.kept:
            said.append(f"kept in {self.where}: {_interval(*self.after)}")
        else:
            said.append("the stored interval is as narrow: nothing changes")
        return "\n".join(said)


def _interval(lower: float, upper: float) -> str:
    gap = (upper - lower) / max(abs(upper), 1e-300)
    return f"{lower:.12g} ≤ f* ≤ {upper:.12g} (relative gap {gap:.1e})"


def submit(
    path: str | os.PathLike, name: str | None = None, source: str = "submitted"
) -> Verdict:
    """Judge a claimed solution; keep it if it makes the stored interval narrower.

    Parameters
    ----------
    path : str or path
        A certificate file, or a .npz or .json with "dual" and a primal point.
    name : str, optional
        The problem; by default the one that the file names.
    source : str, default="submitted"
        Whose points these are.

    Returns
    -------
    Verdict

    Raises
    ------
    ValueError
        If the file cannot be read, or is no solution of a library problem.
    """
    problem, certificate = claimed(path, name)
    return keep(problem, certificate, source)


def keep(problem: LibraryProblem, claim: Certificate, source: str) -> Verdict:
    """The verdict on a certificate; better points go into the folder of submissions."""
    known = reference_of(problem)
    best = claim if known is None else known.certificate.best_of(claim)
    better = known is None or best.width <= BETTER * known.certificate.width
    before = None if known is None else (known.lower, known.upper)
    name, where = problem.instance.name, own_folder() or HOME
    if better:
        store_points(problem, best, source, where)
        after = (best.lower, best.upper)
    else:
        assert before is not None
        after = before
    said = (name, claim.lower, claim.upper, before, after, better)
    return Verdict(*said, where=str(where) if better else "")


def store_points(
    problem: LibraryProblem, best: Certificate, source: str, where: Path
) -> None:
    """Write the points of a certificate, and the record of what they prove."""
    name, best = problem.instance.name, compact(best)
    dual = best.shrink * best.alpha
    theta = weights_near(best) if best.weights is None else best.weights
    found = Reference(best, theta, dual, source)
    points_in(where).save(problem, found)
    record, known = record_of(problem, found), records().get(name)
    if known is not None and known.digest == record.digest:
        record = joined(record, known)
    write_records(where, {name: record})


def compact(found: Certificate) -> Certificate:
    """The same point with features in place of coefficients, where kernels have them.

    Features take Σ r_m numbers, coefficients M n.
    """
    problem = found.problem
    if found.weights is not None or problem.grams.storage != "factors":
        return found
    if found.features is not None or found.coefficients is None:
        return replace(found, coefficients=None)
    factors = problem.grams.factors or []
    parts = [L.T @ B for L, B in zip(factors, found.coefficients)]
    other = certify_pair(problem, found.alpha, features=np.concatenate(parts))
    return other if other.width <= 2 * found.width else found


# ---- what a file claims --------------------------------------------------------------


def claimed(
    path: str | os.PathLike, name: str | None
) -> tuple[LibraryProblem, Certificate]:
    """The problem that a file is a solution of, and our certificate of its points."""
    check_path(path)
    try:
        with open(path, "rb") as file:
            head = file.read(len(FORMATS[0]))
        if head in FORMATS:
            return _of_certificate(path, name)
        return _of_points(_points(Path(path)), name)
    except FileNotFoundError:
        raise
    except Refused as reason:
        raise ValueError(f"{path} is not a valid certificate: {reason}") from None
    except OSError as error:
        raise ValueError(f"{path} cannot be read ({error.strerror})") from None


def _points(path: Path) -> dict[str, Any]:
    """The names and arrays of a .npz or .json."""
    if path.stat().st_size > MAX_BYTES:
        raise ValueError(f"{path} has more than {MAX_BYTES} bytes")
    try:
        if path.suffix == ".npz":
            return dict(read_arrays(path, MAX_BYTES))
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(
            f"{path} is neither a certificate, nor a .npz or .json with dual and "
            f"weights ({f'{error}'[:200]})"
        ) from None
    if not isinstance(found, dict):
        raise ValueError(f"{path} is no JSON object with dual and weights")
    return found


def _of_points(
    given: dict[str, Any], name: str | None
) -> tuple[LibraryProblem, Certificate]:
    stated = given.pop("name", None)
    name = name or (None if stated is None else str(stated))
    if name is None:
        raise ValueError("the file does not name its problem: give --name")
    for key in given:
        if key not in POINTS:
            raise ValueError(unknown("array", key, POINTS))
    problem = get(name)
    return problem, certify(problem, **given)


def _of_certificate(
    path: str | os.PathLike, name: str | None
) -> tuple[LibraryProblem, Certificate]:
    claim = opened(read(path))
    by_hash = {one.digest: name for name, one in records().items()}
    found = by_hash.get(claim["problem"])
    if found is None or name not in (None, found) or found not in INSTANCES:
        whose = "no problem of the library" if found is None else found
        raise ValueError(f"{path} is a certificate of {whose}")
    problem = get(found)
    return problem, _certified(problem, claim)


def _certified(problem: Problem, claim: dict[str, Any]) -> Certificate:
    """Our certificate of the points of a file, as the format specifies them."""
    dual, primal = claim["dual"], claim["primal"]
    scale = 2.0 ** -dual["exponent"]
    alpha = np.array([float(k * scale) for k in dual["integers"]])
    alpha = alpha.reshape(problem.shape)
    if "weights" in primal:
        return certify_pair(problem, alpha, np.array(floats(primal["weights"])))
    kind = "features" if "features" in primal else "coefficients"
    parts = [np.array(floats(text)) for text in primal[kind]]
    if kind == "coefficients":
        B = np.reshape(parts, (problem.grams.M, *problem.shape))
        return certify_pair(problem, alpha, coefficients=B)
    w = np.concatenate(parts)
    return certify_pair(problem, alpha, features=w.reshape(-1, *problem.shape[1:]))
