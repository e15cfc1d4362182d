"""HTML for notebooks: escaped, with sides and remarks."""

from __future__ import annotations

from mklopt.util.html import bold, facts, html_table


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
