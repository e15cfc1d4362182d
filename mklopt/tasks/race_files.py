"""The folder of a race: traces, table, script and figures.

The data are written first and the figures last, so that a second Ctrl-C loses nothing:
redraw.py draws the same figures from traces.csv. A race that was stopped by Ctrl-C has
no figures yet, because they take seconds.
"""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..util.checks import check_path, plain
from ..util.files import write_whole
from ..util.latex import pgf
from .race_figure import figure
from .race_profile import profile_figure

if TYPE_CHECKING:
    from .race import Race

SCRIPT = '''"""Draws the figures of this folder again from traces.csv: python redraw.py

Change OPTIONS as you like; the help of mklopt.tasks.race.Race.figure explains them.
Written by mklopt {version}.
"""

from mklopt.tasks.race_figure import figure
from mklopt.tasks.race_profile import profile_figure

TOL = {tol!r}
OPTIONS = {{
{options}}}

figure("traces.csv", tol=TOL, path="redrawn", **OPTIONS)
'''
PROFILE = """profile_figure("traces.csv", TOL, path="redrawn-profile", **{given})
"""
NOT_OF_PROFILES = ("rows", "x", "y", "height")


def save(race: Race, folder: str | os.PathLike, how: dict[str, Any]) -> list[str]:
    """Everything a paper needs of a race; the names of what was written."""
    check_path(folder)
    wrong = [name for name in ("ax", "path") if name in how]
    if wrong:
        raise ValueError(f"save takes no {wrong[0]}: it writes figures of its own")
    home, rows = Path(folder), race.to_frame()
    home.mkdir(parents=True, exist_ok=True)
    names = {name: how[name] for name in ("labels", "order") if name in how}
    table = race.summary(**names).latex()
    write_whole(home / "traces.csv", rows.to_csv(index=False).encode())
    write_whole(home / "table.tex", table.encode())
    many = len(race.problems) > 1
    write_whole(home / "redraw.py", script(race.tol, how, many).encode())
    written = ["traces.csv", "table.tex", "redraw.py"]
    if not race.stopped:
        drawn = figure(rows, tol=race.tol, path=home / "race", **how)
        written += ["race.pdf", "race.png"]
        written += ["race.pgf"] * pgf(drawn, home / "race.pgf")  # with TeX installed
    if many and not race.stopped:
        options = {k: v for k, v in how.items() if k not in NOT_OF_PROFILES}
        profile_figure(rows, race.tol, path=home / "profile", **options)
        written += ["profile.pdf", "profile.png"]
    return sorted(written)


def script(tol: float, how: dict[str, Any], many: bool) -> str:
    """A program that draws the figures again, with the options written out."""
    options = "".join(f"    {k!r}: {plain(v)!r},\n" for k, v in how.items())
    others = {k: v for k, v in how.items() if k not in NOT_OF_PROFILES}
    text = SCRIPT.format(version=version("mklopt"), tol=tol, options=options)
    if many and len(others) == len(how):
        return text + PROFILE.format(given="OPTIONS")
    left = f"{{k: OPTIONS[k] for k in {list(others)!r}}}"
    return text + PROFILE.format(given=left) * many
