"""Tables in HTML for notebooks; `tables.html` makes one of any table.

Texts are escaped; a cell in bold is made by `bold`.
"""

from collections.abc import Iterable, Sequence
from html import escape

CELL = "text-align: {side}; padding: 0.1em 0.8em; vertical-align: top"


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
