"""Tables for the terminal, Markdown and LaTeX."""

from __future__ import annotations

import io

from rich.console import Console
from rich.text import Text

from mklopt.formulations import VSKL, GroupLasso, LpNorm
from mklopt.util.tables import (
    as_text,
    bold,
    facts,
    headless_table,
    html,
    html_table,
    latex,
    mark,
    markdown,
    plain_table,
    shown,
)


def table(cell="a_b"):
    found = plain_table("Title", ["name"], ["gap"])
    found.add_row(cell, "1e-3")
    return found


def test_words_stand_left_and_numbers_right():
    assert [c.justify for c in table().columns] == ["left", "right"]
    screen = io.StringIO()
    Console(width=60, file=screen).print(table())
    text = screen.getvalue()
    assert "Title" in text and "a_b" in text and "1e-3" in text


def test_as_text_has_no_colours_and_keeps_the_width():
    lines = as_text(table("[bold]a_b[/]"), 60).split("\n")
    assert lines[0].strip() == "Title" and lines[-1].split() == ["a_b", "1e-3"]
    assert max(map(len, lines)) <= 60


def test_a_table_without_a_head_wraps_its_cells():
    found = headless_table("names")
    found.add_row("a_b", "word " * 20)
    lines = [line.split() for line in as_text(found, 40).split("\n")]
    assert lines[:2] == [["names"], ["a_b", *["word"] * 6]] and len(lines) == 5


def test_markdown():
    assert markdown(table()) == "| name | gap |\n|---|--:|\n| a_b | 1e-3 |"


def test_latex_is_escaped_and_long_cells_break():
    lines = latex(table()).split("\n")
    assert lines[0] == r"\begin{tabular}{lr}" and lines[-2:] == [r"\end{tabular}", ""]
    rules = [r"\toprule", r"\midrule", r"\bottomrule"]
    assert lines[1:6:2] == rules and lines[2:6:2] == [
        r"name & gap \\",
        r"a\_b & 1e-3 \\",
    ]
    assert latex(table("word " * 10)).startswith(r"\begin{tabular}{p{0.3\linewidth}r}")


def test_bold_cells_are_bold_everywhere():
    found = plain_table("", ["name"], ["gap"])
    found.add_row("5 %", Text("1 < 2", style="bold"))
    assert r"5 \% & \textbf{1 \ensuremath{<} 2} \\" in latex(found)
    assert "| **1 < 2** |" in markdown(found) and "<b>1 &lt; 2</b>" in html(found)
    assert "1 < 2" in as_text(found, 60) and "**" not in as_text(found, 60)


def test_html_has_the_head_and_remarks():
    shown = html(table("<a>"), "x > 1")
    assert shown.count("<th") == 2 and "&lt;a&gt;" in shown
    assert "text-align: right" in shown and shown.endswith("<p>x &gt; 1</p>")


def test_marks_say_whether_a_claim_holds():
    assert "holds" in mark(True) and "FAILS" in mark(False)


def test_parts_are_shown_with_short_parameters():
    assert shown(GroupLasso()) == "GroupLasso()"
    assert shown(LpNorm(4 / 3)) == "LpNorm(p=1.333)"
    assert shown(LpNorm(2.0), "lp") == "lp(p=2)"
    many = VSKL(((0, 1, 2), (3, 4, 5)), 2.0)
    assert shown(many) == "VSKL(groups=…, q=2)"


def test_a_table_has_its_head_its_sides_and_its_remarks():
    shown = html_table([["a", "1"]], ["left", "right"], ["x", "y"], ["a < b"])
    assert shown.count("<th ") == 2 and shown.count("<td ") == 2
    assert shown.index("text-align: right") > shown.index(">x</th>")
    assert shown.endswith("<p>a &lt; b</p>")
    assert "<th" not in html_table([["a"]], ["left"])


def test_facts_are_escaped():
    shown = facts({"1 < 2": "<script>"}, "note")
    assert bold("1 &lt; 2") in shown and "&lt;script&gt;" in shown
    assert "<script>" not in shown and "<p>note</p>" in shown
