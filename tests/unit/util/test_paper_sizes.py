"""Sizes of venues: widths in inches, letters in points."""

from __future__ import annotations

import pytest

from mklopt.util.paper_sizes import SMALLEST, VENUES, Venue, venue_of


def test_widths_are_those_of_the_style_files():
    assert VENUES["icml"].width() == 3.25 and VENUES["icml"].width("text") == 6.75
    siam = VENUES["siam-2col"]
    assert siam.column * 72.27 == pytest.approx(241)  # points of TeX
    assert siam.text * 72.27 == pytest.approx(2 * 241 + 10)  # and 10 pt between
    assert VENUES["jmlr"].width(4) == 4.0
    assert venue_of().width() == 5.5


def test_letters_are_smaller_than_the_text_and_not_too_small():
    found = VENUES["icml"].settings()
    assert (found["axes.labelsize"], found["xtick.labelsize"]) == (8.0, 7.0)
    assert Venue(3.0, 6.0, 7.0).settings()["xtick.labelsize"] == SMALLEST


def test_wrong_words_are_explained():
    with pytest.raises(ValueError, match="did you mean 'neurips'"):
        venue_of("neurip")
    with pytest.raises(ValueError, match="width = 'colum'; did you mean 'column'"):
        venue_of("icml").width("colum")
    with pytest.raises(ValueError, match="width = -1"):
        venue_of("icml").width(-1)
