"""What is known of the problems of the library: intervals, facts, times.

`stored/points/` has a primal and a dual point of each problem, in one archive, and
`stored/records.json` what was found from them. A record is for reading; what is
believed are the points, and they are certified again (`reference_of`).

MKLOPT_LIBRARY names a folder for points and records that `submit` adds. They go before
those of the package.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..certificates.minimizer import minimizer_facts
from ..problem import Problem
from ..reference import Reference, Store
from ..util.files import write_whole

HOME = Path(__file__).parent / "stored"
FILE = "records.json"
MAX_NAMED = 100  # kernels proved to be used that a record lists


@dataclass(frozen=True)
class Run:
    """How long a solver took, all of it certified by us.

    Parameters
    ----------
    to_3, to_6 : float or None
        Seconds to the relative gaps 1e-3 and 1e-6; None if it did not get there.
    gap : float or None
        The smallest gap it reached.
    note : str
        Such as "ended after 10 s".
    cpu : str
        The processor.
    """

    to_3: float | None = None
    to_6: float | None = None
    gap: float | None = None
    note: str = ""
    cpu: str = ""


@dataclass(frozen=True)
class Record:
    """What is known of one problem.

    Parameters
    ----------
    digest : str
        The hash of the problem.
    n, M, outputs, numbers : int
        Samples, kernels, outputs, and numbers that define the kernels.
    factors : bool
        Whether kernels are given by factors.
    lower, upper : float
        lower ≤ f* ≤ upper, every rounding error counted.
    source : str
        Whose points these are.
    used : list of int
        Kernels that are proved to be used by every minimizer, at most 100 of them.
    used_count, unused_count : int
        How many are proved to be used, and not to be.
    active : int
        Kernels with ‖w_m‖ > 0 at the stored point.
    checked : str
        What the interval was checked by.
    runs : dict of Run
        By solver.
    """

    digest: str
    n: int
    M: int
    outputs: int
    numbers: int
    factors: bool
    lower: float
    upper: float
    source: str = ""
    used: tuple[int, ...] = ()
    used_count: int = 0
    unused_count: int = 0
    active: int = 0
    checked: str = ""
    runs: dict[str, Run] = field(default_factory=dict)

    @property
    def relative_gap(self) -> float:
        """(upper − lower)/|upper|."""
        return (self.upper - self.lower) / max(abs(self.upper), 1e-300)


def own_folder() -> Path | None:
    """The folder for submissions, if one is named."""
    named = os.environ.get("MKLOPT_LIBRARY")
    return Path(named) if named else None


def folders() -> list[Path]:
    """Where points and records are, the first goes before the others."""
    own = own_folder()
    return [HOME] if own is None else [own, HOME]


def points_in(folder: Path) -> Store:
    """The points of a folder, as references."""
    return Store(folder / "points")


def records() -> dict[str, Record]:
    """The records of all problems, by name."""
    found: dict[str, Record] = {}
    for folder in reversed(folders()):
        path = folder / FILE
        if path.is_file():
            found |= _read(path, path.stat().st_mtime_ns)
    return found


@lru_cache(maxsize=8)
def _read(path: Path, _changed: int) -> dict[str, Record]:
    body = json.loads(path.read_text(encoding="utf-8"))
    return {name: _record(**entry) for name, entry in body.items()}


def _record(runs: dict[str, Any], used: Any, **parts: Any) -> Record:
    found = {name: Run(**run) for name, run in runs.items()}
    return Record(**parts, used=tuple(used), runs=found)


def write_records(folder: Path, changed: dict[str, Record]) -> None:
    """Add records to those of a folder, or replace them."""
    path = folder / FILE
    known = _read(path, path.stat().st_mtime_ns) if path.is_file() else {}
    body = {name: asdict(record) for name, record in (known | changed).items()}
    lines = [f"{json.dumps(name)}: {json.dumps(one)}" for name, one in body.items()]
    write_whole(path, ("{\n" + ",\n".join(lines) + "\n}\n").encode())


def reference_of(problem: Problem) -> Reference | None:
    """The narrowest of the stored references, certified afresh; None: there is none."""
    loaded = (points_in(folder).load(problem) for folder in folders())
    found = [one for one in loaded if one is not None]
    return min(found, key=lambda one: one.certificate.width, default=None)


def record_of(problem: Problem, found: Reference, checked: str = "") -> Record:
    """What a reference proves of a problem, as a record."""
    facts, grams = minimizer_facts(found.certificate), problem.grams
    used = facts.used.nonzero()[0].tolist()
    return Record(
        digest=problem.digest(), n=grams.n, M=grams.M,
        outputs=1 if len(problem.shape) == 1 else problem.shape[1],
        numbers=numbers_of(problem), factors=grams.storage == "factors",
        lower=found.lower, upper=found.upper, source=found.solver,
        used=tuple(used[:MAX_NAMED]), used_count=len(used),
        unused_count=int(facts.unused.sum()), active=int((found.norms > 0).sum()),
        checked=checked,
    )  # fmt: skip


def numbers_of(problem: Problem) -> int:
    """How many numbers define the kernels."""
    return sum(array.size for array in problem.grams.content())


def joined(new: Record, known: Record) -> Record:
    """A new record of the same problem, with the times and facts of an older one."""
    more = known.used_count > new.used_count
    old = known if more else new
    unused = max(new.unused_count, known.unused_count)
    runs, used = known.runs | new.runs, (old.used, old.used_count)
    return replace(
        new, runs=runs, used=used[0], used_count=used[1], unused_count=unused
    )
