"""Tables of the library: all problems, one problem, and the leaderboard.

The leaderboard compares what was certified by us, and nothing else. A solver is listed
with the problems that it was given: how many of them it solved to 1e-3 and to 1e-6, and
the median of its time to 1e-6 over that of the fastest solver on the same problem.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from statistics import median
from typing import TYPE_CHECKING, Any

from ..util.tables import plain_table
from .declarations import INSTANCES
from .listing import tags_of
from .stored_records import Record, Run, records

if TYPE_CHECKING:
    from rich.table import Table

LONG = r"\d\.\d{6,}"  # a number with many digits
SOLVED = 1e-9  # the relative gap up to which f* counts as known


def summary(name: str) -> dict[str, Any]:
    """What is known of a problem, as plain values."""
    instance, known = INSTANCES[name], records().get(name)
    found: dict[str, Any] = {"name": name, "about": instance.about}
    found |= {"loss": _loss(name), "formulation": _kind(name), "C": instance.C}
    found |= {"bias": instance.bias, "tags": sorted(tags_of(instance))}
    if known is not None:
        found |= {"n": known.n, "M": known.M, "numbers": known.numbers}
        found |= {"lower": known.lower, "upper": known.upper, "digest": known.digest}
        found |= {"used": known.used_count, "unused": known.unused_count}
    return found


def _loss(name: str) -> str:
    loss = INSTANCES[name].loss
    return loss if isinstance(loss, str) else loss.name


def _kind(name: str) -> str:
    """The formulation, long parameters left out."""
    text = re.sub(LONG, lambda x: f"{float(x[0]):.4g}", INSTANCES[name].formulation)
    return text if len(text) <= 32 else text.split(":")[0]


def overview(wanted: Iterable[str]) -> Table:
    """One line for each problem."""
    words, numbers = ("problem", "loss, formulation"), ("n", "M", "f*", "gap")
    table = plain_table("", words, numbers)
    table.columns[0].no_wrap = True
    for name in wanted:
        known = records().get(name)
        sizes = ("", "", "", "not solved") if known is None else _sizes(known)
        table.add_row(name, f"{_loss(name)}, {_kind(name)}", *sizes)
    return table


def _sizes(known: Record) -> tuple[str, ...]:
    gap = known.relative_gap
    return str(known.n), str(known.M), optimum(known), f"{gap:.0e}"


def optimum(known: Record) -> str:
    """f* with the digits that both ends of its interval agree on."""
    if known.relative_gap > 1e-3:
        return f"{known.lower:.4g} … {known.upper:.4g}"
    digits = min(10, max(4, math.floor(-math.log10(known.relative_gap + 1e-16))))
    return f"{(known.lower + known.upper) / 2:.{digits}g}"


def facts_of(name: str) -> dict[str, str]:
    """Names and values of one problem, for its page."""
    instance, known = INSTANCES[name], records().get(name)
    found = {
        "recipe": instance.origin,
        "loss": f"{instance.loss}, C = {instance.C:g}",
        "formulation": str(instance.formulation),
        "bias": "yes" if instance.bias else "no",
        "tags": ", ".join(sorted(tags_of(instance))),
    }
    if known is None:
        return found | {"f*": "not solved yet"}
    outputs = f", {known.outputs} outputs" if known.outputs > 1 else ""
    kind = "factors" if known.factors else "triangles"
    solved = "" if known.relative_gap <= SOLVED else ", open: best known"
    return found | {
        "size": f"n = {known.n}, M = {known.M}{outputs}; {known.numbers} numbers in "
        f"{kind}",
        "hash": known.digest,
        "f*": f"{known.lower!r} ≤ f* ≤ {known.upper!r}",
        "relative gap": f"{known.relative_gap:.1e}{solved}",
        "minimizer": minimizer(known),
        "points by": known.source,
    }


def minimizer(known: Record) -> str:
    """What is proved of every minimizer, in a sentence."""
    said = (
        f"{known.used_count} kernels are proved to be used and {known.unused_count} "
        f"not to be, of {known.M}; {known.active} have ‖w_m‖ > 0 at the stored "
        "point"
    )
    if known.used and known.used_count < min(known.M, 40):
        said += f"; used: {', '.join(map(str, known.used))}"
    return said


# ---- times ---------------------------------------------------------------------------


def times(name: str) -> Table:
    """How long each solver took for one problem."""
    columns = ("seconds to 1e-3", "seconds to 1e-6", "gap reached")
    table = plain_table("", ("solver",), columns)
    known = records().get(name)
    ranked = sorted(known.runs.items(), key=_speed) if known else []
    for solver, run in ranked:
        gap = "" if run.gap is None else f"{run.gap:.1e}"
        row = (_seconds(run.to_3), _seconds(run.to_6), gap)
        table.add_row(f"{solver} ({run.note})" if run.note else solver, *row)
    return table


def _speed(entry: tuple[str, Run]) -> tuple[float, float, float]:
    run = entry[1]
    return _or_never(run.to_6), _or_never(run.to_3), _or_never(run.gap)


def _or_never(seconds: float | None) -> float:
    return math.inf if seconds is None else seconds


def _seconds(taken: float | None) -> str:
    return "" if taken is None else f"{taken:.3g}"


def leaderboard() -> Table:
    """One line for each solver, by the problems that it solved to 1e-6."""
    numbers = ("problems", "to 1e-3", "to 1e-6", "fastest", "median ratio")
    table = plain_table("", ("solver",), numbers)
    for solver, row in sorted(standings().items(), key=lambda one: _place(one[1])):
        ratio = "" if math.isinf(row["ratio"]) else f"{row['ratio']:.2g}"
        counts = (row["problems"], row["to_3"], row["to_6"], row["fastest"])
        table.add_row(solver, *map(str, counts), ratio)
    return table


def _place(row: dict[str, Any]) -> tuple[float, ...]:
    return -row["to_6"], -row["to_3"], row["ratio"]


def standings() -> dict[str, dict[str, Any]]:
    """What each solver did on the problems that it was given."""
    found: dict[str, dict[str, Any]] = {}
    for known in records().values():
        best = min((_or_never(run.to_6) for run in known.runs.values()), default=0.0)
        for solver, run in known.runs.items():
            row = found.setdefault(solver, {"problems": 0, "to_3": 0, "to_6": 0})
            row["fastest"] = row.get("fastest", 0) + (run.to_6 == best)
            row["problems"] += 1
            row["to_3"] += run.to_3 is not None
            row["to_6"] += run.to_6 is not None
            ratios = row.setdefault("ratios", [])
            if math.isfinite(best):
                ratios.append(_or_never(run.to_6) / best)
    for row in found.values():
        row["ratio"] = median(row.pop("ratios") or [math.inf])
    return found
