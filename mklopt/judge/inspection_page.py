"""What `inspect` found, as one page of HTML: a table, and the unit ball."""

from __future__ import annotations

import base64
import io
from html import escape
from typing import TYPE_CHECKING

from ..util.extras import available
from ..util.tables import facts

if TYPE_CHECKING:
    from .inspection import Inspection

STYLE = """
body { font: 15px/1.5 sans-serif; max-width: 50em; margin: 2em auto; color: #222; }
table { border-collapse: collapse; width: 100%; }
tr { border-top: 1px solid #ddd; } td:first-child { white-space: nowrap; }
pre { background: #f6f6f6; padding: 0.8em; overflow-x: auto; }
img { max-width: 100%; }
"""


def page(found: Inspection) -> str:
    """One page that needs no other file."""
    title = escape(f"{found.formulation!r}, M = {found.M}")
    source = f"<h2>Declaration</h2><pre>{escape(found.source)}</pre>" * bool(
        found.source
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f"<style>{STYLE}</style><h1>{title}</h1>{facts(dict(found.facts()))}{_picture(found)}{source}"
        "</html>"
    )


def _picture(found: Inspection) -> str:
    """The unit ball, where it can be drawn."""
    drawable = found.increasing and available("matplotlib")
    if not drawable or found.M not in (2, 3):
        return ""
    import matplotlib.pyplot as plt

    figure, content = found.draw(), io.BytesIO()
    figure.savefig(content, format="png", dpi=120, bbox_inches="tight")
    plt.close(figure)
    text = base64.b64encode(content.getvalue()).decode()
    return f'<h2>Unit ball</h2><img alt="unit ball" src="data:image/png;base64,{text}">'
