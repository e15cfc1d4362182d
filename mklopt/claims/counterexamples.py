"""Counter-examples to printed rates, as problems that run.

A refuted rate has a problem on which its bound fails: an MKL `Problem`, or a function
where the theorem speaks of functions. papers/<key>/counterexamples.py declares them:

    @counterexample("aflalo2011", "theorem 3.1, item 3", problem=two_pieces)
    def shrinking_steps(problem, most): …        # the printed bound, in our words
        return [Step(t, value, printed), …]

Each runs by itself, so that anybody can look at the steps at which it fails, and its
problem can be given to any other method. What is right instead: papers/ERRATA.md.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..problem import Problem
from ..util.checks import check_whole
from ..util.tables import plain_table, shown
from .items import ROOT, about, known

ROUNDING = 1e-9  # relative: a bound that is exceeded by less is not refuted


class Step(NamedTuple):
    """After t steps: what the printed bound speaks of, and the bound."""

    t: int
    value: float
    printed: float


@dataclass(frozen=True)
class CounterExample:
    """A problem on which a printed rate fails.

    Parameters
    ----------
    paper, place : str
        Where the rate is printed.
    name, printed : str
        The name of the function, and the rate in our words.
    problem : callable
        () → the problem.
    steps : callable
        (problem, number of steps) → list of Step.
    most : int
        The number of steps that shows it.
    """

    paper: str
    place: str
    name: str
    printed: str
    problem: Callable[[], Any]
    steps: Callable[[Any, int], list[Step]]
    most: int

    def run(self, most: int | None = None) -> list[Step]:
        """Run the method of the paper on the problem.

        Parameters
        ----------
        most : int, optional
            The number of steps.

        Returns
        -------
        list of Step
        """
        count = self.most if most is None else most
        check_whole(count, "most", 1)
        return self.steps(self.problem(), count)

    def refutes(self, found: list[Step] | None = None) -> bool:
        """Whether the printed bound is exceeded at some step."""
        found = self.run() if found is None else found
        return any(step.value > step.printed * (1 + ROUNDING) for step in found)

    def table(self, found: list[Step] | None = None) -> Any:
        """The steps as a table, those at which the bound fails with a mark."""
        title = f"{self.paper}, {self.place}: {self.printed}"
        table = plain_table(title, (), ["t", "value", "printed bound", ""])
        for step in self.run() if found is None else found:
            fails = step.value > step.printed * (1 + ROUNDING)
            numbers = f"{step.value:.6g}", f"{step.printed:.6g}"
            table.add_row(str(step.t), *numbers, "exceeded" if fails else "")
        return table

    def save(self, path: str | Path) -> None:
        """Write the kernels and labels of an MKL problem, and what else it is made of.

        Parameters
        ----------
        path : str or path
            The .npz file: K, y, and `about`, one line with loss, formulation, C and
            bias. `mklopt solve FILE --formulation …` reads it.

        Raises
        ------
        ValueError
            If the problem is a function that is no MKL problem.
        """
        p = self.problem()
        if not isinstance(p, Problem):
            raise ValueError(
                f"{self.name} is about {type(p).__name__}, not about an MKL problem: "
                "take `problem()` itself"
            )
        about = f"{shown(p.loss)}, {shown(p.formulation)}, C = {p.C}, bias = {p.bias}"
        np.savez(path, K=p.grams.dense(), y=p.y, about=np.array(about))


def counterexample(
    paper: str, place: str, *, problem: Callable[[], Any], most: int = 10
) -> Callable[[Callable[[Any, int], list[Step]]], CounterExample]:
    """Declare a counter-example; the docstring is the printed rate, in our words.

    Parameters
    ----------
    paper, place : str
        Where the rate is printed.
    problem : callable
        () → the problem.
    most : int
        The number of steps that shows it.

    Returns
    -------
    callable
        The decorator.
    """

    def declare(steps: Callable[[Any, int], list[Step]]) -> CounterExample:
        printed = " ".join((steps.__doc__ or "").split())
        return CounterExample(
            paper, place, steps.__name__, printed, problem, steps, most
        )

    return declare


def counterexamples(key: str) -> list[CounterExample]:
    """The counter-examples of a paper.

    Parameters
    ----------
    key : str
        A paper, or "all".

    Returns
    -------
    list of CounterExample
        Empty, if no rate of the paper is refuted.
    """
    found: list[CounterExample] = []
    for one in known() if key == "all" else [key]:
        about(one)  # refuses what is no paper, and makes papers/ importable
        if (ROOT / "papers" / one / "counterexamples.py").exists():
            module = importlib.import_module(f"papers.{one}.counterexamples")
            parts = vars(module).values()
            found += [part for part in parts if isinstance(part, CounterExample)]
    return found
