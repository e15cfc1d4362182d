"""Executable papers: what a paper claims, as checks that run and can fail.

papers/<key>/ holds modules with four kinds of functions, each of a `Scale`:

    @study     measures something and returns a table; kept as CSV, computed once
    @claim     a statement of the paper (its docstring, in our words) and a check of it
    @figure    a figure of the paper, redrawn from studies; its docstring is the caption
    @table     a table of the paper in shape, a DataFrame; likewise

A check returns a `Finding`: confirmed, refuted, partly, vacuous (true, but it says
nothing) or not testable (with the reason), and the evidence in words and numbers. It
must be able to fail: called with wrong=True the same check judges a perturbed
statement, and has to come to the opposite verdict (`CONTRARY`).

A `Scale` says how much to compute: tiny for tests, quick for a laptop, full for the
sizes of the paper; and where studies are kept. Everything is a function of the seed,
columns that begin with "seconds" excepted.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import io
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from ..campaign.fingerprint import fingerprint
from ..util.checks import unknown
from ..util.files import write_whole
from ..util.style import styled
from ..util.tables import read_csv
from .rows import Part, measured

if TYPE_CHECKING:
    import pandas as pd

    from ..judge.rates import RateCheck

ROOT = Path(__file__).resolve().parents[2]  # of a checkout
MODES = ("tiny", "quick", "full")
NOT_REPRODUCED = "not reproduced on stand-in data"
VERDICTS = (
    *("confirmed", "refuted", "partly", "vacuous", "not testable"),
    *("inconclusive", NOT_REPRODUCED, "not run"),
)
CONTRARY = {
    "confirmed": {"refuted"},
    "partly": {"refuted"},
    "vacuous": {"refuted"},
    "refuted": {"confirmed"},
}
FROM_RATES = {"holds": "confirmed", "violated": "refuted"}
Kind = TypeVar("Kind", bound="Item")
Size = TypeVar("Size")


class NotACheckout(LookupError):
    """papers/ is not part of an installed package."""


@dataclass(frozen=True)
class Scale:
    """How much to compute, from which seed, and where studies are kept.

    Parameters
    ----------
    mode : {"tiny", "quick", "full"}
        Sizes for tests, for a laptop, or those of the paper.
    seed : int
        Of all random numbers.
    folder : Path or None
        Where studies and verdicts are kept for the next run; None: in memory only.

    Examples
    --------
    >>> Scale("tiny").of(10, 100, 1000)
    10
    """

    mode: str = "quick"
    seed: int = 0
    folder: Path | None = None

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ValueError(f"mode {self.mode!r}; choose one of {', '.join(MODES)}")

    def of(self, tiny: Size, quick: Size, full: Size) -> Size:
        """Return one of three sizes.

        Parameters
        ----------
        tiny, quick, full : any
            What to return in each mode.

        Returns
        -------
        any
            The one that belongs to the mode.
        """
        return (tiny, quick, full)[MODES.index(self.mode)]

    def rng(self, *names: object) -> np.random.Generator:
        """Return random numbers that depend on the seed and on these names alone.

        Parameters
        ----------
        *names : object
            What the numbers are for; other names give other numbers.

        Returns
        -------
        numpy.random.Generator
            The same numbers every time.
        """
        words = "/".join(map(str, (self.seed, *names)))
        digest = hashlib.sha256(words.encode()).digest()
        return np.random.default_rng(int.from_bytes(digest[:8], "little"))


@dataclass(frozen=True)
class Finding:
    """What a check came to: a verdict, the evidence in words, and its numbers.

    Parameters
    ----------
    verdict : {"confirmed", "refuted", "partly", "vacuous", "not testable"}
        Vacuous: true, but it says nothing.
    evidence : str
        Why, in words and numbers.
    numbers : dict
        What was measured, by name; written to the ledger of the paper.

    Raises
    ------
    ValueError
        Where the verdict is another word, or the evidence is empty.
    """

    verdict: str
    evidence: str
    numbers: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ValueError(f"{self.verdict!r}; choose one of {', '.join(VERDICTS)}")
        if not self.evidence.strip():
            raise ValueError("a verdict needs its evidence in words")
        plain = {name: _plain(value) for name, value in self.numbers.items()}
        object.__setattr__(self, "numbers", plain)

    @classmethod
    def of(cls, verdict: RateCheck, **numbers: Any) -> Self:
        """Return the finding that a verdict of `mklopt.rates` means.

        Parameters
        ----------
        verdict : RateCheck
            What a check of a rate came to: holds, violated, vacuous or not testable.
        **numbers
            More numbers for the ledger.

        Returns
        -------
        Finding
            Its evidence is the reason of the verdict.
        """
        found = FROM_RATES.get(verdict.status, verdict.status)
        known = {"slack": verdict.slack, "at": verdict.at, **verdict.constants}
        return cls(found, verdict.reason, {**known, **numbers})


def decide(good: Any, evidence: str, **numbers: Any) -> Finding:
    """Return a finding: confirmed or refuted.

    Parameters
    ----------
    good : bool
        Whether the statement is confirmed.
    evidence : str
        Why, in words and numbers.
    **numbers
        What was measured, by name.

    Returns
    -------
    Finding
        What a claim returns.
    """
    return Finding("confirmed" if good else "refuted", evidence, numbers)


def _plain(value: Any) -> Any:
    """What JSON can hold: numbers that are not finite become words."""
    if isinstance(value, np.ndarray | list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value


# ---- the four kinds --------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Item:
    """A function of a paper, with its name, its place in the paper and its words."""

    run: Callable[..., Any]
    paper: str
    place: str = ""

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.run.__name__

    @property
    def words(self) -> str:
        """The docstring on one line: the statement, or the caption."""
        return " ".join((self.run.__doc__ or "").split())

    @property
    def fingerprint(self) -> str:
        """Of the file that the item is in, and of all code it imports."""
        return fingerprint(self.run.__module__)

    def kept(self, scale: Scale, ending: str) -> Path | None:
        """Where its outcome at a scale is kept; None: nowhere."""
        if scale.folder is None:
            return None
        stem = f"{self.name}-{scale.mode}-{scale.seed}-{self.fingerprint}"
        return scale.folder / self.paper / f"{stem}.{ending}"

    def __call__(self, scale: Scale) -> Any:
        return self.run(scale)


@dataclass(frozen=True, eq=False)
class Study(Item):
    """A table that is measured once for a scale, and read afterwards.

    parts(scale) lists the keywords of the calls that make its rows; each call is kept
    on disk when it ends. timed: it is measured while nothing else of the run computes.
    """

    parts: Callable[[Scale], list[dict[str, Any]]] | None = None
    timed: bool = False

    def __call__(self, scale: Scale) -> pd.DataFrame:
        _USED.append(self.name)
        path = self.kept(scale, "csv")
        if path is None:
            return _remembered(self, scale).copy()
        if not path.exists():
            found = measured(self.calls(scale), path.with_suffix(".jsonl"), str(self))
            write_whole(path, csv(found).encode())
        return _read(path)

    def calls(self, scale: Scale) -> list[Part]:
        """The calls that make the table, one after the other."""
        if self.parts is None:
            return [Part({}, partial(self.run, scale))]
        return [Part(about, partial(self.run, scale, **about))
                for about in self.parts(scale)]  # fmt: skip

    def over(self, scale: Scale, seeds: Sequence[int]) -> pd.DataFrame:
        """The tables of several seeds, one below the other, with a column `seed`."""
        import pandas as pd

        tables = [self(replace(scale, seed=seed)) for seed in seeds]
        return pd.concat(tables, keys=seeds, names=["seed", None]).reset_index("seed")

    def __str__(self) -> str:
        return f"{self.paper} {self.name}"


_USED: list[str] = []  # studies that were asked for, in order: the data of a figure


def csv(rows: pd.DataFrame) -> str:
    """A table as CSV, the same bytes on every system."""
    return rows.to_csv(index=False, lineterminator="\n")


def _read(path: Any) -> pd.DataFrame:
    return read_csv(path, keep_default_na=False, na_values=["", "nan", "NaN"])


@lru_cache(maxsize=64)
def _remembered(study: Study, scale: Scale) -> pd.DataFrame:
    return _read(io.StringIO(csv(measured(study.calls(scale)))))


@dataclass(frozen=True, eq=False)
class Claim(Item):
    """A statement and its check; `wrong` says what is perturbed when it has to fail."""

    wrong: str | None = None
    figure: str = ""

    def check(self, scale: Scale, wrong: bool = False) -> Finding:
        """The verdict on the statement, or on the perturbed one."""
        found = self.run(scale, wrong=True) if wrong else self.run(scale)
        if not isinstance(found, Finding):
            raise TypeError(f"{self.name} returned {found!r}; return a Finding")
        return found

    __call__ = check


@dataclass(frozen=True, eq=False)
class Drawn(Item):
    """A figure or a table; sizes: what the caption adds, by mode."""

    sizes: dict[str, str] = field(default_factory=dict)

    def caption(self, mode: str) -> str:
        """The words, and what is true of this mode only."""
        return f"{self.words} {self.sizes.get(mode, '')}".rstrip()


class Figure(Drawn):
    """A figure, drawn in the one style."""

    @styled
    def __call__(self, scale: Scale) -> Any:
        found = self.run(scale)
        if found.get_layout_engine() is None:
            found.tight_layout()
        return found


class Sheet(Drawn):
    """A table."""


@dataclass(frozen=True)
class Outcome:
    """What became of one item: a verdict for a claim, a reason where it failed."""

    paper: str
    kind: str
    name: str
    seconds: float = 0.0
    studies: tuple[str, ...] = ()
    verdict: str = ""
    evidence: str = ""
    numbers: dict[str, Any] = field(default_factory=dict)
    contrary: str = ""  # the verdict on the perturbed statement
    contrary_evidence: str = ""
    missing: str = ""  # data that are not here
    error: str = ""
    unfinished: str = ""  # the time of the run was over
    seeds: tuple[int, ...] = ()  # of an empirical claim
    registration: str = ""
    controls: tuple[str, ...] = ()  # their verdicts
    intervals: dict[str, Any] = field(default_factory=dict)

    @property
    def judged(self) -> str:
        """The verdict of a claim; without its data it is not testable here."""
        return self.verdict or ("not testable" if self.missing else "failed")

    @property
    def why_not(self) -> str:
        """Why there is nothing to show, on one line; empty where there is."""
        return self.missing or self.unfinished or "".join(self.error.splitlines()[-1:])

    @property
    def sound(self) -> bool:
        """It ran, and its check came to the opposite verdict when it had to."""
        if self.error or self.unfinished:
            return False
        if self.controls:
            return set(self.controls) == {"refuted"}
        return not self.contrary or self.contrary in CONTRARY.get(self.verdict, set())


@dataclass
class Paper:
    """All that a folder declares, in the order of its files."""

    key: str
    title: str  # authors, name and year, on one line
    about: str
    studies: dict[str, Study]
    claims: dict[str, Claim]
    figures: dict[str, Figure]
    sheets: dict[str, Sheet]

    def items(self) -> list[Item]:
        """Everything, studies first."""
        kinds = (self.studies, self.claims, self.figures, self.sheets)
        return [item for kind in kinds for item in kind.values()]


_ITEMS: dict[tuple[str, str], Item] = {}


def enlist(item: Kind) -> Kind:
    """Keep an item under its paper and its name; returns it."""
    where = (item.paper, item.name)
    known = _ITEMS.get(where)
    if known and inspect.getfile(known.run) != inspect.getfile(item.run):
        raise ValueError(f"{item.paper} has two functions named {item.name}")
    if not item.words:
        raise ValueError(
            f"{item.name} of {item.paper} has no docstring; state what it is"
        )
    _ITEMS[where] = item
    return item


def study(
    paper: str,
    *,
    parts: Callable[[Scale], list[dict[str, Any]]] | None = None,
    timed: bool = False,
) -> Callable[[Callable[..., Any]], Study]:
    """Declare a study: a table that a paper's claims and figures rest on.

    Parameters
    ----------
    paper : str
        The key of the paper, such as "kloft2011".
    parts : callable, optional
        A function of a `Scale` that lists keyword arguments. The study is called once
        for each and returns one row or several; a run that is stopped loses one call.
    timed : bool
        It measures seconds: nothing else of the run computes meanwhile.

    Returns
    -------
    callable
        A decorator for a function of a `Scale` that returns a pandas DataFrame, or
        with parts a dict or a list of dicts. Its docstring says what is measured. The
        table is computed once for a scale.
    """
    return lambda run: enlist(Study(run, paper, parts=parts, timed=timed))


def claim(
    paper: str, place: str, *, wrong: str | None, figure: str = ""
) -> Callable[[Callable[..., Finding]], Claim]:
    """Declare a claim: a statement of a paper, and a check of it that can fail.

    Parameters
    ----------
    paper : str
        The key of the paper.
    place : str
        Where the paper says so, such as "Theorem 1".
    wrong : str or None
        What is perturbed when the check is called with wrong=True; None only for what
        cannot be tested.
    figure : str
        The name of the figure that shows it.

    Returns
    -------
    callable
        A decorator for a function check(scale, wrong=False) that returns a `Finding`.
        Its docstring is the statement, in our words.
    """
    return lambda run: enlist(Claim(run, paper, place, wrong, figure))


def figure(
    paper: str, place: str, *, sizes: dict[str, str] | None = None
) -> Callable[[Callable[[Scale], Any]], Figure]:
    """Declare a figure of a paper, redrawn.

    Parameters
    ----------
    paper : str
        The key of the paper.
    place : str
        Its name in the paper, such as "Figure 1".
    sizes : dict, optional
        What the caption adds by mode, such as {"quick": "2000 kernels."}.

    Returns
    -------
    callable
        A decorator for a function of a `Scale` that returns a matplotlib figure. Its
        docstring is the caption.
    """
    return lambda run: enlist(Figure(run, paper, place, sizes or {}))


def table(
    paper: str, place: str, *, sizes: dict[str, str] | None = None
) -> Callable[[Callable[[Scale], Any]], Sheet]:
    """Declare a table of a paper, computed anew.

    Parameters
    ----------
    paper : str
        The key of the paper.
    place : str
        Its name in the paper, such as "Table 1".
    sizes : dict, optional
        What the caption adds by mode, such as {"quick": "2000 kernels."}.

    Returns
    -------
    callable
        A decorator for a function of a `Scale` that returns a pandas DataFrame in the
        shape of the paper's table. Its docstring is the caption.
    """
    return lambda run: enlist(Sheet(run, paper, place, sizes or {}))


# ---- finding papers --------------------------------------------------------------


def known() -> list[str]:
    """The papers with a folder."""
    folder = ROOT / "papers"
    if not (folder / "README.md").exists():
        raise NotACheckout(
            "papers/ is not part of the installed package: run this in a checkout of "
            "the repository, installed with `make install`"
        )
    return sorted(path.parent.name for path in folder.glob("*/claims.py"))


def about(key: str) -> tuple[str, str]:
    """The title of a paper and what it is about; its modules are not imported."""
    if key not in known():
        raise ValueError(unknown("paper", key, known()))
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    home = importlib.import_module(f"papers.{key}")
    title, _, rest = (home.__doc__ or "").strip().partition("\n")
    return title, rest.strip()


def load(key: str) -> Paper:
    """A paper by its key; its modules are imported as papers.<key>.<module>."""
    title, text = about(key)
    for path in sorted((ROOT / "papers" / key).glob("*.py")):
        importlib.import_module(f"papers.{key}.{path.stem}")
    mine = [item for (paper, _), item in _ITEMS.items() if paper == key]
    mine.sort(key=lambda item: inspect.getfile(item.run))

    def kind(which: type[Kind]) -> dict[str, Kind]:
        return {item.name: item for item in mine if isinstance(item, which)}

    kinds = (kind(Study), kind(Claim), kind(Figure), kind(Sheet))
    return Paper(key, title, text, *kinds)


def used(call: Callable[[], Any]) -> tuple[Any, list[str]]:
    """What a call returns, and the studies that it asked for."""
    _USED.clear()
    found = call()
    return found, list(dict.fromkeys(_USED))


def used_by(item: Item, scale: Scale) -> tuple[Any, list[str]]:
    """What an item returns, and the other studies it asked for."""
    found, names = used(lambda: item(scale))
    return found, [name for name in names if name != item.name]
