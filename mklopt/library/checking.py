"""All certificates of the library, checked again: `mklopt library check`.

Of every problem the kernels are computed anew and their hash is compared, the stored
points are certified afresh (float64, every rounding error bounded), and up to
MAX_NUMBERS numbers a certificate file is written and given to the checker that needs
Python's standard library alone. What is larger says that it was not.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..certificates.checker import check as check_exactly
from ..certificates.portable import save_certificate
from ..certificates.reading import Refused, read
from ..data import DataNotFound
from ..reference import Reference
from .instance import LibraryProblem
from .listing import get, names
from .stored_records import Record, reference_of

MAX_NUMBERS = 1_000_000  # of the kernels, for the checker in the standard library
EXACT = "the standard-library checker, in exact arithmetic"
FLOAT = "float64 with every rounding error bounded; too large for the exact checker"
FETCHED = "to fetch"  # the tag of problems whose data do not come with a package
OTHER_DATA = "the data here are another version than those of the stored solution"
OTHER_PROBLEM = "this machine computes another problem than the one that was solved"
WIDER = 2.0, 1e-11  # how much wider an interval may be here than it was recorded


@dataclass(frozen=True)
class Checked:
    """What came out for one problem.

    Parameters
    ----------
    name : str
    status : str
        "proved", "skipped" or "wrong".
    by : str
        What it was checked by.
    words : str
        Why it was skipped, or what is wrong.
    """

    name: str
    status: str
    by: str = ""
    words: str = ""


def check(some: Iterable[str] | None = None) -> Iterator[Checked]:
    """Check the stored points of all problems, or of some.

    Parameters
    ----------
    some : iterable of str, optional
        Names of problems.

    Yields
    ------
    Checked
    """
    for name in names() if some is None else some:
        try:
            problem = get(name)
        except DataNotFound as error:
            yield Checked(name, "skipped", words=f"{error}".split(";")[0])
            continue
        yield check_one(problem)


def check_one(problem: LibraryProblem) -> Checked:
    """The hash of the problem, the interval, and the certificate file."""
    name, record = problem.instance.name, problem.record
    if record is None:
        return Checked(name, "wrong", words="nothing is stored of it")
    if problem.digest() != record.digest:
        if FETCHED in problem.instance.tags:
            return Checked(name, "skipped", words=OTHER_DATA)
        return Checked(name, "wrong", words=OTHER_PROBLEM)
    found = reference_of(problem)
    if found is None:
        return Checked(name, "wrong", words="its points are missing or damaged")
    if words := disagreement(found, record):
        return Checked(name, "wrong", words=words)
    if record.numbers > MAX_NUMBERS:
        return Checked(name, "proved", FLOAT)
    return _exactly(name, found)


def disagreement(found: Reference, record: Record) -> str:
    """Why an interval is not the one that was recorded, or ""."""
    factor, more = WIDER
    if found.certificate.assumptions:
        return f"it assumes that {found.certificate.assumptions[0]}"
    if found.lower > record.upper or found.upper < record.lower:
        return "the stored points prove another interval than the one recorded"
    if not found.relative_gap <= factor * record.relative_gap + more:
        return (
            f"the stored points prove a gap of {found.relative_gap:.1e} only; "
            f"{record.relative_gap:.1e} is recorded"
        )
    return ""


def _exactly(name: str, found: Reference) -> Checked:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"{name}.cert")
        try:
            save_certificate(found.certificate, path)
            check_exactly(read(path))
        except (Refused, ValueError) as reason:
            return Checked(name, "wrong", EXACT, f"{reason}")
    return Checked(name, "proved", EXACT)
