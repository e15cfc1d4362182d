"""The statements of a paper: each has a claim or a reason."""

from __future__ import annotations

from mklopt.claims import items as papers
from mklopt.claims.statements import Coverage, Statement, gaps, read

FILE = """
version = "a draft"
[data]
squares = "drawn"

[[statement]]
place = "Theorem 1"
says = "Squares are positive."
claims = ["squares_are_positive", "cannot_fail", "without_data", "broken"]

[[statement]]
place = "Section 2"
says = "Cubes are not."
reason = "it is plain"
"""


def test_statements_are_read_and_complete(toy, tmp_path):
    assert read(toy) == Coverage("", {}, [])
    (tmp_path / "papers" / toy / "statements.toml").write_text(FILE)
    known = read(toy)
    assert known.version == "a draft" and known.data == {"squares": "drawn"}
    assert known.statements[1] == Statement(
        "Section 2", "Cubes are not.", [], "it is plain"
    )
    assert gaps(papers.load(toy), known) == []


def test_what_is_missing_is_said(toy):
    claims = ["squares_are_positive", "nobody"]
    stated = [Statement("A", "one", claims), Statement("B", "two")]
    said = "\n".join(gaps(papers.load(toy), Coverage("", {}, stated)))
    for words in (
        "version of the paper is not named", "B: neither a claim nor a reason: two",
        "A: there is no claim nobody", "broken belongs to no statement",
    ):  # fmt: skip
        assert words in said
