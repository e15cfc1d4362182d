"""One library problem as a declaration: where its data come from, Ω, V, C and bias."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from typing import Any

from ..formulations import Loss
from ..formulations.text import formulation_from
from ..grams.stack import GramStack
from ..problem import Problem
from ..reference import Reference
from ..util.arrays import Array
from .points import Points
from .stacks import Drawn, Kernels
from .stored_records import Record, records, reference_of


@dataclass(frozen=True)
class Instance:
    """A named problem, not yet computed.

    Parameters
    ----------
    name : str
    about : str
        One line: what is special about it.
    points : callable
        A source of points X and y, or of a stack of kernels and y.
    kernels : callable or None
        What makes kernels of the points; None if the source has its own.
    loss : str or Loss
    formulation : str
        Text such as "lp:p=2".
    C : float
    bias : bool
    tags : tuple of str
        Such as "real", "degenerate".
    """

    name: str
    about: str
    points: Callable[[], Points] | Drawn
    kernels: Kernels | None
    loss: str | Loss
    formulation: str
    C: float = 1.0
    bias: bool = True
    tags: tuple[str, ...] = ()

    @property
    def origin(self) -> str:
        """The recipe in one line."""
        kernels = "" if self.kernels is None else f", kernels {_told(self.kernels)}"
        return f"{_told(self.points)}{kernels}"

    def stack(self) -> tuple[GramStack, Array]:
        """The kernels and the labels."""
        if isinstance(self.points, Drawn):
            return self.points()
        X, y = self.points()
        assert self.kernels is not None
        return self.kernels(X), y

    def build(self) -> LibraryProblem:
        """The problem itself.

        Raises
        ------
        DataNotFound
            If its data set is neither here nor to be fetched.
        """
        grams, y = self.stack()
        how = formulation_from(self.formulation)
        return LibraryProblem(grams, y, self.loss, how, self.C, self.bias).of(self)


def _told(recipe: Any) -> str:
    """A recipe without the parameters that have their default."""
    known = [(part, getattr(recipe, part.name)) for part in fields(recipe)]
    said = [
        f"{part.name}={_told(value) if is_dataclass(value) else repr(value)}"
        for part, value in known
        if value != part.default
    ]
    return f"{type(recipe).__name__}({', '.join(said)})"


class LibraryProblem(Problem):
    """A problem of the library: a `Problem` that knows its name and its optimum.

    What `with_` makes of it is a plain `Problem`.

    Attributes
    ----------
    instance : Instance
        The declaration; `instance.name`, `instance.about`, `instance.origin`.
    """

    instance: Instance

    def of(self, instance: Instance) -> LibraryProblem:
        """The same, belonging to a declaration.

        Parameters
        ----------
        instance : Instance

        Returns
        -------
        LibraryProblem
        """
        object.__setattr__(self, "instance", instance)
        return self

    @property
    def record(self) -> Record | None:
        """What is known of it, as it was found before; None: nothing."""
        return records().get(self.instance.name)

    @cached_property
    def stored(self) -> Reference | None:
        """The stored points, certified afresh; None if there are none."""
        return reference_of(self)

    @property
    def reference(self) -> Reference:
        """The stored points, certified afresh: .lower ≤ f* ≤ .upper.

        Raises
        ------
        LookupError
            If there are none for the kernels that this machine computes.
        """
        if self.stored is None:
            raise LookupError(
                f"{self.instance.name} has no stored solution for the problem with the "
                f"hash {self.digest()[:16]}; `mklopt library check` compares hashes"
            )
        return self.stored

    def with_(self, **changes: Any) -> Problem:  # type: ignore[override]
        """A plain `Problem` with some of its parts replaced, and checked again.

        Parameters
        ----------
        **changes
            Parameters of Problem, by name.

        Returns
        -------
        Problem
        """
        parts = {part.name: getattr(self, part.name) for part in fields(self)}
        return Problem(**(parts | changes))
