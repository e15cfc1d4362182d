"""Checks of plain arguments: what is right passes, all else gets one sentence."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from mklopt.util.checks import (
    byte_count,
    check_choice,
    check_flag,
    check_function,
    check_limit,
    check_list,
    check_path,
    check_positive,
    check_whole,
    choices,
    real_number,
    short,
    snake_case,
    too_large,
    unknown,
)

ODD = (
    None, 10**400, 10**5000, math.nan, 1j, "abc", b"x", object(), [1], {"a": 1}, int,
    np.ones(3), np.ones((2, 2)), np.zeros(0), scipy.sparse.eye(2), 1.5,
)  # fmt: skip


def test_values_are_shown_on_one_short_line():
    for value in (*ODD, np.full((9, 9), np.nan), "a\nb", [10**400] * 9):
        assert 0 < len(short(value)) <= 60 and "\n" not in short(value)
    assert short("lp") == "'lp'" and short(10**5000) == "a very large int"


def refused(check, *arguments) -> list[str]:
    """The sentences about odd values, of a check that must refuse them."""
    found = []
    for value in ODD:
        with pytest.raises(ValueError) as caught:
            check(value, *arguments)
        found.append(str(caught.value))
    assert all("\n" not in said and len(said) < 200 for said in found)
    return found


def test_words_and_flags():
    check_choice("b", "which", ("a", "b"))
    assert refused(check_choice, "which", ("a", "b"))[0].endswith("choose one of a, b")
    check_flag(True, "on")
    check_flag(np.False_, "on")
    assert refused(check_flag, "on")[0] == "on = None; pass True or False"


def test_functions_and_lists():
    check_function(None, "f")
    check_function(print, "f")
    with pytest.raises(ValueError, match="f = 3; give a function, or None"):
        check_function(3, "f")
    assert check_list((1, 2), "a", "numbers") == [1, 2]
    assert check_list(iter([1]), "a", "numbers") == [1]
    for wrong in (None, 3, "ab", b"ab", np.array(1.0), scipy.sparse.eye(2)):
        with pytest.raises(ValueError, match=r"a = .*; give numbers"):
            check_list(wrong, "a", "numbers")


def test_numbers():
    for value in (2, 2.0, np.float32(2), np.int64(2), Fraction(4, 2)):
        assert real_number(value, "x") == 2.0
    assert real_number(math.inf, "x") == math.inf
    assert check_whole(np.int8(3), "n", 1) == check_whole(3, "n", 3) == 3
    for wrong in (True, math.nan, "1", None, np.ones(1), 1j, 10**400, -(10**400)):
        with pytest.raises(ValueError, match=r"x = .*; give a number$"):
            real_number(wrong, "x", "a number")
    for wrong in (True, 0, 2.0, 10**400, "1", None):
        with pytest.raises(ValueError, match=r"n = .*; give a whole number ≥ 1"):
            check_whole(wrong, "n", 1)
    assert too_large(10**400) and too_large(-(10**400))
    assert not too_large(1e308) and not too_large(math.inf) and not too_large(3)
    for kind in (np.float16, np.float32):  # and without a warning
        assert not too_large(kind(3)) and not too_large(kind(math.inf))


def test_paths():
    check_path("a")
    check_path(Path("a"))
    odd: tuple = (0, 1, True, None, b"a", "", [], 1.5)
    for wrong in odd:
        with pytest.raises(ValueError, match="give the name of a file as text"):
            check_path(wrong)


def test_numbers_of_bytes():
    given = {7: 7, "500MB": 5 * 10**8, "1.5 GB": 15 * 10**8, " 2kB ": 2000, "3": 3}
    for value, expected in given.items():
        assert byte_count(value, "memory") == expected
    for value in ("many", "1.2.3MB", -5, None, "5TB", True):
        with pytest.raises(ValueError, match=r"memory = .* give a number of bytes"):
            byte_count(value, "memory")


def test_a_choice_is_one_of_those_allowed():
    assert check_choice("long", "step", ("long", None)) == "long"
    assert check_choice(None, "step", ("long", None)) is None
    with pytest.raises(ValueError, match=r"^step = 'x'; choose 'a', 'b' or None$"):
        check_choice("x", "step", ("a", "b", None))


def test_a_number_is_positive():
    assert check_positive(2, "eta") == 2.0 and check_positive(math.inf, "R") == math.inf
    for wrong in (0.0, -1, math.nan, "1", None, True):
        with pytest.raises(ValueError, match=r"eta = .*; give a positive number"):
            check_positive(wrong, "eta")
    with pytest.raises(ValueError, match="give a finite positive number"):
        check_positive(math.inf, "scale", finite=True)


def test_a_limit_is_a_number_that_is_not_too_small():
    check_limit(0, "tol", 0)
    check_limit(np.inf, "time_limit", 0)
    for wrong in (-1e-9, np.nan, True, "1", None, 10**400):
        with pytest.raises(ValueError, match=r"^tol = .*; give a number ≥ 0$"):
            check_limit(wrong, "tol", 0)


def test_names_near_a_wrong_one_are_said():
    known = ["simple", "silp", "smo_mkl", "GroupLasso"]
    assert choices("simpel", known).startswith("did you mean 'simple'? Choose one of ")
    assert "did you mean 'GroupLasso'?" in choices("grouplaso", known)
    assert choices("zzz", known) == "choose one of simple, silp, smo_mkl, GroupLasso"
    assert choices(3, ["a"], "or a number") == "choose one of a, or a number"
    said = unknown("solver", "simpel", known)
    assert said.startswith("solver 'simpel' is not known; did you mean 'simple'?")
    with pytest.raises(ValueError, match="mode = 'fst'; did you mean 'fast'"):
        check_choice("fst", "mode", ("fast", "slow"))


def test_names_of_classes_become_words():
    assert snake_case("EpsInsensitive") == "eps_insensitive"
    assert snake_case("Hinge") == "hinge"
