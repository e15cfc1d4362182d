"""Which problems a solver is given by the exam.

A question is a problem with a formulation and a loss, and the relative gap it should be
solved to. There are graded problems (reference/graded_problems.py), which are always
the same, and fresh ones (fresh.py), drawn from the seed of the exam.

Asked is what is claimed: by the arguments of the exam, or by the traits of a solver. A
function for which nothing is stated claims the hinge with LpNorm(2), and whatever else
it does not refuse: it is asked for every loss and formulation once, and ValueError or
NotImplementedError is then no failure. The same holds for own problems (`problems=`),
which are asked in place of graded and fresh ones: what is not claimed is left out.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...formulations import Formulation, Loss, formulations, losses_by_name
from ...formulations.lp_norm import LpNorm
from ...formulations.text import known_kind, read_formulation
from ...problem import Problem, loss_from
from ...reference.graded_problems import GRADED, GRADES, Graded
from ...run.own_solver import name_of
from ...solvers import Solver
from ...tasks.race import named_problems
from ...util.checks import unknown
from ...util.tables import shown
from .fresh import (
    LARGE_C,
    MEDIUM,
    NO_BIAS,
    QUICK,
    SITUATIONS,
    Rng,
    Situation,
    varied,
    with_other_kernels,
)

DEFAULT_TOL = 1e-6
FRESH = "fresh"  # the grade of the problems that are drawn,
OWN = "own"  # and of those that were given
FIRST_KINDS = ("LpNorm", "BlockL1", "GroupLasso", "VSKL", "Tikhonov")  # tried first,
FIRST_LOSSES = ("hinge", "squared", "logistic", "eps_insensitive")  # if supported
MAX_KINDS = 3  # formulations of a solver that states what it supports, graded
MAX_PAIRS = 40  # of loss and formulation, fresh, besides the first
MORE_PARAMETERS = 4  # fresh problems more for the first pair, with other parameters
AGAIN = 4  # fresh problems that are asked again, in another process
DRAWS = 8  # until a problem fits


@dataclass(frozen=True)
class Question:
    """One problem to be solved, and how well; NaN: as well as the solver promises."""

    grade: str
    name: str
    problem: Problem
    tol: float
    optional: bool = False  # it may be refused
    again: bool = False  # it was asked before, in another process

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
    """The questions, the names of the problems not asked, and the seed."""

    questions: tuple[Question, ...]
    left_out: tuple[str, ...]
    seed: int


class Kind:
    """A formulation for M kernels, from an instance, a class, a function or text."""

    def __init__(self, spec: Any):
        if isinstance(spec, str):  # "LpNorm", or with literals for its parameters
            spec = read_formulation(spec) if set("(:") & set(spec) else known_kind(spec)
        self.spec = spec
        self.family = isinstance(spec, type) and issubclass(spec, Formulation)
        if not self.family and not isinstance(spec, Formulation) and not callable(spec):
            raise ValueError(
                f"formulation {spec!r}: give an instance such as LpNorm(p=2), its "
                "name, or a function of the number of kernels"
            )

    def usual(self, M: int, rng: Any = None) -> Formulation:
        """With the default parameters, where they are not given."""
        if isinstance(self.spec, Formulation):
            return self.spec
        if not self.family:
            return self.spec(M)
        try:
            return self.spec()
        except TypeError:  # it has parameters without a default
            return self.spec.examples(M)[0]

    def covers(self, other: Formulation, M: int) -> bool:
        """Whether a formulation is of this kind, with any parameters if it is open."""
        if self.family:
            return isinstance(other, self.spec)
        try:
            return self.usual(M) == other
        except ValueError:
            return False

    def examples(self, M: int) -> list[Formulation]:
        """Several parameters of a family; otherwise what was given."""
        usual = self.usual(M)
        return [usual, *self.spec.examples(M)] if self.family else [usual]

    def drawn(self, M: int, rng: Rng) -> Formulation:
        """With parameters drawn at random, where they are not given."""
        usual, *others = self.examples(M)
        some = [other for other in others if other != usual] or [usual]
        found = some[int(rng.integers(len(some)))]
        return varied(found, rng) if self.family and rng.random() < 0.5 else found


class Claim(NamedTuple):
    """A formulation and a loss that a solver solves, or may refuse."""

    kind: Kind
    loss: Loss
    family: bool  # whether the parameters of the loss are left open
    optional: bool = False

    def covers(self, problem: Problem) -> bool:
        """Whether a problem has this formulation and this loss."""
        loss = problem.loss
        same = loss.name == self.loss.name if self.family else loss == self.loss
        return same and self.kind.covers(problem.formulation, problem.grams.M)

    def loss_for(self, rng: Rng) -> Loss:
        """The loss, with parameters drawn at random where they are left open."""
        return varied(self.loss, rng) if self.family else self.loss


def plan(
    solver: Any,
    *,
    problems: Any = None,
    formulations: Iterable[Any] | None = None,
    losses: Iterable[str | Loss] | None = None,
    grades: Iterable[str] | None = None,
    leave_out: Iterable[str] = (),
    bias: bool | None = None,
    tol: float | None = None,
    seed: int | None = None,
    quick: bool = False,
) -> Plan:
    """The questions that a solver is asked; see check_solver."""
    asked, leave_out = tuple(grades or (*GRADES, FRESH)), tuple(leave_out)
    _check_names("grade", asked, (*GRADES, FRESH))
    own = {} if problems is None else named_problems(problems, "check_solver")
    named = dict.fromkeys([*own, *(x.name for x in (*GRADED, *SITUATIONS))])
    _check_names("problem to leave out", leave_out, named)
    if tol is not None and not 0 < tol < 1:
        raise ValueError(f"tol = {tol!r}: a relative gap between 0 and 1")
    seed = secrets.randbelow(10**6) if seed is None else _seed(seed)
    traits = solver if isinstance(solver, Solver) else None
    claims = _claims(traits, _list(formulations), _list(losses))
    make = Maker(traits, _bias(traits, bias, leave_out), tol, leave_out)
    if own:
        required = [c for c in claims if not c.optional]
        stated = traits is not None or formulations is not None or losses is not None
        make.own(own, required if stated else None)
        asked = tuple(grades or ())
    if quick and grades is None:
        asked = (GRADES[0], FRESH)
    for claim in _few(claims, traits, quick):
        for graded in (g for g in GRADED if g.grade in asked):
            make.graded(graded, claim)
    if FRESH in asked:
        _draw_fresh(make, claims, np.random.default_rng(seed), quick)
    if not make.questions:
        raise ValueError(
            f"no problem fits {name_of(solver)} with these formulations, losses and "
            "grades"
        )
    return Plan(tuple(make.questions), tuple(make.dropped), seed)


def _seed(given: Any) -> int:
    if isinstance(given, int | np.integer) and given >= 0:
        return int(given)
    raise ValueError(f"seed = {given!r}: an integer from 0")


def _check_names(what: str, given: Iterable[str], known: Iterable[str]) -> None:
    for name in given:
        if name not in known:
            raise ValueError(unknown(what, name, known))


def _list(given: Any) -> list:
    """What was asked for, one or many; nothing: to be chosen here."""
    if given is None:
        return []
    single = isinstance(given, str | Formulation | Loss) or callable(given)
    return [given] if single else list(given)


def _bias(traits: Solver | None, bias: bool | None, leave_out: tuple) -> bool | None:
    """The only bias that it solves; None for both."""
    if bias is None and traits is not None and len(traits.bias) == 1:
        return next(iter(traits.bias))
    return True if bias is None and NO_BIAS in leave_out else bias


# ---- what is claimed ---------------------------------------------------------


def _claims(traits: Solver | None, kinds: list, losses: list) -> list[Claim]:
    """All that was asked for; by default what a solver states, or the usual SVM."""
    some = [(loss_from(x), isinstance(x, str)) for x in losses]
    given = [Kind(x) for x in kinds]
    if traits is not None:
        return _stated(traits, given, some)
    first = [Claim(k, *x) for k in given or [Kind(LpNorm(2.0))] for x in some or HINGE]
    found, (main, *_) = list(first), first
    for name in () if given else dict.fromkeys((*FIRST_KINDS, *formulations())):
        found.append(Claim(Kind(name), main.loss, main.family, True))
    for name in () if losses else dict.fromkeys((*FIRST_LOSSES, *losses_by_name())):
        if name != main.loss.name:
            found.append(Claim(main.kind, loss_from(name), True, True))
    return found


HINGE = [(loss_from("hinge"), True)]


def _stated(traits: Solver, kinds: list[Kind], losses: list) -> list[Claim]:
    """The pairs a solver states to support, tried on the first graded problem."""
    kinds = kinds or [Kind(x) for x in dict.fromkeys((*FIRST_KINDS, *formulations()))]
    names = dict.fromkeys((*FIRST_LOSSES, *losses_by_name()))
    some = losses or [(loss_from(name), True) for name in names]
    found = [
        Claim(kind, *loss)
        for loss in some
        for kind in kinds
        if _takes(traits, kind, loss[0])
    ]
    if not found:
        raise ValueError(
            f"{traits.name} supports none of these formulations and losses"
        )
    return found


def _takes(traits: Solver, kind: Kind, loss: Loss) -> bool:
    """Whether a solver supports some example of this kind with this loss."""
    M = GRADED[0].draw()[0].M
    both = [True, False] if loss.bias_allowed else [False]
    for omega in kind.examples(M):
        for bias in both:
            try:
                problem = GRADED[0].problem(omega, loss, bias)
            except ValueError:
                continue
            if not traits.why_not(problem):
                return True
    return False


def _few(claims: list[Claim], traits: Solver | None, quick: bool) -> list[Claim]:
    """The claims for graded problems: those asked for, or the first of those stated."""
    required = [claim for claim in claims if not claim.optional]
    if quick:
        return required[:1]
    if traits is None:
        return required
    first = required[0]
    same_loss = [c for c in required if c.loss == first.loss][:MAX_KINDS]
    others = [c for c in required if c.kind is first.kind and c.loss != first.loss]
    return [*same_loss, *others[:1]]


# ---- questions ---------------------------------------------------------------


class Maker:
    """Questions for one solver; what does not fit it is written down."""

    def __init__(
        self,
        traits: Solver | None,
        bias: bool | None,
        tol: float | None,
        leave_out: tuple[str, ...],
    ):
        self.traits, self.bias, self.leave_out = traits, bias, leave_out
        self.goal = DEFAULT_TOL if tol is None else tol
        if tol is None and traits is not None:
            self.goal = math.nan if callable(traits.accuracy) else traits.accuracy
        self.questions: list[Question] = []
        self.dropped: dict[str, bool] = {}

    def add(self, grade: str, name: str, problem: Problem | None, claim: Claim) -> None:
        """Ask for this problem, unless it does not fit."""
        if name in self.leave_out or problem is None:
            if not claim.optional:
                self.dropped[name] = True
            return
        found = Question(grade, name, problem, self.goal, claim.optional)
        self.questions.append(found)

    def own(self, problems: dict[str, Problem], claims: list[Claim] | None) -> None:
        """Own problems, unless the solver does not claim them; None: no claims."""
        for name, problem in problems.items():
            claimed = claims is None or any(claim.covers(problem) for claim in claims)
            other = self.bias is not None and problem.bias != self.bias
            if (
                name in self.leave_out
                or other
                or not claimed
                or not self._fits(problem)
            ):
                self.dropped[f"{name} (not claimed)"] = True
                continue
            optional = claims is None
            self.questions.append(Question(OWN, name, problem, self.goal, optional))

    def graded(self, graded: Graded, claim: Claim) -> None:
        """A graded problem with the formulation and loss of a claim."""
        self.add(graded.grade, graded.name, self._graded(graded, claim), claim)

    def _graded(self, graded: Graded, claim: Claim) -> Problem | None:
        if self.bias and not graded.bias:
            return None
        try:
            omegas = claim.kind.examples(graded.draw()[0].M)
        except ValueError:
            return None
        for omega in omegas:
            for bias in [self.bias] if self.bias is not None else [True, False]:
                try:
                    problem = graded.problem(omega, claim.loss, bias)
                except ValueError:
                    continue
                if self._fits(problem):
                    return problem
        return None

    def _fits(self, problem: Problem) -> bool:
        return self.traits is None or not self.traits.why_not(problem)

    def fresh(
        self, situation: Situation, claim: Claim, rng: Rng, usual: bool = False
    ) -> None:
        """A fresh problem of this situation."""
        found = None
        for _ in range(DRAWS):
            make = claim.kind.usual if usual else claim.kind.drawn
            loss = claim.loss if usual else claim.loss_for(rng)
            try:
                problem = situation.problem(rng, make, loss, self.bias)
            except (ValueError, IndexError):
                continue
            if self._fits(problem):
                found = problem
                break
            usual = False
        self.add(FRESH, situation.name, found, claim)
        if found is not None and situation.name == SITUATIONS[0].name:
            other = with_other_kernels(found, rng)
            self.add(FRESH, "same labels, other kernels", other, claim)


def _draw_fresh(make: Maker, claims: list[Claim], rng: Rng, quick: bool) -> None:
    """Every situation with the first claim, all claims in some, and some again."""
    main, *others = claims
    small = [s for s in SITUATIONS if s.n[1] < 100 and s.name not in make.leave_out]
    telling = [s for s in small if s.telling] or SITUATIONS
    asked = SITUATIONS[:QUICK] if quick else (*SITUATIONS, *small)  # small ones twice
    for k, situation in enumerate(asked):
        make.fresh(situation, main, rng, usual=k % 2 == 0)
    varying = next((claim for claim in claims if claim.kind.family), main)
    for _ in range(3 if quick else MORE_PARAMETERS):
        make.fresh(_one_of(telling, rng), varying, rng)
    for claim in _spread(others, main.loss, rng, 6 if quick else MAX_PAIRS):
        make.fresh(_one_of(telling, rng), claim, rng)
    if not quick:
        for claim in _one_per_loss(others, main):
            make.fresh(MEDIUM, claim, rng)
            make.fresh(LARGE_C, claim, rng)
    drawn = [q for q in make.questions if q.grade == FRESH and not q.optional]
    some = rng.permutation(len(drawn))[: 2 if quick else AGAIN]
    chosen = [drawn[k] for k in some]
    for q in [*chosen, *chosen[-1:]]:
        make.questions.append(
            Question(FRESH, f"{q.name}, again", q.problem, q.tol, again=True)
        )


def _one_of(situations: Sequence[Situation], rng: Rng) -> Situation:
    return situations[int(rng.integers(len(situations)))]


def _spread(claims: list[Claim], loss: Loss, rng: Rng, most: int) -> Iterator[Claim]:
    """At most so many claims at random, half of them with another loss.

    First come those with something that was not seen yet.
    """
    order = [*rng.permutation(len(claims)), *rng.permutation(len(claims))]
    shuffled = [claims[k] for k in order]  # twice, where there is room
    seen: set[Any] = set()
    sides: dict[bool, list[list[Claim]]] = {True: [[], []], False: [[], []]}
    for claim in shuffled:
        parts = {id(claim.kind), claim.loss.name}
        sides[claim.loss == loss][parts <= seen].append(claim)
        seen |= parts
    one, two = ([*new, *old] for new, old in sides.values())
    yield from [*one[: most - min(most // 2, len(two))], *two][:most]


def _one_per_loss(claims: list[Claim], main: Claim) -> Iterator[Claim]:
    """The first claim of every other loss."""
    seen = {main.loss.name}
    for claim in claims:
        if claim.loss.name not in seen:
            seen.add(claim.loss.name)
            yield claim
