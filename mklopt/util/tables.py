"""Tables for the terminal, Markdown, LaTeX and HTML: the one place that writes them.

A cell is text, or a rich Text in bold, which is bold everywhere. One rich table is
written in all four forms; tabulate and pandas have no cell that is bold in all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from html import escape
from typing import TYPE_CHECKING, Any

from .extras import need
from .latex import escaped

if TYPE_CHECKING:
    from rich.table import Table

CELL = "text-align: {side}; padding: 0.1em 0.8em; vertical-align: top"


def plain_table(title: str, words: Iterable[str], numbers: Iterable[str]) -> Table:
    """An empty table: columns of words, then columns of numbers aligned right.

    Where it is too wide, words go on in the next line: nothing is cut.
    """
    need("rich")
    from rich.box import SIMPLE
    from rich.table import Table

    found = Table(title=title or None, title_justify="left", box=SIMPLE, pad_edge=False)
    for name in words:
        found.add_column(name, overflow="fold")
    for name in numbers:
        found.add_column(name, justify="right", no_wrap=True)
    return found


def headless_table(title: str) -> Table:
    """An empty table without a head or lines, whose cells may wrap."""
    need("rich")
    from rich.table import Table

    return Table(title=title, title_justify="left", show_header=False, box=None)


def as_text(table: Table, width: int) -> str:
    """A table as lines of plain text, of at most this width."""
    from rich.console import Console

    console = Console(width=width, color_system=None)
    with console.capture() as shown:
        console.print(table)
    return shown.get().rstrip()


def mark(holds: bool) -> str:
    """A green "holds" or a red "FAILS" for the terminal."""
    return "[green]holds[/]" if holds else "[bold red]FAILS[/]"


def markdown(table: Table) -> str:
    """A table in Markdown."""
    columns = _columns(table, lambda text: text, "**{}**".format)
    lines = [f"| {' | '.join(row)} |" for row in zip(*columns, strict=True)]
    marks = ["--:" if c.justify == "right" else "---" for c in table.columns]
    lines.insert(1, f"|{'|'.join(marks)}|")
    return "\n".join(lines)


def latex(table: Table) -> str:
    r"""A table in LaTeX, a tabular; columns with long texts break their lines.

    Its rules are those of booktabs: \usepackage{booktabs}.
    """
    lengths = [max(map(len, c)) for c in _columns(table, str, str)]
    head, *rows = map(
        " & ".join, zip(*_columns(table, escaped, r"\textbf{{{}}}".format))
    )
    form = "".join(
        "r" if c.justify == "right" else r"p{0.3\linewidth}" if long > 40 else "l"
        for c, long in zip(table.columns, lengths)
    )
    lines = [rf"\begin{{tabular}}{{{form}}}", r"\toprule", rf"{head} \\", r"\midrule"]
    lines += [rf"{row} \\" for row in rows]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def html(table: Table, *remarks: str) -> str:
    """A table in HTML for notebooks, with a paragraph for each remark."""
    sides = ["right" if c.justify == "right" else "left" for c in table.columns]
    head, *rows = zip(*_columns(table, escape, bold), strict=True)
    return html_table(rows, sides, head if table.show_header else (), remarks)


def bold(text: str) -> str:
    """Text that is escaped already, in bold."""
    return f"<b>{text}</b>"


def html_table(
    rows: Iterable[Sequence[str]],
    sides: Sequence[str],
    head: Sequence[str] = (),
    remarks: Iterable[str] = (),
) -> str:
    """A table of cells that are escaped already, with a paragraph for each remark.

    sides: "left" or "right", for each column. Without rows there is no table.
    """

    def line(kind: str, row: Sequence[str]) -> str:
        styles = [CELL.format(side=side) for side in sides]
        cells = [f'<{kind} style="{s}">{c}</{kind}>' for s, c in zip(styles, row)]
        return f"<tr>{''.join(cells)}</tr>"

    said = [f"<p>{escape(remark)}</p>" for remark in remarks]
    body = [line("td", row) for row in rows]
    first = [line("th", head)] if head else []
    table = ["<table>", *first, *body, "</table>"] if body else []
    return "\n".join([*table, *said])


def facts(known: dict[str, str], *remarks: str) -> str:
    """Names and values, one pair per line."""
    rows = [(bold(escape(name)), escape(value)) for name, value in known.items()]
    return html_table(rows, ("left", "left"), remarks=remarks)


def _columns(
    table: Table, plain: Callable[[str], str], strong: Callable[[str], str]
) -> list[list[str]]:
    """Header and cells of each column, by `plain`, with `strong` around bold ones."""

    def written(cell: Any) -> str:
        text = plain(str(cell))
        return strong(text) if getattr(cell, "style", "") == "bold" else text

    return [[written(c.header), *map(written, c.cells)] for c in table.columns]


def shown(part: object, name: str = "") -> str:
    """A formulation or loss with its parameters, short enough for a table."""

    def short(value: object) -> str:
        if isinstance(value, float):
            return f"{value:.4g}"
        text = str(value).replace(" ", "")
        return text if len(text) <= 12 else "…"

    pairs = [f"{f.name}={short(getattr(part, f.name))}" for f in fields(part)]  # type: ignore[arg-type]
    return f"{name or type(part).__name__}({', '.join(pairs)})"


def read_csv(given: Any, **how: Any) -> Any:
    """A table of numbers from CSV, to the last bit; `how` goes to pandas.read_csv."""
    need("pandas")
    import pandas as pd

    if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1):  # from then on it is so
        how["float_precision"] = "round_trip"
    return pd.read_csv(given, **how)
