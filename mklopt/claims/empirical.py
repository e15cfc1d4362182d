"""Empirical claims: one number for each seed, a bound stated beforehand, a control.

    @empirical("nobody2026", "Table 1", measured="seconds of A over seconds of B",
               data=("sonar",), rule=at_least(10, partly=2, log=True), seeds=5)
    def b_is_ten_times_as_fast(scale):
        '''B is an order of magnitude faster than A.'''
        rows = studies.race(scale)
        return ratio(rows, "A", "B")

    @b_is_ten_times_as_fast.control("B is ten times as fast as B", at_least(10))
    def b_against_itself(scale):
        rows = studies.race(scale)
        return ratio(rows, "B", "B started anew")

The function returns the number that the rule judges, at the seed of its scale, or a
dict of numbers: those that the rule names are judged, the others are shown. The control
has a statement and a number of its own, and the same data must refute it.

A claim is judged by an interval over its seeds, at quick size and at the paper's. It
has the verdict on which both agree; otherwise it is inconclusive. Before it is run it
is registered (`mklopt.claims.registry`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from .bounds import INTERVALS, Bound, interval, together
from .items import NOT_REPRODUCED, Claim, Scale, enlist
from .source import Source, body

LEAST_SEEDS = 3
Rule = Bound | Mapping[str, Bound]
Numbers = dict[str, list[float]]  # by name, one per seed


class SameAsClaim(ValueError):
    """A control measured what its claim measures."""


@dataclass(frozen=True)
class Control:
    """A statement that the same data must refute, by a number of its own."""

    run: Callable[[Scale], Any]
    statement: str
    rule: Mapping[str, Bound]


@dataclass(frozen=True)
class Judged:
    """What an interval over the seeds says."""

    verdict: str
    evidence: str
    numbers: Numbers
    intervals: dict[str, tuple[float, float, float]]


@dataclass(frozen=True, eq=False)
class Empirical(Claim):
    """A claim that is measured."""

    measured: str = ""
    data: tuple[str, ...] = ()
    rule: Mapping[str, Bound] = field(default_factory=dict)
    seeds: tuple[int, ...] = ()
    full_seeds: tuple[int, ...] = (0,)
    kind: str = "t"
    whole: str = ""
    stand_in: str = ""
    controls: list[Control] = field(default_factory=list)

    def control(self, statement: str, rule: Rule) -> Callable[[Any], Any]:
        """Declare a statement that the same data must refute."""
        named = _rule(rule)
        if len(statement.split()) < 4:
            raise ValueError(f"the control of {self.name} needs a statement")

        def kept(run: Callable[[Scale], Any]) -> Callable[[Scale], Any]:
            if body(run) == body(self.run):
                raise ValueError(
                    f"the control of {self.name} measures what the claim measures; it "
                    "needs a number of its own"
                )
            self.controls.append(Control(run, statement, named))
            return run

        return kept

    def seeds_of(self, mode: str) -> tuple[int, ...]:
        """The seeds that the registered verdict rests on."""
        return {"quick": self.seeds, "full": self.full_seeds}.get(mode, self.seeds[:1])

    @cached_property
    def source(self) -> Source:
        """Of the rule, its helpers, its studies and its controls."""
        return Source(self.run, *(control.run for control in self.controls))

    def check(self, scale: Scale, wrong: bool = False) -> Any:
        """The claim at a mode and its registered seeds, and its controls."""
        return self.judge(scale, self.seeds_of(scale.mode))

    __call__ = check

    def judge(self, scale: Scale, seeds: Sequence[int]) -> tuple[Judged, list[Judged]]:
        """What the data of these seeds say of the claim, and of its controls."""
        found = measure(self.run, self.rule, scale, seeds)
        mine = judged(found, self.rule, self.kind, self.measured)
        others = []
        for control in self.controls:
            numbers = measure(control.run, control.rule, scale, seeds)
            if scale.mode != "tiny":  # one seed: numbers are equal by chance
                _check_own(self, found, control, numbers)
            others.append(judged(numbers, control.rule, self.kind, control.statement))
        return mine, others


def measure(
    run: Callable[[Scale], Any],
    rule: Mapping[str, Bound],
    scale: Scale,
    seeds: Sequence[int],
) -> Numbers:
    """The numbers of a function at several seeds."""
    found: Numbers = {}
    for seed in seeds:
        value = run(replace(scale, seed=seed))
        named = value if isinstance(value, dict) else {"": value}
        if missing := set(rule) - set(named):
            raise ValueError(f"the rule names {missing}; {run.__name__} returns others")
        for name, number in named.items():
            found.setdefault(name, []).append(float(number))
    return found


def judged(
    numbers: Numbers, rule: Mapping[str, Bound], kind: str, words: str
) -> Judged:
    """The verdict of numbers by seed."""
    intervals, verdicts, said = {}, [], []
    for name, bound in rule.items():
        low, middle, high = interval(numbers[name], kind, len(rule), bound.log)
        intervals[name] = (low, middle, high)
        verdicts.append(bound.verdict((low, high)))
        text = f"{name} {middle:.4g}".lstrip()
        if len(numbers[name]) > 1:
            kinds = {"t": "95 %: ", "range": "least and largest: "}
            text += f" ({kinds[kind]}{low:.4g} to {high:.4g})"
        said.append(f"{text}, to be {bound.words()}")
    more = [
        f"{name} {np.median(values):.4g}"
        for name, values in numbers.items()
        if name not in rule
    ]
    evidence = f"{words}: {'; '.join(said)}"
    evidence += f". Beside it: {', '.join(more)}" if more else ""
    return Judged(together(verdicts), evidence, numbers, intervals)


def _check_own(claim: Empirical, found: Numbers, control: Control, other: Numbers):
    """A control whose numbers follow from those of its claim tells nothing."""
    for mine in (np.array(found[name]) for name in claim.rule):
        if np.all(np.isin(mine, (-1, 0, 1))):
            continue  # shares of all or nothing are equal by chance
        for theirs in (np.array(other[name]) for name in control.rule):
            with np.errstate(all="ignore"):
                forms = (mine, -mine, 1 - mine, 1 / mine)
            if any(np.allclose(form, theirs, rtol=1e-9, atol=0) for form in forms):
                raise SameAsClaim(
                    f"{control.run.__name__} measured the number of {claim.name}, or "
                    "its complement, on all seeds; a control needs one of its own"
                )


def empirical(
    paper: str,
    place: str,
    *,
    measured: str,
    data: Sequence[str],
    rule: Rule,
    seeds: int | Sequence[int] = 5,
    full_seeds: int | Sequence[int] = 1,
    interval: str = "t",
    whole: str = "",
    stand_in: str = "",
    figure: str = "",
) -> Callable[[Callable[[Scale], Any]], Empirical]:
    """Declare an empirical claim.

    Parameters
    ----------
    paper, place : str
        The key of the paper, and where it says so.
    measured : str
        What the number is, in words, such as "seconds of PGD over seconds of SPG".
    data : sequence of str
        The names of the data sets; drawn ones by their names, too.
    rule : Bound or dict
        What the number has to be: `at_least`, `at_most` or `between`; for a function
        that returns a dict, one bound for each name that is judged.
    seeds, full_seeds : int or sequence of int
        Seeds at quick size, three or more, and at full size.
    interval : {"t", "range"}
        See `mklopt.claims.bounds`.
    whole : str
        Why quick has the size of the paper; then no full run is asked for.
    stand_in : str
        Which data stand in for those of the paper; what they refute is then called
        not reproduced.
    figure : str
        The name of the figure that shows it.

    Returns
    -------
    callable
        A decorator for a function of a `Scale` that returns a number, or a dict of
        numbers. Its docstring is the statement, in our words.
    """
    quick, full = _seeds(seeds), _seeds(full_seeds)
    if len(quick) < LEAST_SEEDS:
        raise ValueError(f"{len(quick)} seeds at quick size; {LEAST_SEEDS} or more")
    if interval not in INTERVALS:
        raise ValueError(f"interval {interval!r}; choose one of {', '.join(INTERVALS)}")
    if isinstance(data, str) or not data or not measured:
        raise ValueError("say what is measured, and list the names of the data")
    how: dict[str, Any] = {
        "measured": measured,
        "data": tuple(data),
        "rule": _rule(rule),
    }
    how |= {"seeds": quick, "full_seeds": full, "kind": interval}
    how |= {"whole": whole, "stand_in": stand_in}

    def declared(run: Callable[[Scale], Any]) -> Empirical:
        return enlist(Empirical(run, paper, place, None, figure, **how))

    return declared


def _rule(rule: Rule) -> Mapping[str, Bound]:
    return {"": rule} if isinstance(rule, Bound) else dict(rule)


def _seeds(seeds: int | Sequence[int]) -> tuple[int, ...]:
    return tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds)


# ---- quick and full --------------------------------------------------------------


def final(claim: Empirical, quick: dict | None, full: dict | None) -> tuple[str, str]:
    """The verdict on which both sizes agree, and why; from their records."""
    parts = {"quick": quick, "full": full}
    known = {mode: one for mode, one in parts.items() if one and one["intervals"]}
    said = [_said(mode, record) for mode, record in known.items()]
    said += [f"{m.capitalize()}: {r['evidence']}" for m, r in parts.items()
             if r and m not in known]  # fmt: skip
    if claim.whole:
        said.append(f"Quick has the paper's size: {claim.whole}")
    said += [
        f"At {mode} size not run"
        for mode, record in parts.items()
        if not record and not (mode == "full" and claim.whole)
    ]
    verdicts = {record["verdict"] for record in known.values()}
    enough = {"quick"} if claim.whole else {"quick", "full"}
    verdict = "inconclusive"
    if enough <= known.keys() and len(verdicts) == 1:
        verdict = verdicts.pop()
    if any(set(record["controls"]) != {"refuted"} for record in known.values()):
        verdict = "inconclusive"
        said.append("A control was not refuted")
    if claim.stand_in:
        said.append(f"Stand-in data: {claim.stand_in}")
        verdict = NOT_REPRODUCED if verdict == "refuted" else verdict
    return verdict, ". ".join(said)


def _said(mode: str, record: dict[str, Any]) -> str:
    count = len(record["seeds"])
    seeds = f"{count} seeds" if count > 1 else "one run"
    return f"{mode.capitalize()}, {seeds}: {record['verdict']}: {record['evidence']}"
