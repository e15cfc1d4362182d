"""Formulations written on one line."""

from __future__ import annotations

import math

import pytest

from mklopt.formulations import VSKL, BlockL1, GroupLasso, LpNorm, Tikhonov
from mklopt.formulations.text import formulation_from


@pytest.mark.parametrize(
    "text, expected",
    [
        ("lp:p=1.5", LpNorm(1.5)),
        ("lp", LpNorm()),
        ("LpNorm(p=4)", LpNorm(4)),
        ("lp_norm(inf)", LpNorm(math.inf)),
        ("l1", BlockL1()),
        ("group_lasso", GroupLasso()),
        ("tikhonov:p=1.5,mu=2", Tikhonov(1.5, 2)),
        ("vskl:groups=((0,1),(2,)),q=1", VSKL(((0, 1), (2,)), 1)),
        (GroupLasso(), GroupLasso()),
    ],
)
def test_text_means_a_formulation(text, expected):
    assert formulation_from(text) == expected


def test_p_replaces_the_p_that_is_written():
    assert formulation_from("tikhonov:p=1.5,mu=2", p=3) == Tikhonov(3, 2)
    with pytest.raises(ValueError, match="no parameter p"):
        formulation_from("l1", p=3)


@pytest.mark.parametrize(
    "text, words",
    [
        ("lq", "'lq' is not known; choose one of lp, l1, BlockL1"),
        ("lp:p=0", "p = 0.0 is not a number in"),
        ("lp:r=2", "unexpected keyword argument 'r'"),
        ("lp:p=__import__('os')", "is no plain number"),
        ("lp:p=", "cannot be read"),
        ("vskl", "missing 1 required positional argument: 'groups'"),
    ],
)
def test_text_that_means_nothing_is_explained(text, words):
    with pytest.raises(ValueError, match=words):
        formulation_from(text)


@pytest.mark.parametrize(
    "text, words",
    [
        ("lp:p=2,p=3", "given twice"),
        ("lp:)(p=3", "a name and its parameters"),
        ("lp:)+f(", "a name and its parameters"),
        ("lp:p=True", "give a real number"),
        ("lp:p=2j", "give a real number"),
        ("lp:p=" + "9" * 500, "give a real number"),
        ("lp:p=" + "-" * 100_000 + "1", "nested too deeply"),
    ],
)
def test_text_that_python_would_read_is_refused_in_one_sentence(text, words):
    with pytest.raises(ValueError, match=words) as error:
        formulation_from(text)
    assert len(str(error.value)) < 300


@pytest.mark.parametrize("given", [None, 3, object])
@pytest.mark.parametrize("p", [None, 2.0])
def test_what_is_neither_text_nor_a_formulation_is_refused(given, p):
    with pytest.raises(ValueError, match="give an instance, or text"):
        formulation_from(given, p)
