"""The report as one HTML page that needs nothing else: no network, no other file.

The rows are put into the page as JSON; the page sorts, filters and draws them. It
is in templates/report.html and can be worked on with any browser.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib.resources import files

from .ledger import Row

LEFT_OUT = ("code",)  # the same in every row


def html(rows: list[Row], planned: int, about: dict[str, str]) -> str:
    """The page with these rows."""
    content = {
        "about": about,
        "planned": planned,
        "rows": [
            {k: v for k, v in asdict(row).items() if k not in LEFT_OUT} for row in rows
        ],
    }
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    # A "</script>" or "<!--" inside a row must not end the element that holds it.
    safe = text.replace("<", "\\u003c").replace("\u2028", "\\u2028")
    page = files(__package__).joinpath("templates/report.html")
    return page.read_text(encoding="utf-8").replace("@CONTENT@", safe)
