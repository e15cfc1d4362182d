"""The problems of the library by name, by tag, and as a dict for races and exams."""

from __future__ import annotations

from collections.abc import Iterable

from ..data import DataNotFound
from ..util.checks import short, unknown
from .declarations import INSTANCES
from .instance import Instance, LibraryProblem


def instances() -> dict[str, Instance]:
    """The declarations of all problems, by name.

    Returns
    -------
    dict of Instance
    """
    return dict(INSTANCES)


def names(*tags: str) -> list[str]:
    """The names of all problems, or of those with all of these tags.

    Parameters
    ----------
    *tags : str
        Such as "real", "degenerate", or the name of a loss.

    Returns
    -------
    list of str

    Raises
    ------
    ValueError
        If no problem has such a tag.

    Examples
    --------
    >>> "wdbc-l1-hinge" in names("real", "sparse")
    True
    """
    known = sorted({tag for one in INSTANCES.values() for tag in tags_of(one)})
    for tag in tags:
        if tag not in known:
            raise ValueError(unknown("tag", tag, known))
    return [name for name, one in INSTANCES.items() if {*tags} <= tags_of(one)]


def tags_of(instance: Instance) -> set[str]:
    """Its tags, and the name of its loss."""
    loss = instance.loss
    return {*instance.tags, loss if isinstance(loss, str) else loss.name}


def get(name: str) -> LibraryProblem:
    """The problem of this name, computed here.

    Parameters
    ----------
    name : str
        One of `names()`.

    Returns
    -------
    LibraryProblem
        A `Problem` with `reference`, `record` and `instance`.

    Raises
    ------
    ValueError
        If there is no problem of this name.
    DataNotFound
        If its data set is neither here nor to be fetched.

    Examples
    --------
    >>> problem = get("tiny-hinge")
    >>> problem.reference.relative_gap <= 1e-9
    True
    """
    if not isinstance(name, str):
        raise ValueError(f"name = {short(name)}; give the name of a problem as text")
    if name not in INSTANCES:
        raise ValueError(unknown("problem", name, INSTANCES))
    return INSTANCES[name].build()


def problems(
    *tags: str, only: Iterable[str] | None = None, numbers: float = float("inf")
) -> dict[str, LibraryProblem]:
    """Several problems by name, for `mklopt.race` and `mklopt.check_solver`.

    Problems whose data are not here are left out.

    Parameters
    ----------
    *tags : str
        Those with all of these tags.
    only : iterable of str, optional
        These names, and no others.
    numbers : float
        Kernels of at most so many numbers.

    Returns
    -------
    dict of LibraryProblem
    """
    found = {}
    for name in names(*tags) if only is None else only:
        try:
            problem = get(name)
        except DataNotFound:
            continue
        record = problem.record
        if record is None or record.numbers <= numbers:
            found[name] = problem
    return found
