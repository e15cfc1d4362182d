"""Tables for the terminal, Markdown and LaTeX: the one place that writes them."""

from collections.abc import Iterable
from dataclasses import fields

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from .latex import escaped


def plain_table(title: str, words: Iterable[str], numbers: Iterable[str]) -> Table:
    """An empty table: columns of words, then columns of numbers aligned right."""
    found = Table(title=title or None, title_justify="left", box=SIMPLE, pad_edge=False)
    for name in words:
        found.add_column(name, no_wrap=True)
    for name in numbers:
        found.add_column(name, justify="right", no_wrap=True)
    return found


def headless_table(title: str) -> Table:
    """An empty table without a head or lines, whose cells may wrap."""
    return Table(title=title, title_justify="left", show_header=False, box=None)


def as_text(table: Table, width: int) -> str:
    """A table as lines of plain text, of at most this width."""
    console = Console(width=width, color_system=None)
    with console.capture() as shown:
        console.print(table)
    return shown.get().rstrip()


def mark(holds: bool) -> str:
    """A green "holds" or a red "FAILS" for the terminal."""
    return "[green]holds[/]" if holds else "[bold red]FAILS[/]"


def markdown(table: Table) -> str:
    """A table in Markdown."""
    lines = [f"| {' | '.join(row)} |" for row in zip(*_columns(table), strict=True)]
    marks = ["--:" if c.justify == "right" else "---" for c in table.columns]
    lines.insert(1, f"|{'|'.join(marks)}|")
    return "\n".join(lines)


def latex(table: Table) -> str:
    """A table in LaTeX, a tabular; columns with long texts break their lines."""
    columns = _columns(table)
    rows = [" & ".join(map(escaped, row)) for row in zip(*columns, strict=True)]
    form = "".join(
        "r" if c.justify == "right" else r"p{0.3\linewidth}" if long else "l"
        for c, long in zip(table.columns, (max(map(len, c)) > 40 for c in columns))
    )
    body = [rows[0] + r" \\ \hline", *(row + r" \\" for row in rows[1:])]
    return "\n".join([rf"\begin{{tabular}}{{{form}}}", *body, r"\end{tabular}", ""])


def _columns(table: Table) -> list[list[str]]:
    """Header and cells of each column."""
    return [[str(c.header), *map(str, c.cells)] for c in table.columns]


def shown(part: object, name: str = "") -> str:
    """A formulation or loss with its parameters, short enough for a table."""

    def short(value: object) -> str:
        if isinstance(value, float):
            return f"{value:.4g}"
        text = str(value).replace(" ", "")
        return text if len(text) <= 12 else "…"

    pairs = [f"{f.name}={short(getattr(part, f.name))}" for f in fields(part)]  # type: ignore[arg-type]
    return f"{name or type(part).__name__}({', '.join(pairs)})"
