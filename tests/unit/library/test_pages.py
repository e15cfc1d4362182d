"""Pages: one for each problem, with links that lead somewhere."""

from __future__ import annotations

import re

from mklopt import library
from mklopt.library.pages import write_pages


def test_all_pages_are_written_and_linked(tmp_path):
    written = write_pages(tmp_path)
    assert len(written) == len(library.names()) + 2
    for name in written:
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert "[[" not in text
        for link in re.findall(r'href="([^"]+\.html)"', text):
            assert (tmp_path / link).is_file(), link
    index = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert all(f'href="{name}.html"' in index for name in library.names())
    page = (tmp_path / "wdbc-l1-hinge.html").read_text(encoding="utf-8")
    assert library.records()["wdbc-l1-hinge"].digest in page
    assert "mklopt library get wdbc-l1-hinge --certificate" in page
    assert "Solvers" in page and "Processor" in page
    board = (tmp_path / "leaderboard.html").read_text(encoding="utf-8")
    assert "certified by mklopt" in board and "CLARABEL" in board
